/* Checks of PEM certificates and keys at a given time, and lists of authorities. */
#pragma once

#include <stdbool.h>

#include "certs/make.h"

/*
 * Returns NULL if the pair is usable, otherwise a constant that follows "the authority" or "the certificate" in a sentence:
 * "is missing", "cannot be read", "has a key of another one", "has expired" …
 */
const char *cert_ca_problem(const struct cert_pair *ca, int64_t now_us);
/* trust: PEM of the authorities, one of which must have signed it for servers. The names must be
 * these, no fewer and no others. */
const char *cert_leaf_problem(const struct cert_pair *leaf, const struct cert_names *names,
                              const char *trust, int64_t now_us);

/* Returns false for texts that cannot be read, and for NULL. */
bool cert_is_signed_by(const char *cert, const char *ca);

/* The first of the text in OpenSSL's own form, or the text if it has none; NULL gives NULL. */
const char *cert_first(struct arena *arena, const char *pem);

/* One PEM text each, in OpenSSL's own form, so that equal certificates are equal texts. */
#define CERT_MAX_LIST 8
struct cert_list {
    const char *items[CERT_MAX_LIST];
    size_t len;
};

/* Adds the authorities of the text that have not expired at now_us and are not in the list. Ignores
 * authorities that do not fit or cannot be read. pem may be NULL. */
void cert_list_add(struct arena *arena, struct cert_list *list, const char *pem, int64_t now_us);
const char *cert_list_text(struct arena *arena, const struct cert_list *list);
