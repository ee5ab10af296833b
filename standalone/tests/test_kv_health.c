/* Reports about a store that becomes unreadable while it is open. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/tests/observe.h"
#include "common/tests/suite.h"
#include "standalone/tests/fault_vfs.h"
#include "standalone/tests/kv_fixture.h"

#define LOOK_MS 20
#define LARGE ((size_t)1 << 20) /* more than the log has room for */
#define LOST "UPDATE history SET text = 'x' WHERE key = '/a'"
#define FOUND "UPDATE history SET text = '1' WHERE key = '/a'"

static void begin(void)
{
    kv_store_begin();
    fault_vfs_install();
    kv_store.options.vfs = "fault";
    kv_store.options.look_ms = LOOK_MS;
    kv_fixture_open(&kv_store);
    kv_fixture_put("/a", "1", 0);
    kv_fixture_put("/b", "1", 0);
    capture_start(2);
}

static void end(void)
{
    fault_vfs_fail_after(-1);
    fault_vfs_set_space(-1);
    kv_store_end();
}

TEST_GROUP("health", begin, end);

static int get(const char *key)
{
    struct kv_value value;

    return kv_get(kv_store.kv, kv_store.arena, key, 0, &value, &kv_store.err);
}

/* Lines of the log with these words. */
static size_t count(const char *words)
{
    size_t n = 0;

    for (const char *at = capture_text(kv_store.arena); (at = strstr(at, words)); at++)
        n++;
    return n;
}

/* Several looks. */
static void ck_stays(enum error_code code)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + INT64_C(20) * LOOK_MS;

    while (clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms) {
        ck_assert_int_eq(kv_health(kv_store.kv, &kv_store.err), -(int)code);
        (void)poll(NULL, 0, 1);
    }
}

TEST(what_is_damaged_is_said_once_until_it_is_well_again)
{
    kv_fixture_execute(LOST);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(get("/a"), -ERROR_INTERNAL);
    ck_assert_int_eq(kv_health(kv_store.kv, &kv_store.err), -ERROR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(kv_store.err.message, "the checksum of revision 2 is not right"));
    ck_assert_int_eq(kv_health(kv_store.kv, NULL), -ERROR_INTERNAL);
    ck_assert_int_eq(get("/b"), 0); /* others say nothing of this one */
    ck_stays(ERROR_INTERNAL);
    ck_assert_uint_eq(count("\"level\":\"error\",\"msg\":\"the store cannot be read\""), 1);
    ck_assert_uint_eq(count("can be read again"), 0);

    kv_fixture_execute(FOUND);
    AWAIT(kv_health(kv_store.kv, NULL) == 0);
    ck_assert_int_eq(get("/a"), 0);
    ck_assert_uint_eq(count("the store can be read again"), 1);

    kv_fixture_execute(LOST);
    ck_assert_int_eq(get("/a"), -ERROR_INTERNAL);
    ck_assert_uint_eq(count("the store cannot be read"), 2);
}

/* Lists, counts, watches and writes find it, too. */
TEST_TIMES(whoever_finds_it_it_is_said, 3)
{
    const struct kv_range range = { .prefix = "/" };
    struct kv_event event;
    struct kv_page page;
    struct kv_watch *watch = kv_fixture_watch("/", 1);

    kv_fixture_execute(LOST);
    ck_assert_int_eq(kv_health(kv_store.kv, NULL), 0); /* no check was made */
    if (_i == 0)
        ck_assert_int_eq(kv_list(kv_store.kv, kv_store.arena, &range, &page, &kv_store.err),
                         -ERROR_INTERNAL);
    else if (_i == 1)
        ck_assert_int_eq(kv_put(kv_store.kv, "/a", "2", 1, KV_ANY, NULL, &kv_store.err),
                         -ERROR_INTERNAL);
    else
        ck_assert_int_eq(kv_watch_next(watch, kv_store.arena, &event, &kv_store.err),
                         -ERROR_INTERNAL);
    ck_assert_int_eq(kv_health(kv_store.kv, NULL), -ERROR_INTERNAL);
    ck_assert_uint_eq(count("the store cannot be read"), 1);
    kv_fixture_put("/c", "1", 0); /* nothing of the refused write is in the way */
    kv_watch_close(watch);
}

