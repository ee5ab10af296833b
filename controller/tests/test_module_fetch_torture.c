/* Every request of a resolve and a pull fails once in every way: the end is the same module, or an error and then it. */
#include "controller/registry/fetch.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>

#include "common/base/digest.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "controller/tests/fake_registry.h"

#define MODULE_BYTES 70000 /* comes in several pieces */
#define MAX_REQUESTS 8
#define MAX_TRIES 6
#define LOGIN "user:password"

static struct fake_registry *registry;
static struct fake_clock clock_of_test;
static struct wasm_modules_settings settings;
static struct wasm_modules_host host;
static struct fetch_means means;
static char module[MODULE_BYTES] = "\0asm";
static const char *manifest;
static unsigned failures;

static bool is_never(void *ctx UNUSED)
{
    return false;
}

static void set_up(void)
{
    const char *config, *entry;

    arena_set_up();
    json_init();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    fake_clock_init(&clock_of_test);
    registry = fake_registry_start();
    manifest = fake_registry_push(registry, "1", module, MODULE_BYTES);
    config = arena_printf(arena, "{\"auths\":{\"%s\":{\"auth\":\"%s\"}}}",
                          fake_registry_host(registry), base64_encode(arena, LOGIN, strlen(LOGIN)));
    settings = (struct wasm_modules_settings){
        .max_bytes = MODULE_BYTES,
        .docker_config = temp_file(arena, temp_dir(arena), "config.json", config),
    };
    entry = arena_printf(arena, "r.example=http://%s", fake_registry_host(registry));
    host = (struct wasm_modules_host){ .clock = &clock_of_test.clock };
    means = (struct fetch_means){
        .pull = { .pool = http_client_pool_create(),
                  .clock = &clock_of_test.clock,
                  .is_canceled = is_never },
        .settings = &settings,
        .host = &host,
        .secrets = memory_create(1, 1),
        .readers = memory_create(10, 1000),
    };
    ck_assert_int_eq(
        module_registries_parse(arena, &(struct str_list){ &entry, 1 }, &means.registries, NULL),
        0);
}

static void tear_down(void)
{
    module_cache_close(means.pull.cache);
    http_client_pool_destroy(means.pull.pool);
    memory_destroy(means.secrets);
    memory_destroy(means.readers);
    fake_registry_stop(registry);
    arena_tear_down();
}

TEST_GROUP("module fetch torture", set_up, tear_down);

/* An empty folder. */
static const char *begin(void)
{
    const char *dir = arena_printf(arena, "%s/modules", temp_dir(arena));
    struct error err = { 0 };

    module_cache_close(means.pull.cache);
    means.pull.cache = NULL;
    failures = 0;
    ck_assert_msg(module_cache_open(dir, 2 * MODULE_BYTES, &means.pull.cache, &err) == 0, "%s",
                  err.message);
    return dir;
}

/* As a Task does that has enough attempts. */
static void fetch(const char *digest, struct fetch_result *ret)
{
    const struct fetch_order order = { .reference = "r.example/acme/add:1",
                                       .manifest = digest,
                                       .ns = "default" };

    for (int i = 0; i < MAX_TRIES; i++) {
        fetch_carry_out(&means, arena, &order, NULL, ret);
        if (ret->outcome == FETCH_DONE)
            return;
        ck_assert(ret->reason != REASON_NONE && *ret->message);
        failures += ret->outcome == FETCH_FAILED;
    }
    ck_abort_msg("%s", ret->message);
}

static size_t files_in(const char *dir, const char *folder)
{
    DIR *names = opendir(arena_printf(arena, "%s/%s", dir, folder));
    size_t count = 0;

    ck_assert_ptr_nonnull(names);
    while (readdir(names))
        count++;
    (void)closedir(names);
    return count - 2;
}

static void expect_module(const char *dir)
{
    char bytes[MODULE_BYTES];
    struct fetch_result result;
    struct error err = { 0 };

    fetch(NULL, &result);
    ck_assert_str_eq(result.manifest, manifest);
    fetch(manifest, &result);
    ck_assert_str_eq(result.manifest, manifest);
    ck_assert_int_eq(
        module_cache_read(means.pull.cache, result.digest, 0, bytes, MODULE_BYTES, &err), 0);
    ck_assert_mem_eq(bytes, module, MODULE_BYTES);
    module_cache_unpin(means.pull.cache, result.digest);
    ck_assert_uint_eq(files_in(dir, "sha256"), 1);
    ck_assert_uint_eq(files_in(dir, "tmp"), 0);
}

/* Of each pair: one request, or all until the retries of a pull are used up. */
TEST_TIMES(every_request_that_fails_leads_to_the_same_module, REGISTRY_FAULTS *MAX_REQUESTS * 2)
{
    enum registry_fault fault = (enum registry_fault)(_i / (MAX_REQUESTS * 2));
    struct registry_manner manner = {
        .basic = LOGIN,
        .by_token = true,
        .fail_from = (unsigned)_i % MAX_REQUESTS + 1,
        .fail_count = _i % (MAX_REQUESTS * 2) < MAX_REQUESTS ? 1 : 3,
        .fault = fault,
    };

    fake_registry_behave(registry, &manner);
    expect_module(begin());
    if (fault == REGISTRY_CLOSES || fault == REGISTRY_IS_ILL)
        ck_assert_uint_eq(failures, 0); /* it is away: no attempt is lost */
}

TEST(module_that_comes_in_pieces_is_whole)
{
    fake_registry_behave(registry, &(struct registry_manner){ .cut_after = MODULE_BYTES / 5 + 1 });
    expect_module(begin());
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 5);
}

TEST(registry_that_knows_no_ranges_is_asked_for_all)
{
    fake_registry_behave(registry, &(struct registry_manner){ .fail_from = 3,
                                                              .fail_count = 1,
                                                              .fault = REGISTRY_CUTS,
                                                              .ignores_ranges = true });
    expect_module(begin());
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 2);
}

TEST(range_from_another_place_is_not_taken)
{
    fake_registry_behave(
        registry, &(struct registry_manner){
                      .fail_from = 3, .fail_count = 1, .fault = REGISTRY_CUTS, .misplaces = true });
    expect_module(begin());
    ck_assert_uint_eq(fake_registry_counts(registry).blobs, 3);
}

TEST(tag_without_a_digest_in_the_header_is_hashed)
{
    fake_registry_behave(registry, &(struct registry_manner){ .hides_digests = true });
    expect_module(begin());
}

/* The disk takes no more than so many bytes of a file. */
TEST_TIMES(every_write_that_fails_leads_to_the_same_module, 8)
{
    struct rlimit before, small;
    struct fetch_result result;
    const char *dir = begin();

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ (rlim_t)_i * MODULE_BYTES / 8, before.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    fetch_carry_out(&means, arena,
                    &(struct fetch_order){ .reference = "r.example/acme/add:1",
                                           .manifest = manifest,
                                           .ns = "default" },
                    NULL, &result);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(result.outcome, FETCH_NO_ROOM);
    ck_assert_int_eq(result.reason, REASON_CACHE_FULL);
    ck_assert_int_eq(result.bytes, MODULE_BYTES);
    ck_assert_uint_eq(files_in(dir, "tmp"), 0);
    ck_assert_uint_eq(files_in(dir, "sha256"), 0);
    expect_module(dir);
}
