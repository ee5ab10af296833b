/* A VMAFX controller whose answers to GetJob a test says. */
#pragma once

#include <stdint.h>

#include "common/base/compiler.h"
#include "common/tests/h2_server.h"

struct vmafx_peer_job {
    int status; /* of the job: PENDING is 0 */
    const char *node, *error;
    int64_t updated_at_s;
    double score;
};

/* The message Job on the wire, with fields that no reader of ours knows; at most VMAFX_PEER_MAX bytes, and their
 * number. */
#define VMAFX_PEER_MAX 512
size_t vmafx_peer_encode(const struct vmafx_peer_job *job, char ret[static VMAFX_PEER_MAX]);

struct vmafx_peer {
    struct h2_server *server;
    struct vmafx_peer_job job; /* the answer */
    int grpc_status;           /* not 0: in place of the answer */
    enum h2_manner manner;
    char asked[64]; /* the id of the last request */
    char frame[VMAFX_PEER_MAX + 5];
    char lines[64];
};
void vmafx_peer_start(struct vmafx_peer *peer); /* its members other than server are the test's */
void vmafx_peer_stop(struct vmafx_peer *peer);
