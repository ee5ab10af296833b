/* The layer of a manifest and the entry of an index. */
#include "controller/registry/manifest.h"

#include <string.h>

#include "common/base/buf.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

#define D(c) "sha256:" c c c c c c c c c c c c c c c c
#define A "aaaa"
#define B "bbbb"
#define C "cccc"
#define OCI "application/vnd.oci.image.manifest.v1+json"
#define DOCKER "application/vnd.docker.distribution.manifest.v2+json"
#define INDEX "application/vnd.oci.image.index.v1+json"
#define LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define WASM "application/wasm"
#define OLD "application/vnd.wasm.content.layer.v1+wasm"
#define TAR "application/vnd.oci.image.layer.v1.tar+gzip"
#define LAYER(type, hex, size)                                                                     \
    "{\"mediaType\":\"" type "\",\"digest\":\"" D(hex) "\",\"size\":" size "}"
#define ENTRY(os, architecture, hex)                                                               \
    "{\"mediaType\":\"" OCI "\",\"digest\":\"" D(hex) "\",\"size\":5,\"platform\":{\"os\":\"" os   \
                                                      "\",\"architecture\":\"" architecture "\"}}"

TEST_GROUP("module manifest", arena_set_up, arena_tear_down);

static const struct {
    const char *type, *text, *digest;
    int64_t bytes;
    bool is_index;
} CHOSEN[] = {
    { OCI, "{\"layers\":[" LAYER(WASM, A, "7") "]}", D(A), 7, false },
    { DOCKER "; charset=utf-8", "{\"layers\":[" LAYER(WASM, A, "0") "]}", D(A), 0, false },
    /* the document counts more than the header */
    { "text/html", "{\"mediaType\":\"" OCI "\",\"layers\":[" LAYER(WASM, A, "7") "]}", D(A), 7,
      false },
    /* by type, then by size */
    { OCI,
      "{\"layers\":[" LAYER(OLD, A, "9") "," LAYER(WASM, B, "7") "," LAYER("x/y", C, "99") "]}",
      D(B), 7, false },
    { OCI, "{\"layers\":[" LAYER("x/y", C, "99") "," LAYER(OLD, A, "9") "]}", D(A), 9, false },
    { OCI,
      "{\"layers\":[" LAYER("x/y", A, "8") "," LAYER("x/z", B, "9") "," LAYER(TAR, C, "99") "]}",
      D(B), 9, false },
    { OCI, "{\"layers\":[" LAYER(WASM, A, "8") "," LAYER(WASM, B, "9") "," LAYER(OLD, C, "1") "]}",
      D(C), 1, false },
    { OCI, "{\"layers\":[" LAYER(WASM, A, "8") "," LAYER(WASM, B, "9") "]}", D(B), 9, false },
    /* "tar" as a part of another word */
    { OCI, "{\"layers\":[" LAYER("application/vnd.target", A, "8") "]}", D(A), 8, false },
    { INDEX, "{\"manifests\":[" ENTRY("linux", "arm64", A) "]}", D(A), 5, true },
    { LIST, "{\"manifests\":[" ENTRY("linux", "amd64", A) "," ENTRY("wasip1", "wasm", B) "]}", D(B),
      5, true },
    { INDEX,
      "{\"manifests\":[" ENTRY("wasi", "wasm32", A) "," ENTRY("wasip2", "wasm", B) "," ENTRY(
          "wasip1", "wasm", C) "]}",
      D(C), 5, true },
    { INDEX, "{\"manifests\":[" ENTRY("wasi", "wasm32", A) "," ENTRY("wasip2", "wasm", B) "]}",
      D(B), 5, true },
    { INDEX, "{\"manifests\":[" ENTRY("unknown", "unknown", A) "," ENTRY("linux", "amd64", B) "]}",
      D(B), 5, true },
    { INDEX, "{\"manifests\":[{\"digest\":\"" D(A) "\",\"size\":5}]}", D(A), 5, true },
};

