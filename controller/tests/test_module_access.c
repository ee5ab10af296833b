/* Modules that not everybody may have: credentials, Secrets, and the cache. */
#include <string.h>

#include "common/base/digest.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "controller/tests/service_fixture.h"

TEST_GROUP("access to modules", service_set_up, service_tear_down);

static void await_private(const char *uid, const char *reference)
{
    await_of("private", uid, reference, NULL, true, REASON_NONE);
}

TEST_TIMES(private_module_goes_to_tasks_with_credentials_alone, 2)
{
    const char *manifest = push(registry, "1", 1), *reference = by_digest(manifest);
    unsigned all;

    fake_registry_behave(registry, &(struct registry_manner){ .basic = LOGIN, .by_token = _i });
    set_secret(0, LOGIN);
    await("a", reference, NULL);
    expect_failed(REASON_MODULE_FORBIDDEN, false, "is refused with status 401 without credentials");
    await_private("b", reference);
    expect_ready(manifest, 1);

    /* in the cache it is as private */
    await("c", reference, NULL);
    expect_failed(REASON_MODULE_FORBIDDEN, false, "is refused with status 401 without credentials");

    /* a namespace without the Secret has no share in another's */
    await_of("public", "other", reference, NULL, true, REASON_NONE);
    expect_failed(REASON_PULL_SECRET_MISSING, false, "Secret 'pull' of spec.imagePullSecrets");

    /* credentials that have read it need no request */
    all = fake_registry_counts(registry).all;
    await_private("d", reference);
    expect_ready(manifest, 1);
    ck_assert_uint_eq(fake_registry_counts(registry).all, all);
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 1);

    /* after a day they are asked for again, and not the blob */
    fake_clock_advance(&clock_of_test, 24 * 3600 * 1000);
    await_private("e", reference);
    expect_ready(manifest, 1);
    ck_assert_uint_gt(fake_registry_counts(registry).all, all);
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 1);

    /* without the Secret, once its memory has passed, nothing is given */
    set_secret(0, NULL);
    fake_clock_advance(&clock_of_test, 60000);
    await_private("f", reference);
    expect_failed(REASON_PULL_SECRET_MISSING, false,
                  "Secret 'pull' of spec.imagePullSecrets does not exist");
}

static const char *push_manifest_of(struct fake_registry *to, int number, const char *note)
{
    const char *text =
        arena_printf(arena,
                     "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"layers\":[{"
                     "\"mediaType\":\"application/wasm\",\"digest\":\"%s\",\"size\":%d}],"
                     "\"annotations\":{\"note\":\"%s\"}}",
                     digest_of(number), MODULE_BYTES, note);

    return fake_registry_push_document(to, NULL, text, strlen(text));
}

static const char *of_other(const char *digest)
{
    return arena_printf(arena, "other.example/acme/add@%s", digest);
}

/* A registry may take manifests whose blobs it does not have. */
TEST_TIMES(manifest_that_names_the_blob_of_another_repository_gives_nothing_from_the_cache, 2)
{
    const char *own = push(registry, "1", 1);
    const char *copied = push(other, "1", 1), *made = push_manifest_of(other, 1, "mine");

    fake_registry_behave(registry, &(struct registry_manner){ .basic = LOGIN });
    fake_registry_behave(other, &(struct registry_manner){ .lacks = digest_of(1) });
    set_secret(0, LOGIN);
    await_private("a", by_digest(own));
    expect_ready(own, 1);
    ck_assert_str_eq(copied, own);
    await("b", of_other(_i ? made : copied), NULL);
    expect_failed(REASON_MODULE_NOT_FOUND, false, "with the blob sha256:");
}

TEST_TIMES(module_of_the_cache_by_another_manifest_needs_one_head_of_its_blob, 2)
{
    const char *first = push(registry, "1", 1), *second = push_manifest_of(registry, 1, "second");
    struct registry_counts before;

    if (_i) {
        fake_registry_behave(registry, &(struct registry_manner){ .basic = LOGIN });
        set_secret(0, LOGIN);
    }
    await_private("a", by_digest(first));
    ck_assert_int_eq(answer.state, _i ? WASM_MODULE_READY : WASM_MODULE_FAILED);
    if (!_i)
        await("a", by_digest(first), NULL);
    before = fake_registry_counts(registry);
    await_of("private", "b", by_digest(second), NULL, _i, REASON_NONE);
    expect_ready(second, 1);
    ck_assert(!answer.was_pulled);
    ck_assert_uint_eq(fake_registry_counts(registry).heads, before.heads + 1);
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 1);
}

