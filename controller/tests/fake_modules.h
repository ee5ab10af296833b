/* The functions of modules.h, by which a test says what registries have. Defines them: for one file of a program, which
 * then has no others. */
#pragma once

#include <string.h>

#include "common/base/digest.h"
#include "common/json/json.h"
#include "common/tests/suite.h"
#include "controller/registry/wasm_modules.h"

#define FAKE_REPOSITORY "registry.example/acme/add"
#define FAKE_MAX_BYTES ((size_t)4 << 20)

/* A module is made of its manifest: other manifests have other modules. */
static struct fake_modules {
    unsigned tag;        /* the manifest that the tag stands for */
    bool moves;          /* it stands for the next one after each question */
    enum reason pending; /* REASON_NONE: what is asked for is there */
    enum reason failing; /* REASON_NONE: likewise */
    size_t bytes;        /* of each module */
    bool lies;           /* what is read is another module */
    bool was_pulled;
    const char *file_uid; /* the Task whose file is kept; NULL: none */
    char file[FAKE_MAX_BYTES];
    size_t file_len;
    unsigned resolved, wanted, released;
    bool is_wanted;
} fake_modules;

static UNUSED void fake_modules_reset(void)
{
    fake_modules.tag = 1;
    fake_modules.moves = fake_modules.lies = fake_modules.was_pulled = false;
    fake_modules.pending = fake_modules.failing = REASON_NONE;
    fake_modules.bytes = 64;
    fake_modules.file_uid = NULL;
    fake_modules.resolved = fake_modules.wanted = fake_modules.released = 0;
    fake_modules.is_wanted = false;
}

static const char *fake_digest(struct arena *arena, const void *bytes, size_t len)
{
    char hex[SHA256_HEX_LEN];

    return arena_printf(arena, "sha256:%s", sha256_hex(bytes, len, hex));
}

static const char *fake_manifest(struct arena *arena, unsigned tag)
{
    const char *text = arena_printf(arena, "manifest %u", tag);

    return fake_digest(arena, text, strlen(text));
}

static char *fake_bytes(struct arena *arena, const char *manifest)
{
    char *bytes = arena_alloc(arena, fake_modules.bytes, 1);

    memset(bytes, 'x', fake_modules.bytes);
    memcpy(bytes, "\0asm", 4);
    memcpy(bytes + 4, manifest + 7, fake_modules.bytes < 60 ? fake_modules.bytes - 4 : 56);
    return bytes;
}

static const char *fake_module_digest(struct arena *arena, const char *manifest)
{
    return fake_digest(arena, fake_bytes(arena, manifest), fake_modules.bytes);
}

void wasm_modules_want(struct wasm_modules *modules UNUSED, struct arena *arena,
                       const struct wasm_module_wish *wish, struct wasm_module_answer *ret)
{
    const char *at = strchr(wish->reference, '@');
    const char *manifest = wish->manifest ? wish->manifest : at ? at + 1 : NULL;

    *ret = (struct wasm_module_answer){ .state = WASM_MODULE_PENDING,
                                        .reason = fake_modules.pending,
                                        .message = "registry.example is asked" };
    fake_modules.wanted++;
    fake_modules.is_wanted = true;
    if (fake_modules.failing) {
        ret->state = WASM_MODULE_FAILED;
        ret->reason = fake_modules.failing;
        ret->message = "registry.example says no";
        return;
    }
    if (fake_modules.pending)
        return;
    ret->reason = REASON_NONE;
    if (!manifest) {
        ret->state = WASM_MODULE_RESOLVED;
        ret->manifest = fake_manifest(arena, fake_modules.tag);
        fake_modules.resolved++;
        fake_modules.tag += fake_modules.moves;
        return;
    }
    ret->state = WASM_MODULE_READY;
    ret->manifest = arena_strdup(arena, manifest);
    ret->digest = fake_module_digest(arena, manifest);
    ret->bytes = (int64_t)fake_modules.bytes;
    ret->repository = FAKE_REPOSITORY;
    ret->was_pulled = fake_modules.was_pulled;
}

static void fake_file(struct arena *arena, struct wasm_module_answer *ret)
{
    *ret = (struct wasm_module_answer){
        .state = WASM_MODULE_READY,
        .digest = fake_digest(arena, fake_modules.file, fake_modules.file_len),
        .bytes = (int64_t)fake_modules.file_len,
    };
}

void wasm_modules_put(struct wasm_modules *modules UNUSED, struct arena *arena, const char *uid,
                      const void *bytes, size_t len, struct wasm_module_answer *ret)
{
    static char kept[64];

    if (fake_modules.pending) {
        *ret = (struct wasm_module_answer){ .reason = fake_modules.pending, .message = "full" };
        return;
    }
    ck_assert_uint_le(len, FAKE_MAX_BYTES);
    memcpy(fake_modules.file, bytes, len);
    fake_modules.file_len = len;
    ck_assert(str_copy(kept, sizeof(kept), uid));
    fake_modules.file_uid = kept;
    fake_modules.is_wanted = true;
    fake_file(arena, ret);
}

bool wasm_modules_has(struct wasm_modules *modules UNUSED, struct arena *arena, const char *uid,
                      struct wasm_module_answer *ret)
{
    if (!str_equal(fake_modules.file_uid, uid))
        return false;
    fake_file(arena, ret);
    return true;
}

void wasm_modules_release(struct wasm_modules *modules UNUSED, const char *uid)
{
    fake_modules.released++;
    fake_modules.is_wanted = false;
    if (str_equal(fake_modules.file_uid, uid))
        fake_modules.file_uid = NULL;
}

/* The digest of a module says which one it is, among those that tags have stood for. */
int wasm_modules_read(struct wasm_modules *modules UNUSED, const char *digest, int64_t offset,
                      void *ret, size_t len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (str_equal(digest, fake_digest(arena, fake_modules.file, fake_modules.file_len))) {
        memcpy(ret, fake_modules.file + offset, len);
        return 0;
    }
    for (unsigned tag = 1; tag <= fake_modules.tag; tag++) {
        const char *manifest = fake_manifest(arena, tag);

        if (!str_equal(digest, fake_module_digest(arena, manifest)))
            continue;
        if (fake_modules.lies)
            manifest = fake_manifest(arena, tag + 1);
        memcpy(ret, fake_bytes(arena, manifest) + offset, len);
        return 0;
    }
    return error_set(err, ERROR_NOT_FOUND, "no module %s", digest);
}

int wasm_modules_check(const struct wasm_modules_settings *settings UNUSED,
                       struct error *err UNUSED)
{
    return 0;
}

int wasm_modules_create(const struct wasm_modules_settings *settings UNUSED,
                        const struct wasm_modules_host *host UNUSED, struct wasm_modules **ret,
                        struct error *err UNUSED)
{
    *ret = NULL;
    return 0;
}

int wasm_modules_start(struct wasm_modules *modules UNUSED, struct error *err UNUSED)
{
    return 0;
}

void wasm_modules_stop(struct wasm_modules *modules UNUSED)
{
}

void wasm_modules_destroy(struct wasm_modules *modules UNUSED)
{
}

int wasm_modules_ready(void *ctx UNUSED, char *why UNUSED, size_t size UNUSED)
{
    return 1;
}
