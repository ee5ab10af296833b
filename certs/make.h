/* New certificates: an authority of our own, and what the webhook serves (RFC 5280, P-256). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"

/* PEM texts; NULL: not there. The key is PKCS #8 without a password. */
struct cert_pair {
    const char *cert;
    const char *key;
};

/* Host names and IP addresses. */
struct cert_names {
    const char **items;
    size_t len;
};

/*
 * Certificates begin so much before they are made, as clocks of API servers differ: a tenth of the
 * lifetime, at most CERT_MAX_SKEW_US.
 */
#define CERT_MAX_SKEW_US (INT64_C(5) * 60 * 1000000)
int64_t cert_skew_us(int64_t lifetime_us);

/* A host name or an IP address. */
bool cert_name_is_valid(const char *name);
/* DNS names of a Service: <service>, <service>.<ns>, <service>.<ns>.svc and
 * <service>.<ns>.svc.cluster.local, followed by the others. */
struct cert_names cert_names_of(struct arena *arena, const char *service, const char *ns,
                                const char *const *others, size_t other_count);

/*
 * Both end lifetime_us after now_us (whole seconds); a leaf never after its authority. Serial
 * numbers are random (127 bits), and each has a key of its own. Strings live in the arena.
 */
int cert_make_ca(struct arena *arena, int64_t now_us, int64_t lifetime_us, struct cert_pair *ret,
                 struct error *err) MUST_CHECK;
/* ERROR_INVALID: the authority cannot be read, its parts do not belong together, or it has expired;
 * or there is no name, or one that is neither a host name nor an IP address. */
int cert_make_leaf(struct arena *arena, const struct cert_pair *ca, const struct cert_names *names,
                   int64_t now_us, int64_t lifetime_us, struct cert_pair *ret,
                   struct error *err) MUST_CHECK;
