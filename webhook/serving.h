/* HTTPS server that waits for a certificate pair in a directory and follows its changes. */
#pragma once

#include "common/net/http_server.h"

struct clock;
struct serving_options {
    const char *cert_dir; /* tls.crt and tls.key in it */
    uint32_t poll_ms;     /* time between two polls of the files; 0: a second */
    const struct clock *clock;
    struct http_server_options http; /* without the pair */
};

/*
 * The server listens when the pair is usable: certificate and key match and are valid now. A changed
 * pair is handed to the server without dropping a request. An unusable pair changes nothing and is
 * read again at each poll, for two reasons: one old and one new file may have been read together, and
 * rights or the clock may be corrected without a change of the files.
 *
 * propeller_webhook_certificate_expiry_seconds counts down to the end of what is served.
 */
struct serving;
struct serving *serving_create(const struct serving_options *options); /* options are copied */
void serving_destroy(struct serving *serving);

/* For the manager. Fails if the address cannot be bound; a missing pair is not a failure. */
int serving_start(void *self, struct error *err);
void serving_stop(void *self);
void serving_join(void *self); /* answers what is in progress */

/* health_check_fn: ready while an unexpired pair is served. */
int serving_check(void *self, char *why, size_t size);
unsigned serving_port(struct serving *serving); /* 0: nothing listens yet */
