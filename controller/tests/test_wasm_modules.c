/* The service of modules: what Tasks are answered, and what is asked for at registries. */
#include <malloc.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "controller/tests/service_fixture.h"
#include "controller/tests/signer.h"

#define LARGE_MANIFEST (3 << 20)

TEST_GROUP("wasm modules", service_set_up, service_tear_down);

/* --- references ------------------------------------------------------------------------------- */

TEST(tag_is_resolved_then_its_module_is_pulled_once)
{
    const char *manifest = push(registry, "1", 1);

    await("a", TAG, NULL);
    ck_assert_int_eq(answer.state, WASM_MODULE_RESOLVED);
    ck_assert_str_eq(answer.manifest, manifest);
    await("a", TAG, manifest);
    expect_ready(manifest, 1);
    ck_assert(answer.was_pulled);
    ck_assert_str_eq(answer.repository, "r.example/acme/add");
    want_of("public", "a", TAG, manifest, false);
    expect_ready(manifest, 1);
    ck_assert_uint_eq(fake_registry_counts(registry).all, 3);

    want_of("public", "b", TAG, manifest, false); /* at once */
    expect_ready(manifest, 1);
    ck_assert(!answer.was_pulled);
    ck_assert_uint_eq(fake_registry_counts(registry).all, 3);
}

TEST(two_hundred_tasks_of_one_tag_cause_one_resolve_and_one_blob_request)
{
    const char *manifest = push(registry, "1", 1);

    for (int i = 0; i < 200; i++)
        want_of("public", arena_printf(arena, "t%d", i), TAG, NULL, false);
    for (int i = 0; i < 200; i++) {
        await(arena_printf(arena, "t%d", i), TAG, NULL);
        ck_assert_str_eq(answer.manifest, manifest);
    }
    for (int i = 0; i < 200; i++)
        want_of("public", arena_printf(arena, "t%d", i), TAG, manifest, false);
    for (int i = 0; i < 200; i++) {
        await(arena_printf(arena, "t%d", i), TAG, manifest);
        expect_ready(manifest, 1);
    }
    ck_assert_uint_eq(fake_registry_counts(registry).heads, 1);
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 1);
}

TEST(tag_that_moves_is_resolved_again_after_ten_seconds)
{
    const char *first = push(registry, "1", 1), *second;

    await("a", TAG, NULL);
    second = push(registry, "1", 2);
    await("b", TAG, NULL);
    ck_assert_str_eq(answer.manifest, first);
    fake_clock_advance(&clock_of_test, 10000);
    await("c", TAG, NULL);
    ck_assert_str_eq(answer.manifest, second);
    await("a", TAG, first); /* what was chosen stays */
    expect_ready(first, 1);
}

TEST(module_of_the_process_before_needs_no_registry)
{
    const char *manifest = arena_strdup(arena, push(registry, "1", 1));

    await("a", by_digest(manifest), NULL);
    restart_service();
    fake_registry_stop(registry);
    registry = NULL;
    await("a", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
    ck_assert(!answer.was_pulled);
}

TEST(registry_that_is_not_listed_is_not_asked)
{
    want_of("public", "a", "evil.example/acme/add:1", NULL, false);
    expect_failed(REASON_REGISTRY_NOT_ALLOWED, true,
                  "'evil.example/acme/add' is not listed in --module-registries");
    want_of("public", "a", "add:1", NULL, false);
    expect_failed(REASON_MODULE_INVALID, true, "spec.imageUrl must name its registry");
}

TEST(failure_lasts_until_the_task_is_released)
{
    await("a", TAG, NULL);
    expect_failed(REASON_MODULE_NOT_FOUND, false,
                  "with the tag or digest 1 is not in the registry");
    push(registry, "1", 1);
    want_of("public", "a", TAG, NULL, false);
    expect_failed(REASON_MODULE_NOT_FOUND, false, "");
    wasm_modules_release(modules, "a");
    await("a", TAG, NULL);
    ck_assert_int_eq(answer.state, WASM_MODULE_RESOLVED);
}

TEST(module_that_is_too_large_fails_for_good)
{
    char *bytes = arena_alloc(arena, MAX_BYTES + 1, 1);
    const char *manifest;

    memcpy(bytes, "\0asm", 4);
    manifest = fake_registry_push(registry, "1", bytes, MAX_BYTES + 1);
    await("a", by_digest(manifest), NULL);
    expect_failed(REASON_MODULE_TOO_LARGE, true, "has 6001 bytes, --module-max-bytes allows 6000");
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 0);
}