TEST_EACH(document_leads_to_one_layer_or_entry, CHOSEN)
{
    struct module_choice choice;
    struct error err = { 0 };

    ck_assert_msg(module_manifest_choose(arena, CHOSEN[_i].type, CHOSEN[_i].text,
                                         strlen(CHOSEN[_i].text), &choice, &err) == 0,
                  "%s", err.message);
    ck_assert_str_eq(choice.digest, CHOSEN[_i].digest);
    ck_assert_int_eq(choice.bytes, CHOSEN[_i].bytes);
    ck_assert_int_eq(choice.is_index, CHOSEN[_i].is_index);
}

static const struct {
    const char *type, *text, *message;
} REFUSED[] = {
    { OCI, "<html>", "cannot be read" },
    { OCI, "", "cannot be read" },
    { OCI, "{\"layers\":[],\"layers\":[]}", "cannot be read" },
    { NULL, "{\"layers\":[]}", "has a manifest of type ''" },
    { "text/html", "{\"layers\":[]}", "has a manifest of type 'text/html'" },
    { OCI "x", "{\"layers\":[]}", "has a manifest of type" },
    { OCI, "{}", "has no layers" },
    { OCI, "[]", "has no layers" },
    { OCI, "{\"layers\":[]}", "has no layers" },
    { OCI, "{\"layers\":\"x\"}", "has no layers" },
    { OCI, "{\"layers\":[" LAYER(TAR, A, "7") "," LAYER("application/x-tar", B, "7") "]}",
      "is a container image: push the module as application/wasm (has '" TAR
      "', 'application/x-tar')" },
    { OCI, "{\"layers\":[{\"mediaType\":\"" WASM "\"}]}", "without a sha256 digest and a size" },
    { OCI, "{\"layers\":[" LAYER(WASM, A, "-1") "]}", "without a sha256 digest and a size" },
    { OCI, "{\"layers\":[" LAYER(WASM, A, "1e300") "]}", "without a sha256 digest and a size" },
    { OCI, "{\"layers\":[" LAYER(WASM, A, "9223372036854775808") "]}",
      "without a sha256 digest and a size" },
    { OCI, "{\"layers\":[" LAYER(WASM, A, "1.5") "]}", "without a sha256 digest and a size" },
    { OCI, "{\"layers\":[{\"mediaType\":\"" WASM "\",\"digest\":\"sha512:aa\",\"size\":1}]}",
      "without a sha256 digest" },
    { INDEX, "{}", "has no entries" },
    { INDEX, "{\"manifests\":[" ENTRY("unknown", "unknown", A) "]}", "has no entries" },
    { INDEX, "{\"manifests\":[" ENTRY("linux", "amd64", A) "," ENTRY("js", "wasm", B) "]}",
      "without an entry of architecture wasm (has 'linux/amd64', 'js/wasm')" },
    { INDEX, "{\"manifests\":[{\"digest\":\"x\",\"size\":5}]}",
      "an entry without a sha256 digest" },
};

TEST_EACH(document_without_a_module_says_what_it_has, REFUSED)
{
    struct module_choice choice = { 0 };
    struct error err = { 0 };

    ck_assert_int_eq(module_manifest_choose(arena, REFUSED[_i].type, REFUSED[_i].text,
                                            strlen(REFUSED[_i].text), &choice, &err),
                     -ERROR_INVALID);
    ck_assert_msg(strstr(err.message, REFUSED[_i].message) != NULL, "%s", err.message);
    ck_assert_ptr_null(choice.digest);
}

TEST(document_that_is_deep_or_has_many_values_is_refused)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MODULE_MANIFEST_MAX);
    struct module_choice choice;
    struct error err = { 0 };

    for (int i = 0; i < 1000; i++)
        ck_assert(buf_append_string(&text, "["));
    for (int i = 0; i < 1000; i++)
        ck_assert(buf_append_string(&text, "]"));
    ck_assert_int_eq(module_manifest_choose(arena, OCI, text.data, text.len, &choice, &err),
                     -ERROR_INVALID);
    buf_clear(&text);
    ck_assert(buf_append_string(&text, "{\"layers\":[0"));
    for (int i = 0; i < 100000; i++)
        ck_assert(buf_append_string(&text, ",0"));
    ck_assert(buf_append_string(&text, "]}"));
    ck_assert_int_eq(module_manifest_choose(arena, OCI, text.data, text.len, &choice, &err),
                     -ERROR_INVALID);
}
