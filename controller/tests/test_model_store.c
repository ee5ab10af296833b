#include "common/api/kinds.h"
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/fake_api.h"
#include "common/tests/suite.h"
#include "controller/blobs/model_store.h"

#define CHUNK ((size_t)768 << 10) /* of the configmap store */

static struct arena *arena;
static struct error err;
static struct fake_api *api;
static struct kube_client *client;
static struct model_store *store;
static const struct model_scope JOB = { &KIND_FEDERATEDJOB,
                                        { "ns", "mnist" },
                                        "11111111-0000-0000-0000-000000000000" };
static const struct model_scope ROUND = { &KIND_TRAININGROUND,
                                          { "ns", "mnist" },
                                          "22222222-0000-0000-0000-000000000000" };
static const struct model_scope ELSEWHERE = { &KIND_FEDERATEDJOB,
                                              { "other", "mnist" },
                                              "33333333-0000-0000-0000-000000000000" };

static void set_up(void)
{
    json_init();
    arena = arena_create();
    err = (struct error){ 0 };
    api = fake_api_create();
    client = kube_client_create_with(fake_api_roundtrip, api);
    store = model_store_configmap_create(client);
}

static void tear_down(void)
{
    model_store_destroy(store);
    kube_client_destroy(client);
    fake_api_destroy(api);
    arena_destroy(arena);
}

TEST_GROUP("configmap", set_up, tear_down);

/* Bytes that differ from one place to the next, and with the seed. */
static char *bytes_of(size_t len, unsigned seed)
{
    char *bytes = arena_alloc(arena, len + 1, 1);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 31 + i / 251 + seed);
    return bytes;
}