TEST(invalid_module_is_asked_for_once_more)
{
    const char *manifest = fake_registry_push(registry, "1", "no module", 9);

    await("a", by_digest(manifest), NULL);
    expect_failed(REASON_MODULE_INVALID, true, "is not WebAssembly");
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 2);
}

static const struct {
    int bytes;
    const char *message;
} LIES[] = {
    { 10, "sends more than the 10 bytes that its manifest states" },
    { MODULE_BYTES - 1, "sends more than the 4999 bytes that its manifest states" },
    { MODULE_BYTES + 1, "sends 5000 of the 5001 bytes that its manifest states" },
};

TEST_EACH(manifest_that_states_another_size_is_invalid, LIES)
{
    const char *layer, *text;

    push(registry, NULL, 1);
    layer = digest_of(1);
    text =
        arena_printf(arena,
                     "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"layers\":[{"
                     "\"mediaType\":\"application/wasm\",\"digest\":\"%s\",\"size\":%d}]}",
                     layer, LIES[_i].bytes);
    await("a", by_digest(fake_registry_push_document(registry, NULL, text, strlen(text))), NULL);
    expect_failed(REASON_MODULE_INVALID, true, LIES[_i].message);
}

#define INDEX_OF                                                                                   \
    "{\"mediaType\":\"application/"                                                                \
    "vnd.oci.image.index.v1+json\",\"manifests\":[{\"digest\":\"%s\","                             \
    "\"size\":1}]}"

TEST(index_in_an_index_is_invalid)
{
    const char *inner = arena_printf(arena, INDEX_OF, push(registry, "1", 1));

    inner = fake_registry_push_document(registry, NULL, inner, strlen(inner));

    const char *outer = arena_printf(arena, INDEX_OF, inner);

    await("a", by_digest(fake_registry_push_document(registry, NULL, outer, strlen(outer))), NULL);
    expect_failed(REASON_MODULE_INVALID, true, "has an index inside of its index");
}

/* --- registries that fail --------------------------------------------------------------------- */

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Many jobs may wait for a registry that sends large manifests and then fails. */
TEST(job_that_is_tried_again_keeps_no_manifest)
{
    const char *text = arena_printf(
        arena,
        "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"layers\":[{\"mediaType\":"
        "\"application/wasm\",\"digest\":\"%s\",\"size\":9}]}%*s",
        digest_of(1), LARGE_MANIFEST, "");
    const char *digest = fake_registry_push_document(registry, NULL, text, strlen(text));

    fake_registry_behave(registry, &(struct registry_manner){
                                       .fail_from = 2, .fail_count = 9, .fault = REGISTRY_IS_ILL });
    size_t before = heap_bytes();
    await_of("public", "a", by_digest(digest), NULL, false, REASON_REGISTRY_UNAVAILABLE);
    ck_assert_uint_le(heap_bytes(), before + LARGE_MANIFEST / 4);
}

TEST(registry_that_is_away_is_asked_again_after_five_seconds)
{
    const char *manifest = push(registry, "1", 1);

    fake_registry_behave(registry, &(struct registry_manner){
                                       .fail_from = 1, .fail_count = 1, .fault = REGISTRY_IS_ILL });
    await_of("public", "a", by_digest(manifest), NULL, false, REASON_REGISTRY_UNAVAILABLE);
    ck_assert_int_eq(answer.state, WASM_MODULE_PENDING);
    ck_assert_ptr_nonnull(strstr(answer.message, "answers with status 503"));
    fake_clock_advance(&clock_of_test, 4999);
    await("c", arena_printf(arena, "other.example/acme/add@%s", push(other, "1", 2)), NULL);
    want_of("public", "b", by_digest(manifest), NULL, false);
    ck_assert_int_eq(answer.reason, REASON_REGISTRY_UNAVAILABLE); /* waits together */
    ck_assert_uint_eq(fake_registry_counts(registry).all, 1);
    fake_clock_advance(&clock_of_test, 1);
    await_of("public", "a", by_digest(manifest), NULL, false, REASON_NONE);
    expect_ready(manifest, 1);
    await("b", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 1);
}

