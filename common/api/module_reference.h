/* References to modules in OCI registries: HOST[:PORT]/PATH[:TAG][@sha256:HEX]. Pure; any thread. */
#pragma once

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/error.h"

#define MODULE_REFERENCE_MAX 1024 /* characters */

/* "sha256:" and 64 lower-case digits. */
#define MODULE_DIGEST_PREFIX "sha256:"
bool module_digest_is_valid(const char *text); /* NULL is none */

struct module_reference {
    const char *host;       /* with its port, as it is written */
    const char *path;       /* the name of the repository on the host */
    const char *repository; /* "<host>/<path>" */
    const char *tag;        /* "latest" without tag and digest; NULL: the digest counts */
    const char *digest;     /* NULL: the tag counts */
};

/* Reads a reference by the grammar of the distribution specification; texts of *ret are in the arena. The host must hold
 * a '.' or ':' or be "localhost". ERROR_INVALID: the message is what the reference must be, and quotes nothing of it. */
int module_reference_parse(struct arena *arena, const char *text, struct module_reference *ret,
                           struct error *err) MUST_CHECK;
