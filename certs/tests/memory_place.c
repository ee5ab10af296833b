#include "certs/tests/memory_place.h"

#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)

static int load(void *self, struct arena *arena UNUSED, struct cert_observed *ret,
                struct error *err UNUSED)
{
    const struct memory_place *memory = self;

    ret->ca = memory->ca;
    ret->trust = memory->trust;
    ret->leaf = memory->leaf;
    ret->bundles = memory->bundles;
    ret->bundle_count = memory->bundle_count;
    return 0;
}

/* false: the write is to fail, and not to be done. */
static bool begin(struct memory_place *memory)
{
    return ++memory->writes != memory->fail || memory->fail_late;
}

static int end(const struct memory_place *memory, struct error *err)
{
    if (memory->writes == memory->fail)
        return error_set(err, ERROR_TIMEOUT, "no answer");
    return 0;
}

static int save_ca(void *self, struct arena *arena UNUSED, const struct cert_pair *ca,
                   const char *trust, struct error *err)
{
    struct memory_place *memory = self;

    if (begin(memory)) {
        memory->ca.cert = arena_strdup(memory->arena, ca->cert);
        memory->ca.key = arena_strdup(memory->arena, ca->key);
        memory->trust = arena_strdup(memory->arena, trust);
    }
    return end(memory, err);
}

static int save_leaf(void *self, struct arena *arena UNUSED, const struct cert_pair *leaf,
                     struct error *err)
{
    struct memory_place *memory = self;

    if (begin(memory)) {
        memory->leaf.cert = arena_strdup(memory->arena, leaf->cert);
        memory->leaf.key = arena_strdup(memory->arena, leaf->key);
    }
    return end(memory, err);
}

static int save_bundles(void *self, struct arena *arena UNUSED, const char *trust,
                        struct error *err)
{
    struct memory_place *memory = self;

    if (begin(memory)) {
        for (size_t i = 0; i < memory->bundle_count; i++)
            memory->bundles[i] = arena_strdup(memory->arena, trust);
    }
    return end(memory, err);
}

struct cert_place memory_place(struct memory_place *memory)
{
    return (struct cert_place){ .self = memory,
                                .load = load,
                                .save_ca = save_ca,
                                .save_leaf = save_leaf,
                                .save_bundles = save_bundles };
}

struct cert_policy memory_policy(struct arena *arena)
{
    return (struct cert_policy){ .names = cert_names_of(arena, "hook", "system", NULL, 0),
                                 .ca_lifetime_us = 30 * DAY,
                                 .leaf_lifetime_us = 3 * DAY,
                                 .overlap_us = 600 * SECOND };
}