TEST(silent_registry_delays_no_other_and_no_stop)
{
    const char *slow = push(registry, "1", 1), *next = push(registry, "2", 3);
    const char *manifest = push(other, "1", 2);

    fake_registry_behave(registry, &(struct registry_manner){ .is_silent = true });
    want_of("public", "a", by_digest(slow), NULL, false);
    want_of("public", "b", by_digest(next), NULL, false);
    fake_registry_await_blobs(registry, 2); /* both threads */
    await("c", arena_printf(arena, "other.example/acme/add@%s", manifest), NULL);
    expect_ready(manifest, 2);
    wasm_modules_release(modules, "c");
    fake_registry_await_blobs(registry, 3); /* the one that gave way, again */
    want_of("public", "a", by_digest(slow), NULL, false);
    ck_assert_int_eq(answer.state, WASM_MODULE_PENDING);

    struct timespec begin, end;

    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &begin), 0);
    wasm_modules_stop(modules);
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &end), 0);
    ck_assert_int_lt(end.tv_sec - begin.tv_sec, 10); /* time-outs are 30 s */
    want_of("public", "a", by_digest(slow), NULL, false);
    ck_assert_int_eq(answer.state, WASM_MODULE_PENDING);
}

/* Two pulls, of which each has a thread, and no end. */
static void keep_threads(void)
{
    const char *slow = push(registry, NULL, 3), *too = push(registry, NULL, 4);

    fake_registry_behave(registry, &(struct registry_manner){ .is_silent = true });
    want_of("public", "slow", by_digest(slow), NULL, false);
    want_of("public", "too", by_digest(too), NULL, false);
    fake_registry_await_blobs(registry, 2);
}

static void want_300(void)
{
    for (int i = 0; i < 300; i++)
        want_of("public", arena_printf(arena, "t%d", i),
                arena_printf(arena, "r.example/acme/add:%d", i), NULL, false);
}

TEST(registry_that_is_away_leaves_places_to_others)
{
    const char *manifest = push(other, "1", 2);

    fake_registry_behave(
        registry,
        &(struct registry_manner){ .fail_from = 1, .fail_count = 1000, .fault = REGISTRY_IS_ILL });
    want_300();
    await("c", arena_printf(arena, "other.example/acme/add@%s", manifest), NULL);
    expect_ready(manifest, 2);
}

TEST(place_of_a_task_that_is_released_goes_to_the_next)
{
    keep_threads();
    want_300();

    unsigned before = wakes_seen();
    wasm_modules_release(modules, "t0");
    ck_assert_uint_eq(wakes_seen(), before + 1);
    wasm_modules_release(modules, "t299"); /* has no place */
    ck_assert_uint_eq(wakes_seen(), before + 1);
}

TEST(pull_that_no_task_wants_ends_after_ten_seconds)
{
    const char *manifest = push(registry, "2", 2);

    keep_threads();
    fake_registry_behave(registry, &(struct registry_manner){ 0 });
    wasm_modules_release(modules, "slow");
    want_of("public", "b", by_digest(manifest), NULL, false); /* behind it */
    fake_clock_advance(&clock_of_test, 10000);
    await("b", by_digest(manifest), NULL);
    expect_ready(manifest, 2);
}

/* --- the folder ------------------------------------------------------------------------------- */

