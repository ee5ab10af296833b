/*
 * WebAssembly modules for Tasks: pulled from a registry once, checked, and kept in a folder.
 *
 * A worker says what a Task needs (wasm_modules_want, wasm_modules_put) and has an answer at once; two threads of this
 * service pull. The service wakes the Task when another answer is possible. Nothing here knows an API server, a broker
 * or a device.
 *
 *  1. A READY module is in the folder, has the digest that it is called by, was hashed in this process, passed the
 *     checks of signatures, and may be read by this Task. It stays until the Task is released.
 *  2. No function but wasm_modules_create, wasm_modules_stop and wasm_modules_read waits for network or disk;
 *     wasm_modules_put writes its bytes to the page cache.
 *  3. All functions but create, start, stop and destroy are for any thread. No lock is held during a callback.
 *  4. Digests are texts "sha256:<64 lower-case digits>", of modules as of manifests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/api/reasons.h"
#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/str.h"
#include "common/kube/object.h"

struct cJSON;

/* Values of the flags; all texts outlive the service. */
struct wasm_modules_settings {
    struct str_list registries; /* --module-registries; not empty */
    const char *cache_dir;      /* --module-cache-dir */
    int64_t cache_bytes;        /* --module-cache-bytes */
    int64_t max_bytes;          /* --module-max-bytes, of one module */
    const char *docker_config;  /* --module-docker-config; NULL: none */
    const char *public_keys;    /* --module-public-keys; NULL: nothing needs a signature */
    const char *ca_file;        /* --module-ca-file; NULL: the system's authorities */
};

/* The world of the service. read_secret is called on its own threads, wake on any. */
struct wasm_modules_host {
    void *ctx;
    const struct clock *clock;
    /* Reads a Secret; *ret is in the arena. ERROR_NOT_FOUND and ERROR_FORBIDDEN fail the Tasks that name it; every other
     * error is tried again. May block for as long as one request to the API server. */
    int (*read_secret)(void *ctx, struct arena *arena, const struct kube_name *name,
                       const struct cJSON **ret, struct error *err);
    /* Another answer to this Task is possible: its worker calls wasm_modules_want again. Must not block, and may be
     * called once too often. */
    void (*wake)(void *ctx, const struct kube_name *task);
};

struct wasm_modules;

/* Checks the flags together with the files and the folder that they name; makes the folder. ERROR_INVALID names the
 * flag: the program exits with 2. */
int wasm_modules_check(const struct wasm_modules_settings *settings, struct error *err) MUST_CHECK;

/* Takes the folder for this process, empties its tmp/ and adds up sizes. ERROR_INVALID: as wasm_modules_check, or
 * another process has the folder. */
int wasm_modules_create(const struct wasm_modules_settings *settings,
                        const struct wasm_modules_host *host, struct wasm_modules **ret,
                        struct error *err) MUST_CHECK;
int wasm_modules_start(struct wasm_modules *modules, struct error *err) MUST_CHECK;
/* Cuts transfers and joins the threads; blocks for about a second. After it every answer is PENDING. Idempotent. */
void wasm_modules_stop(struct wasm_modules *modules);
void wasm_modules_destroy(struct wasm_modules *modules); /* after stop; NULL is fine */

enum wasm_module_state {
    WASM_MODULE_PENDING, /* the Task is woken when this changes */
    WASM_MODULE_RESOLVED, /* the digest that a tag stands for: write `manifest` down and ask with it */
    WASM_MODULE_READY,
    WASM_MODULE_FAILED,
};

struct wasm_module_wish {
    struct kube_name task;
    const char *uid;         /* of the Task */
    const char *reference;   /* spec.imageUrl */
    const char *manifest;    /* status.module.manifest; NULL or "": not chosen yet */
    struct str_list secrets; /* names of spec.imagePullSecrets, in their order */
};

/* Texts are in the arena of the caller. */
struct wasm_module_answer {
    enum wasm_module_state state;
    /*
     * PENDING: the reason of Started=False: PullingModule, RegistryUnavailable or CacheFull. The service tries for ever;
     * the caller fails the Task with RegistryUnavailable once --module-pull-timeout has passed since its scheduledAt, and
     * appends the message.
     * FAILED: RegistryNotAllowed, ModuleNotFound, ModuleForbidden, PullSecretMissing, ModuleTooLarge, ModuleInvalid or
     * ModuleUnsigned.
     */
    enum reason reason;
    const char *message; /* PENDING, FAILED: names host, repository and what to correct */
    bool is_final;       /* FAILED: another attempt cannot help, spec.backoffLimit does not count */
    const char *manifest;   /* RESOLVED, READY */
    const char *digest;     /* READY: of the module */
    int64_t bytes;          /* READY: of the module */
    const char *repository; /* READY: "<host>/<path>", as the reference names it; NULL: of a file */
    bool
        was_pulled; /* READY: it was not in the folder when this Task asked first (Event ModulePulled) */
};

/*
 * Says what a Task needs, and returns how far it is. Idempotent: the same wish of a Task joins what it has started. A
 * failure is the answer until the Task is released; then the same wish begins again. A reference with a digest, or a wish
 * with a manifest, is never RESOLVED.
 */
void wasm_modules_want(struct wasm_modules *modules, struct arena *arena,
                       const struct wasm_module_wish *wish, struct wasm_module_answer *ret);

/* Puts bytes of spec.file into the folder by their digest, for as long as the Task is not released. READY, PENDING with
 * CacheFull (nothing wakes the Task: ask again after 30 s), or FAILED with ModuleTooLarge, or ModuleUnsigned if
 * signatures are needed. */
void wasm_modules_put(struct wasm_modules *modules, struct arena *arena, const char *uid,
                      const void *bytes, size_t len, struct wasm_module_answer *ret);
/* Whether bytes of this Task are there since wasm_modules_put: READY as it was answered then. false: put them. */
bool wasm_modules_has(struct wasm_modules *modules, struct arena *arena, const char *uid,
                      struct wasm_module_answer *ret);

/* The Task needs nothing any more: it runs, ended, is suspended or gone. A pull that no Task wants ends within 10 s.
 * A uid without a wish is fine. */
void wasm_modules_release(struct wasm_modules *modules, const char *uid);

/* Fills the buffer with len bytes of a READY module from an offset. ERROR_NOT_FOUND: the file is gone, or not what was
 * hashed; wake the Tasks that wait for it, they ask again. ERROR_UNAVAILABLE: the disk refuses. */
int wasm_modules_read(struct wasm_modules *modules, const char *digest, int64_t offset, void *ret,
                      size_t len, struct error *err) MUST_CHECK;

/* A health_check_fn for /readyz; ctx is the service. Not ready while the file of public keys cannot be used. */
int wasm_modules_ready(void *ctx, char *why, size_t size);
