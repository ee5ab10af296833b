/* The work of one job of a puller: credentials, what is remembered, the pull, and what to remember of it. */
#pragma once

#include "controller/registry/memory.h"
#include "controller/registry/pull.h"
#include "controller/registry/wasm_modules.h"

/* Parts of the service; all are for any thread. */
struct fetch_means {
    struct pull_means pull;
    struct module_registries registries;
    const struct wasm_modules_settings *settings;
    const struct wasm_modules_host *host;
    struct memory *secrets; /* "<namespace>/<name>" -> JSON */
    struct memory
        *readers; /* a hash of login, repository and manifest: it has been read with that login */
};

/* The work to do. */
struct fetch_order {
    const char *reference; /* can be parsed, and is listed */
    const char *manifest;  /* digest; NULL: to be resolved */
    const char *ns;        /* of the Secrets */
    struct str_list secrets;
};

enum fetch_outcome {
    FETCH_DONE,
    FETCH_FAILED,
    FETCH_LATER,   /* the registry, or the API server, does not answer */
    FETCH_NO_ROOM, /* for `bytes` in the folder */
    FETCH_CANCELED,
};

struct fetch_result {
    enum fetch_outcome outcome;
    enum reason reason;     /* not of FETCH_DONE */
    const char *message;    /* likewise; in the arena */
    uint32_t retry_after_s; /* FETCH_LATER: as the server said */
    const char *manifest;   /* FETCH_DONE */
    const char *digest;     /* FETCH_DONE of a manifest: the module, pinned once */
    int64_t bytes;
    const char *signed_by;
    bool was_pulled;
    bool is_disk_full; /* FETCH_NO_ROOM: the limit of the folder has room, the disk refuses */
};

/* Blocks. keys may be NULL. */
void fetch_carry_out(const struct fetch_means *means, struct arena *arena,
                     const struct fetch_order *order, const struct public_keys *keys,
                     struct fetch_result *ret);

/* Finds and pins a module that is public, without a request and without waiting. false: run the order. */
bool fetch_public(const struct fetch_means *means, struct arena *arena,
                  const struct fetch_order *order, const struct public_keys *keys,
                  struct fetch_result *ret);
/* Copies a result with its texts: the arena of a run has manifests and credentials, too, and a result may be kept for
 * hours. */
void fetch_result_copy(struct arena *arena, const struct fetch_result *from,
                       struct fetch_result *ret);