TEST(folder_that_is_full_of_modules_in_use_lets_the_next_wait_for_a_release)
{
    const char *manifests[3];

    for (int i = 0; i < 3; i++)
        manifests[i] = push(registry, NULL, i);
    for (int i = 0; i < 2; i++) {
        await(arena_printf(arena, "t%d", i), by_digest(manifests[i]), NULL);
        expect_ready(manifests[i], i);
    }
    await_of("public", "t2", by_digest(manifests[2]), NULL, false, REASON_CACHE_FULL);
    ck_assert_int_eq(answer.state, WASM_MODULE_PENDING);
    wasm_modules_release(modules, "t0");
    await_of("public", "t2", by_digest(manifests[2]), NULL, false, REASON_NONE);
    expect_ready(manifests[2], 2);
    want_of("public", "t1", by_digest(manifests[1]), NULL, false);
    expect_ready(manifests[1], 1);
    await_of("public", "t0", by_digest(manifests[0]), NULL, false, REASON_CACHE_FULL);
}

TEST(disk_that_refuses_is_not_tried_again_at_each_release)
{
    const char *manifests[3];

    for (int i = 0; i < 3; i++)
        manifests[i] = push(registry, NULL, i);
    await("t0", by_digest(manifests[0]), NULL);
    ck_assert_int_eq(rmdir(arena_printf(arena, "%s/tmp", settings.cache_dir)), 0);
    await_of("public", "t1", by_digest(manifests[1]), NULL, false, REASON_CACHE_FULL);
    ck_assert_uint_eq(fake_registry_counts(registry).manifests, 2);
    wasm_modules_release(modules, "t0");
    await_of("public", "t2", by_digest(manifests[2]), NULL, false, REASON_CACHE_FULL);
    ck_assert_uint_eq(fake_registry_counts(registry).manifests, 3); /* none for t1 */
}

TEST(module_that_was_damaged_is_pulled_again)
{
    const char *manifest = push(registry, "1", 1), *path;
    struct error err;
    char byte;

    await("a", by_digest(manifest), NULL);
    path = arena_printf(arena, "%s/sha256", settings.cache_dir);
    temp_file(arena, path, digest_of(1) + strlen("sha256:"), "x");
    ck_assert_int_eq(wasm_modules_read(modules, answer.digest, 0, &byte, 1, &err),
                     -ERROR_NOT_FOUND);
    await("a", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 2);
}

TEST(file_of_a_task_is_kept_until_it_is_released)
{
    ck_assert(!wasm_modules_has(modules, arena, "a", &answer));
    wasm_modules_put(modules, arena, "a", module_of(1), MODULE_BYTES, &answer);
    ck_assert_int_eq(answer.state, WASM_MODULE_READY);
    ck_assert_str_eq(answer.digest, digest_of(1));
    ck_assert_ptr_null(answer.repository);
    ck_assert(wasm_modules_has(modules, arena, "a", &answer));
    ck_assert_str_eq(answer.digest, digest_of(1));
    wasm_modules_put(modules, arena, "b", module_of(2), MODULE_BYTES, &answer);
    wasm_modules_put(modules, arena, "c", module_of(3), MODULE_BYTES, &answer);
    ck_assert_int_eq(answer.state, WASM_MODULE_PENDING);
    ck_assert_int_eq(answer.reason, REASON_CACHE_FULL);
    wasm_modules_release(modules, "a");
    ck_assert(!wasm_modules_has(modules, arena, "a", &answer));
    wasm_modules_put(modules, arena, "c", module_of(3), MODULE_BYTES, &answer);
    ck_assert_int_eq(answer.state, WASM_MODULE_READY);
    wasm_modules_put(modules, arena, "d", arena_alloc(arena, MAX_BYTES + 1, 1), MAX_BYTES + 1,
                     &answer);
    expect_failed(REASON_MODULE_TOO_LARGE, true, "--module-max-bytes allows 6000");
}

/* --- flags ------------------------------------------------------------------------------------ */

TEST(flags_that_cannot_be_used_are_named)
{
    struct wasm_modules_settings wrong = settings;
    struct error err = { 0 };
    char why[ERROR_MESSAGE_LEN] = "";

    ck_assert_int_eq(wasm_modules_ready(modules, why, sizeof(why)), 1);
    ck_assert_int_eq(wasm_modules_check(&wrong, &err), -ERROR_INVALID); /* in use */
    wrong.cache_dir = arena_printf(arena, "%s/new", temp_dir(arena));
    ck_assert_int_eq(wasm_modules_check(&wrong, &err), 0);
    wrong.public_keys = "/does/not/exist";
    ck_assert_int_eq(wasm_modules_check(&wrong, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "--module-public-keys '/does/not/exist'"));
    wrong.registries = (struct str_list){ (const char *[]){ "x" }, 1 };
    ck_assert_int_eq(wasm_modules_check(&wrong, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "--module-registries"));
}