TEST(a_disk_that_does_not_answer_is_said_and_answers_again)
{
    kv_fixture_execute(
        "UPDATE state SET compacted = compacted"); /* what is in the caches is of before */
    fault_vfs_fail_after(0);
    ck_assert_int_eq(get("/a"), -ERROR_UNAVAILABLE);
    ck_stays(ERROR_UNAVAILABLE);
    fault_vfs_fail_after(-1);
    AWAIT(kv_health(kv_store.kv, NULL) == 0);
    ck_assert_int_eq(get("/a"), 0);
    kv_fixture_put("/c", "1", 0);
    ck_assert_uint_eq(count("the store cannot be read"), 1);
    ck_assert_uint_eq(count("the store can be read again"), 1);
}

/* In the file, behind SQLite's back. */
static void replace_bytes(const char *from, const char *to)
{
    static char bytes[8 * LARGE];
    int fd = open(kv_store.options.path, O_RDWR | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ssize_t len = read(fd, bytes, sizeof(bytes));
    ck_assert_int_gt(len, 0);
    const char *at = memmem(bytes, (size_t)len, from, strlen(from));
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(pwrite(fd, to, strlen(to), at - bytes), (ssize_t)strlen(to));
    ck_assert_int_eq(close(fd), 0);
}

/* No cache keeps what was read while it was wrong. */
TEST(what_the_file_has_again_is_read_again)
{
    static char text[LARGE + 1];

    memset(text, 'x', LARGE);
    kv_fixture_put("/text", "as it was", 0);
    /* No connection has all of it in memory. */
    for (int i = 0; i < 100; i++)
        kv_fixture_put(arena_printf(kv_store.arena, "/small/%0200d", i), "", 0);
    for (int i = 0; i < 4; i++)
        kv_fixture_put(arena_printf(kv_store.arena, "/large/%d", i), text, 0);
    kv_fixture_close(&kv_store);
    kv_fixture_open(&kv_store);
    replace_bytes("as it was", "as it is ");
    ck_assert_int_eq(get("/text"), -ERROR_INTERNAL);
    replace_bytes("as it is ", "as it was");
    AWAIT(kv_health(kv_store.kv, NULL) == 0);
    ck_assert_str_eq(kv_fixture_get("/text", 0), "as it was");
    kv_fixture_put("/text", "new", KV_ANY);
    ck_assert_str_eq(kv_fixture_get("/text", 0), "new");
}

/* A file that is sound, but does not have what was acknowledged. */
TEST(another_file_in_its_place_does_not_make_it_well)
{
    kv_fixture_execute(LOST);
    ck_assert_int_eq(get("/a"), -ERROR_INTERNAL);
    kv_fixture_execute("DELETE FROM history; UPDATE state SET compacted = 2");
    ck_stays(ERROR_INTERNAL);
}

TEST(a_full_disk_is_no_reason_nor_is_what_is_not_there)
{
    static char text[LARGE];

    memset(text, 'x', LARGE);
    fault_vfs_set_space(0);
    ck_assert_int_eq(kv_put(kv_store.kv, "/c", text, LARGE, 0, NULL, &kv_store.err),
                     -ERROR_UNAVAILABLE);
    ck_assert_int_eq(get("/a"), 0);
    ck_assert_int_eq(get("/none"), -ERROR_NOT_FOUND);
    ck_assert_int_eq(kv_put(kv_store.kv, "/a", "1", 1, 0, NULL, &kv_store.err), -ERROR_EXISTS);
    ck_assert_int_eq(kv_health(kv_store.kv, &kv_store.err), 0);
}