static const char *put(const struct model_scope *scope, const char *bytes, size_t len)
{
    char *reference = arena_alloc(arena, MODEL_REFERENCE_LEN, 1);
    int r = model_store_put(store, scope, bytes, len, reference, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    return reference;
}

static int get(const struct model_scope *scope, const char *reference, const char *bytes,
               size_t len)
{
    CLEANUP(arena_destroyp) struct arena *own = arena_create();
    const char *back;
    size_t back_len;
    int r = model_store_get(store, own, scope, reference, &back, &back_len, &err);

    if (r == 0) {
        ck_assert_uint_eq(back_len, len);
        ck_assert(memcmp(back, bytes, len) == 0);
    }
    return r;
}

static int note(void *ctx, const cJSON *item, struct error *error UNUSED)
{
    const char **names = ctx;

    *names = arena_printf(arena, "%s %s", *names,
                          json_string(json_path(item, "metadata", "name", NULL), ""));
    return 0;
}

static size_t requests(void)
{
    struct fake_request *log;

    return fake_api_requests(api, arena, &log);
}

/* Names of all ConfigMaps of the namespace. */
static const char *config_maps(const char *ns)
{
    const struct kube_list_options options = { .ns = ns };
    const char *names = "";

    ck_assert_int_eq(kube_list(client, &KIND_CONFIGMAP, &options, note, &names, &err), 0);
    return names;
}

static const cJSON *config_map(const char *name)
{
    struct kube_name key;

    ck_assert(kube_name_set(&key, "ns", name));
    return fake_api_get(api, arena, &KIND_CONFIGMAP, &key);
}

static const size_t SIZES[] = { 1, CHUNK - 1, CHUNK, CHUNK + 1, MODEL_CONFIGMAP_MAX };

TEST_EACH(a_model_of_any_size_that_is_allowed_comes_back, SIZES)
{
    const char *bytes = bytes_of(SIZES[_i], 0);
    const char *reference = put(&JOB, bytes, SIZES[_i]);

    ck_assert(str_has_prefix(reference, "model://sha256:"));
    ck_assert_msg(get(&JOB, reference, bytes, SIZES[_i]) == 0, "%s", err.message);
    ck_assert_str_eq(put(&JOB, bytes, SIZES[_i]), reference); /* twice is as once */
    ck_assert_int_eq(get(&JOB, reference, bytes, SIZES[_i]), 0);
}

TEST(a_model_that_is_too_large_is_refused_before_anything_is_written)
{
    char reference[MODEL_REFERENCE_LEN];
    const char *bytes = bytes_of(MODEL_CONFIGMAP_MAX + 1, 0);

    ck_assert_int_eq(model_store_put(store, &JOB, bytes, MODEL_CONFIGMAP_MAX + 1, reference, &err),
                     -ERROR_TOO_LARGE);
    ck_assert_str_eq(err.message, "model has 8388609 bytes, the configmap store takes 8388608");
    ck_assert_uint_eq(requests(), 0);
}

TEST(chunks_are_immutable_and_die_with_their_owner)
{
    const char *bytes = bytes_of(CHUNK + 5, 0);
    const char *reference = put(&JOB, bytes, CHUNK + 5);
    const char *digest = model_reference_digest(reference);

    ck_assert_str_eq(config_maps("ns"),
                     arena_printf(arena,
                                  " mnist-model-11111111-%.16s-0 mnist-model-11111111-%.16s-1",
                                  digest, digest));

    const cJSON *chunk = config_map(arena_printf(arena, "mnist-model-11111111-%.16s-1", digest));
    ck_assert_str_eq(kube_controller_uid(chunk), JOB.uid);
    ck_assert(json_bool(json_get(chunk, "immutable"), false));
    ck_assert_str_eq(
        json_string(json_path(json_first(json_path(chunk, "metadata", "ownerReferences", NULL)),
                              "kind", NULL),
                    ""),
        "FederatedJob");
}

/* Whoever dies while storing leaves nothing that could be taken for a model. */
TEST_TIMES(a_put_that_dies_anywhere_is_whole_or_not_there_and_is_completed_later, FAKE_FAILURES)
{
    const size_t len = 2 * CHUNK + 7;

    for (unsigned k = 1; k <= 4; k++) {
        char reference[MODEL_REFERENCE_LEN];

        tear_down();
        set_up();
        const char *bytes = bytes_of(len, 0);
        fake_api_fail(api, k, (enum fake_failure)_i);
        int r = model_store_put(store, &JOB, bytes, len, reference, &err);
        ck_assert_int_eq(r < 0, k <= 3);
        model_reference(bytes, len, reference);
        fake_api_fail(api, 0, FAKE_REFUSED);

        int there = get(&JOB, reference, bytes, len);
        ck_assert_int_eq(there, k <= 2 || (k == 3 && _i != FAKE_LOST_REPLY) ? -ERROR_NOT_FOUND : 0);
        ck_assert_str_eq(put(&JOB, bytes, len), reference);
        ck_assert_int_eq(get(&JOB, reference, bytes, len), 0);
    }
}

TEST(what_is_not_kept_is_removed_and_nothing_else)
{
    const char *large = bytes_of(CHUNK + 1, 1), *small = bytes_of(100, 2);
    const char *old = put(&JOB, large, CHUNK + 1);
    const char *kept = put(&JOB, small, 100);
    const char *update = put(&ROUND, large, CHUNK + 1);
    const char *const keep[] = { kept, "model://sha256:none" };

    ck_assert_int_eq(model_store_gc(store, &JOB, keep, 2, &err), 0);
    ck_assert_int_eq(get(&JOB, old, large, CHUNK + 1), -ERROR_NOT_FOUND);
    ck_assert_int_eq(get(&JOB, kept, small, 100), 0);
    ck_assert_int_eq(get(&ROUND, update, large, CHUNK + 1), 0);

    ck_assert_int_eq(model_store_gc(store, &ROUND, NULL, 0, &err), 0);
    ck_assert_int_eq(model_store_gc(store, &JOB, NULL, 0, &err), 0);
    ck_assert_str_eq(config_maps("ns"), "");
}

TEST_TIMES(a_collection_that_dies_anywhere_leaves_whole_models_or_none_and_is_completed_later,
           FAKE_FAILURES)
{
    for (unsigned k = 1; k <= 6; k++) {
        tear_down();
        set_up();
        const char *large = bytes_of(2 * CHUNK + 1, 1), *small = bytes_of(100, 2);
        const char *old = put(&JOB, large, 2 * CHUNK + 1);
        const char *kept = put(&JOB, small, 100);

        fake_api_fail(api, k, (enum fake_failure)_i);
        int r = model_store_gc(store, &JOB, &kept, 1, &err);
        fake_api_fail(api, 0, FAKE_REFUSED);
        ck_assert_int_eq(r < 0, k <= 4);

        int there = get(&JOB, old, large, 2 * CHUNK + 1);
        ck_assert(there == 0 || there == -ERROR_NOT_FOUND);
        ck_assert_int_eq(model_store_gc(store, &JOB, &kept, 1, &err), 0);
        ck_assert_str_eq(config_maps("ns"), arena_printf(arena, " mnist-model-11111111-%.16s-0",
                                                         model_reference_digest(kept)));
        ck_assert_int_eq(get(&JOB, kept, small, 100), 0);
    }
}

TEST(a_half_stored_model_is_garbage_too)
{
    char reference[MODEL_REFERENCE_LEN];
    const char *bytes = bytes_of(2 * CHUNK, 0);

    fake_api_fail(api, 2, FAKE_REFUSED);
    ck_assert_int_lt(model_store_put(store, &JOB, bytes, 2 * CHUNK, reference, &err), 0);
    ck_assert_str_ne(config_maps("ns"), "");
    ck_assert_int_eq(model_store_gc(store, &JOB, NULL, 0, &err), 0);
    ck_assert_str_eq(config_maps("ns"), "");
}

TEST(the_model_of_another_job_is_found_in_the_namespace_and_only_there)
{
    const char *bytes = bytes_of(CHUNK + 1, 0), *back;
    const char *reference = put(&JOB, bytes, CHUNK + 1);
    size_t len;

    ck_assert_int_eq(get(&ELSEWHERE, reference, bytes, CHUNK + 1), -ERROR_NOT_FOUND);
    ck_assert_int_eq(model_store_find(store, arena, "ns", reference, &back, &len, &err), 0);
    ck_assert_uint_eq(len, CHUNK + 1);
    ck_assert(memcmp(back, bytes, len) == 0);
    ck_assert_int_eq(model_store_find(store, arena, "other", reference, &back, &len, &err),
                     -ERROR_NOT_FOUND);
}

/* The same object, changed, or somebody else's under the name. */
static void replace(const char *name, const char *uid, const char *base64)
{
    const cJSON *there = config_map(name);
    cJSON *copy = arena_own(arena, json_copy(there), json_free);
    cJSON *metadata = arena_own(arena, json_copy(json_get(there, "metadata")), json_free);
    cJSON *data = json_object(arena);
    cJSON *references =
        arena_own(arena, json_copy(json_get(metadata, "ownerReferences")), json_free);
    cJSON *reference = arena_own(arena, json_copy(json_first(references)), json_free);
    cJSON *list = json_array(arena);

    json_set_string(reference, "uid", uid);
    json_add(list, json_copy(reference));
    json_set_copy(metadata, "ownerReferences", list);
    json_set_copy(copy, "metadata", metadata);
    json_set_string(data, "chunk", base64);
    json_set_copy(copy, "binaryData", data);
    fake_api_put(api, &KIND_CONFIGMAP, copy);
}

TEST(bytes_that_were_changed_are_never_a_model)
{
    const char *reference = put(&JOB, "[1,2]", 5), *back;
    size_t len;
    const char *name =
        arena_printf(arena, "mnist-model-11111111-%.16s-0", model_reference_digest(reference));

    replace(name, JOB.uid, "WzEsM10="); /* [1,3] */
    ck_assert_int_eq(get(&JOB, reference, "[1,2]", 5), -ERROR_INTERNAL);
    ck_assert_int_eq(model_store_find(store, arena, "ns", reference, &back, &len, &err),
                     -ERROR_INTERNAL);
    replace(name, JOB.uid, "no base64");
    ck_assert_int_eq(get(&JOB, reference, "[1,2]", 5), -ERROR_INTERNAL);
}

TEST(a_config_map_of_somebody_else_is_neither_read_nor_overwritten)
{
    char again[MODEL_REFERENCE_LEN];
    const char *reference = put(&JOB, "[1,2]", 5);
    const char *name =
        arena_printf(arena, "mnist-model-11111111-%.16s-0", model_reference_digest(reference));

    replace(name, ROUND.uid, "WzEsMl0=");
    ck_assert_int_eq(get(&JOB, reference, "[1,2]", 5), -ERROR_EXISTS);
    ck_assert_int_eq(model_store_put(store, &JOB, "[1,2]", 5, again, &err), -ERROR_EXISTS);
    ck_assert_int_eq(model_store_gc(store, &JOB, NULL, 0, &err), 0);
    ck_assert_ptr_nonnull(config_map(name));
}

static const char *const NO_REFERENCES[] = {
    "",
    "model://",
    "model://sha256:",
    "model://md5:00",
    "model://sha256:0000000000000000000000000000000000000000000000000000000000000",
    "model://sha256:000000000000000000000000000000000000000000000000000000000000000G",
    "model://sha256:00000000000000000000000000000000000000000000000000000000000000001",
};

TEST_EACH(what_is_no_reference_is_said, NO_REFERENCES)
{
    const char *back;
    size_t len;

    ck_assert_int_eq(model_store_get(store, arena, &JOB, NO_REFERENCES[_i], &back, &len, &err),
                     -ERROR_INVALID);
    ck_assert_int_eq(model_store_find(store, arena, "ns", NO_REFERENCES[_i], &back, &len, &err),
                     -ERROR_INVALID);
    ck_assert_uint_eq(requests(), 0);
}
