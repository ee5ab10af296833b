/* The caBundle of the two webhook configurations of one name. */
#pragma once

#include "certs/plan.h"
#include "common/kube/client.h"

#define CONFIGURATION_KINDS 2

struct configurations {
    struct kube_client *client;
    const char *name;
    const char *service; /* entries with another Service are ignored */
    const char *ns;
    bool optional; /* without any of ours there is still something to do */
    const cJSON *found[CONFIGURATION_KINDS]; /* of the last load, in its arena; NULL: not there */
};

/*
 * Adds to *ret the bundle of each entry that asks our Service, or a URL. keep_out is set when one of
 * the configurations is cert-manager's business (an annotation cert-manager.io/inject-…), and,
 * unless they are optional, when there is none, or none of ours in them.
 */
int configurations_load(struct configurations *self, struct arena *arena, struct cert_observed *ret,
                        struct error *err) MUST_CHECK;
/* Puts the bundle into these entries, and touches nothing else. ERROR_CONFLICT: one of the
 * configurations is not as it was loaded. */
int configurations_save(struct configurations *self, struct arena *arena, const char *bundle,
                        struct error *err) MUST_CHECK;

/* An object as a tree of the arena; *ret NULL: it is not there. */
int configurations_read(struct kube_client *client, struct arena *arena,
                        const struct kube_kind *kind, const char *ns, const char *name,
                        const cJSON **ret, struct error *err) MUST_CHECK;
