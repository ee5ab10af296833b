/* Credentials for registries, from Secrets and files in the format of docker. Pure; any thread. Messages hold no values. */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/json/json.h"

#define REGISTRY_MAX_LOGINS 16

/* Values of "Authorization: Basic", the ones to try first in front. */
struct registry_logins {
    const char *items[REGISTRY_MAX_LOGINS];
    size_t len;
};

/*
 * Adds the entries of a docker config ({"auths": {…}}, or with is_legacy the object of entries alone) that are for this
 * host and path of a repository. A key is HOST[:PORT][/PATH] with or without a scheme; the longest path comes first.
 * Entries without both user and password are skipped, and those beyond REGISTRY_MAX_LOGINS. ERROR_INVALID: the text is
 * no such JSON.
 */
int registry_logins_add(struct arena *arena, const char *text, size_t len, bool is_legacy,
                        const char *host, const char *path, struct registry_logins *logins,
                        struct error *err) MUST_CHECK;

/* The same of a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg. ERROR_INVALID: it has another
 * type, or no valid value. The message follows the name of the Secret. */
int registry_logins_add_secret(struct arena *arena, const cJSON *secret, const char *host,
                               const char *path, struct registry_logins *logins,
                               struct error *err) MUST_CHECK;
