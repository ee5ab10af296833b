/* The call GetJob of a VMAFX controller, and the answer as the plans read it. */
#pragma once

#include "common/net/grpc_client.h"

enum vmafx_seen {
    VMAFX_SEEN_NOTHING,     /* the controller was not asked */
    VMAFX_SEEN_UNAVAILABLE, /* there is no answer that can be used */
    VMAFX_SEEN_NOT_FOUND,
    VMAFX_SEEN_PENDING,
    VMAFX_SEEN_RUNNING,
    VMAFX_SEEN_COMPLETED,
    VMAFX_SEEN_FAILED,
    VMAFX_SEEN_CANCELLED,
};

/* Texts are in the arena, are UTF-8 without control characters, and are cut. They are "" or zero unless the
 * controller gave the job. */
struct vmafx_answer {
    enum vmafx_seen seen;
    const char *node;
    const char *error;
    int64_t updated_at_s; /* since 1970 */
    double score;         /* may be no finite number */
    const char *problem;  /* of VMAFX_SEEN_UNAVAILABLE; quotes the peer */
};

/* Of the controller's answer; it decodes to forty times as much. */
#define VMAFX_MAX_JOB (256u << 10)
#define VMAFX_MAX_ERROR 4096
#define VMAFX_MAX_NODE 253

/* Asks target for a job; target->max_message does not count. Blocks until the answer or the time-out. Any thread. */
struct vmafx_answer vmafx_get_job(struct arena *arena, const struct grpc_target *target,
                                  const char *id);
/* Pure. */
struct vmafx_answer vmafx_answer_read(struct arena *arena, const struct grpc_reply *reply);
/* Copies text up to max bytes; "" if it is not UTF-8. A control character becomes a blank. */
const char *vmafx_text(struct arena *arena, const char *text, size_t max);