/* --- signatures ------------------------------------------------------------------------------- */

#define SIMPLE_TYPE "application/vnd.dev.cosign.simplesigning.v1+json"
#define BUNDLE_TYPE "application/vnd.dev.sigstore.bundle.v0.3+json"
#define OCI "application/vnd.oci.image.manifest.v1+json"

static struct signer *good, *stranger;
static const char *keys_dir;

static void write_keys(struct signer *signer)
{
    settings.public_keys = temp_file(arena, keys_dir, "keys.pem", signer_public_pem(signer, arena));
}

static void set_up_signed(void)
{
    service_set_up();
    good = signer_create("P-256");
    stranger = signer_create("P-256");
    keys_dir = temp_dir(arena);
    write_keys(good);
    restart_service();
}

static void tear_down_signed(void)
{
    signer_destroy(good);
    signer_destroy(stranger);
    service_tear_down();
}

TEST_GROUP("signed modules", set_up_signed, tear_down_signed);

static const char *push_text(const char *tag, const char *text)
{
    return fake_registry_push_document(registry, tag, text, strlen(text));
}

static const char *tag_of(const char *digest, const char *suffix)
{
    return arena_printf(arena, "sha256-%s%s", digest + strlen("sha256:"), suffix);
}

/* cosign before 3: a manifest at a tag. The layer before it counts for nothing. */
static void sign_by_tag(struct signer *signer, const char *of, const char *says)
{
    const char *text = simple_signing(arena, says);
    const char *layer = push_text(NULL, text);

    push_text(tag_of(of, ".sig"),
              arena_printf(arena,
                           "{\"mediaType\":\"" OCI
                           "\",\"layers\":[{\"mediaType\":\"x/y\"},{\"mediaType\":\"" SIMPLE_TYPE
                           "\",\"digest\":\"%s\",\"size\":%zu,\"annotations\":{"
                           "\"dev.cosignproject.cosign/signature\":\"%s\"}}]}",
                           layer, strlen(text), signer_sign(signer, arena, text)));
}

/* cosign from 3 on: a manifest that an index names. The entry before it counts for nothing. */
static void sign_by_bundle(struct signer *signer, const char *of, const char *says,
                           const char *predicate, bool names_type)
{
    const char *bundle = signature_bundle(signer, arena, says, predicate);
    const char *layer = push_text(NULL, bundle);
    const char *document = push_text(
        NULL,
        arena_printf(arena,
                     "{\"mediaType\":\"" OCI "\",\"artifactType\":\"" BUNDLE_TYPE "\",\"layers\":[{"
                     "\"mediaType\":\"" BUNDLE_TYPE "\",\"digest\":\"%s\",\"size\":%zu}]}",
                     layer, strlen(bundle)));

    push_text(tag_of(of, ""),
              arena_printf(
                  arena,
                  "{\"manifests\":[{\"artifactType\":\"x/y\",\"digest\":\"%s\",\"size\":1},"
                  "{%s\"digest\":\"%s\",\"size\":1}]}",
                  document, names_type ? "\"artifactType\":\"" BUNDLE_TYPE "\"," : "", document));
}

static void expect_unsigned(const char *uid, const char *manifest)
{
    await(uid, by_digest(manifest), NULL);
    expect_failed(REASON_MODULE_UNSIGNED, true,
                  "has no signature by a key of --module-public-keys");
}

TEST(module_without_a_signature_does_not_run)
{
    const char *manifest = push(registry, "1", 1);

    await("a", by_digest(manifest), NULL);
    expect_failed(REASON_MODULE_UNSIGNED, true,
                  "has no signature by a key of --module-public-keys");
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 0);
    wasm_modules_put(modules, arena, "b", module_of(1), MODULE_BYTES, &answer);
    expect_failed(REASON_MODULE_UNSIGNED, true, "imageUrl by a registry is needed");
}

