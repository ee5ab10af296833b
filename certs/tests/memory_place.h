/* Pairs and one bundle in memory: a place whose writes can fail. For tests. */
#pragma once

#include "certs/keeper.h"
#include "common/tests/fake_clock.h"

struct memory_place {
    struct arena *arena; /* of what is kept */
    struct cert_pair ca;
    const char *trust;
    struct cert_pair leaf;
    const char *bundles[2];
    size_t bundle_count;

    unsigned writes;
    unsigned fail;  /* this write, counted from 1, fails; 0: none */
    bool fail_late; /* it fails when it has been done */
};

struct cert_place memory_place(struct memory_place *memory);

/* A hook of namespace system; an authority for 30 days, certificates for 3, 10 minutes together. */
struct cert_policy memory_policy(struct arena *arena);
