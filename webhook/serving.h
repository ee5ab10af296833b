/* The HTTPS server of a certificate pair in a directory: waits for the pair, follows its changes.
 */
#pragma once

#include "common/net/http_server.h"

struct clock;
struct serving_options {
    const char *cert_dir; /* tls.crt and tls.key in it */
    uint32_t poll_ms;     /* between two looks at the files; 0: a second */
    const struct clock *clock;
    struct http_server_options http; /* without the pair */
};

/*
 * Nothing listens until there is a pair that can be used: the two belong together and are valid
 * now. A changed pair is handed to the server without dropping a request. One that cannot be
 * used changes nothing and is tried again at each look: one of the old and one of the new files may
 * have been read together, and rights or the clock may be mended without a change of the files.
 *
 * propeller_webhook_certificate_expiry_seconds counts down to the end of what is served.
 */
struct serving;
struct serving *serving_create(const struct serving_options *options); /* options are copied */
void serving_destroy(struct serving *serving);

/* For the manager. A missing pair is no failure, an address that cannot be bound is. */
int serving_start(void *self, struct error *err);
void serving_stop(void *self);
void serving_join(void *self); /* answers what is in progress */

/* health_check_fn: ready while a pair is served that is not expired. */
int serving_check(void *self, char *why, size_t size);
unsigned serving_port(struct serving *serving); /* 0: nothing listens yet */