TEST(signature_at_the_tag_counts)
{
    const char *manifest = push(registry, "1", 1);

    sign_by_tag(good, manifest, manifest);
    await("a", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
}

TEST_TIMES(bundle_counts_with_and_without_the_api_of_referrers, 4)
{
    const char *manifest = push(registry, "1", 1);

    fake_registry_behave(registry, &(struct registry_manner){ .has_referrers = _i & 1 });
    sign_by_bundle(good, manifest, manifest, NULL, _i & 2);
    await("a", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
}

TEST(signature_of_the_index_counts_for_its_module)
{
    const char *manifest = push(registry, NULL, 1);
    const char *index = push_text(
        "1", arena_printf(
                 arena,
                 "{\"mediaType\":\"application/vnd.oci.image.index.v1+json\",\"manifests\":[{"
                 "\"digest\":\"%s\",\"size\":1,\"platform\":{\"os\":\"wasip1\",\"architecture\":"
                 "\"wasm\"}}]}",
                 manifest));

    expect_unsigned("a", index);
    wasm_modules_release(modules, "a");
    sign_by_tag(good, index, index);
    await("a", by_digest(index), NULL);
    expect_ready(index, 1);
    sign_by_bundle(good, manifest, manifest, NULL, true);
    await("b", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
}

TEST(signatures_by_others_of_others_and_attestations_do_not_count)
{
    const char *manifest = push(registry, "1", 1), *signed_one = push(registry, "2", 2);

    sign_by_tag(stranger, manifest, manifest);
    expect_unsigned("a", manifest);
    sign_by_tag(good, manifest, signed_one); /* copied from another digest */
    expect_unsigned("b", manifest);
    sign_by_bundle(stranger, manifest, manifest, NULL, true);
    expect_unsigned("c", manifest);
    sign_by_bundle(good, manifest, signed_one, NULL, true);
    expect_unsigned("d", manifest);
    sign_by_bundle(good, manifest, manifest, "https://slsa.dev/provenance/v1", true);
    expect_unsigned("e", manifest);
    sign_by_bundle(good, manifest, manifest, NULL, true);
    await("f", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
}

TEST(module_is_verified_again_after_its_key_is_removed)
{
    const char *manifest = push(registry, "1", 1);

    sign_by_tag(good, manifest, manifest);
    await("a", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
    write_keys(stranger);
    await("a", by_digest(manifest), NULL);
    expect_failed(REASON_MODULE_UNSIGNED, true, "");
    restart_service();
    expect_unsigned("b", manifest);
    sign_by_bundle(stranger, manifest, manifest, NULL, true);
    await("c", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 6); /* five signatures, one module */
}

TEST(keys_that_cannot_be_read_stop_all_and_are_told)
{
    const char *manifest = push(registry, "1", 1);
    char why[ERROR_MESSAGE_LEN] = "";

    sign_by_tag(good, manifest, manifest);
    await("a", by_digest(manifest), NULL);
    temp_file(arena, keys_dir, "keys.pem", "no keys");
    ck_assert_int_eq(wasm_modules_ready(modules, why, sizeof(why)), 0);
    ck_assert_ptr_nonnull(strstr(why, "--module-public-keys '"));

    unsigned seen = wakes_seen();
    want_of("public", "a", by_digest(manifest), NULL, false);
    await_wake(seen);
    seen = wakes_seen();
    want_of("public", "a", by_digest(manifest), NULL, false);
    ck_assert_int_eq(answer.state, WASM_MODULE_PENDING);
    ck_assert_ptr_nonnull(strstr(answer.message, "holds no public key"));
    write_keys(good);
    ck_assert_int_eq(wasm_modules_ready(modules, why, sizeof(why)), 1);
    fake_clock_advance(&clock_of_test, 5000);
    await_wake(seen);
    want_of("public", "a", by_digest(manifest), NULL, false);
    expect_ready(manifest, 1);
}