TEST(private_module_of_the_cache_is_as_private_by_another_manifest)
{
    const char *first = push(registry, "1", 1), *second = push_manifest_of(registry, 1, "second");

    fake_registry_behave(registry, &(struct registry_manner){ .basic = LOGIN });
    set_secret(0, LOGIN);
    await_private("a", by_digest(first));
    expect_ready(first, 1);
    await("b", by_digest(second), NULL);
    expect_failed(REASON_MODULE_FORBIDDEN, false, "is refused with status 401 without credentials");
    set_secret(0, "user:other");
    fake_clock_advance(&clock_of_test, 60000);
    await_private("c", by_digest(second));
    expect_failed(REASON_MODULE_FORBIDDEN, false, "to all credentials");
    await_private("d", by_digest(first));
    expect_failed(REASON_MODULE_FORBIDDEN, false, "to all credentials");
}

TEST(credentials_of_one_registry_reach_no_other)
{
    const char *manifest = push(other, "1", 1);

    fake_registry_behave(other, &(struct registry_manner){ .basic = LOGIN });
    set_secret(0, LOGIN);
    await_private("a", arena_printf(arena, "other.example/acme/add@%s", manifest));
    expect_failed(REASON_MODULE_FORBIDDEN, false, "without credentials");
    ck_assert_str_eq(fake_registry_authorization(other), "");
}

TEST(new_process_knows_of_no_reader)
{
    const char *manifest = push(registry, "1", 1), *reference = by_digest(manifest);

    fake_registry_behave(registry, &(struct registry_manner){ .basic = LOGIN });
    set_secret(0, LOGIN);
    await_private("a", reference);
    expect_ready(manifest, 1);
    restart_service();
    await("b", reference, NULL);
    expect_failed(REASON_MODULE_FORBIDDEN, false, "");
    set_secret(0, "user:other");
    await_private("c", reference);
    expect_failed(REASON_MODULE_FORBIDDEN, false, "to all credentials");
}

TEST(secret_is_read_once_a_minute)
{
    const char *first = push(registry, NULL, 1), *second = push(registry, NULL, 2);

    fake_registry_behave(registry, &(struct registry_manner){ .basic = LOGIN });
    set_secret(0, LOGIN);
    await_private("a", by_digest(first));
    await_private("b", by_digest(second));
    ck_assert_uint_eq(secret_reads, 1);
    fake_clock_advance(&clock_of_test, 60000);
    await_private("c", by_digest(second));
    expect_ready(second, 2);
    ck_assert_uint_eq(secret_reads, 2);
}

TEST(secret_without_rights_names_what_to_apply)
{
    set_secret(ERROR_FORBIDDEN, NULL);
    await_private("a", TAG);
    expect_failed(REASON_PULL_SECRET_MISSING, false, "apply rbac/module-pull-secrets");
    set_secret(ERROR_TIMEOUT, NULL);
    await_of("private", "b", TAG, NULL, true, REASON_REGISTRY_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(answer.message, "Secret 'pull' cannot be read"));
    ck_assert_uint_eq(fake_registry_counts(registry).all, 0);
}

TEST(credentials_of_the_operator_serve_all)
{
    const char *manifest = push(registry, "1", 1);

    settings.docker_config = temp_file(
        arena, temp_dir(arena), "config.json",
        arena_printf(arena,
                     "{\"auths\":{\"%s\":{\"username\":\"user\",\"password\":\"password\"}}}",
                     fake_registry_host(registry)));
    restart_service();
    fake_registry_behave(registry, &(struct registry_manner){ .basic = LOGIN });
    await("a", by_digest(manifest), NULL);
    expect_ready(manifest, 1);
}
