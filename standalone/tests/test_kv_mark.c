/* Writes that were acknowledged, and a file or log that does not have them any more. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/tests/observe.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/tests/kv_fixture.h"

#define STEP UINT64_C(1000000000)
#define WRITES 12

static const char *const SUFFIXES[] = { "", "-wal", "-lock" };

/* What a process that was killed has left. */
static struct left {
    struct kv_bytes files[ARRAY_LEN(SUFFIXES)];
    uint64_t revision;
    const char *content;
} left;

static void take_what_is_left(void)
{
    for (size_t i = 0; i < ARRAY_LEN(SUFFIXES); i++)
        left.files[i] = kv_fixture_read_file(kv_fixture_file(SUFFIXES[i]));
    left.revision = kv_revision(kv_store.kv);
    left.content = kv_fixture_list("/", 0);
}

static void put_back(void)
{
    (void)unlink(kv_fixture_file("-shm"));
    for (size_t i = 0; i < ARRAY_LEN(SUFFIXES); i++)
        kv_fixture_write_file(kv_fixture_file(SUFFIXES[i]), left.files[i].bytes, left.files[i].len);
}

/* A store that was stopped once, so that the log has not all of it, and is killed then. */
static void begin(void)
{
    kv_store_begin();
    kv_fixture_open(&kv_store);
    kv_fixture_put("/kept", "1", 0);
    kv_fixture_close(&kv_store);
    kv_fixture_open(&kv_store);
    for (int i = 0; i < WRITES; i++)
        kv_fixture_put(arena_printf(kv_store.arena, "/%02d", i), "x", 0);
    take_what_is_left();
    kv_fixture_close(&kv_store);
    put_back();
}

TEST_GROUP("mark", begin, kv_store_end);

static int try_open(void)
{
    return kv_open(&kv_store.options, &kv_store.kv, &kv_store.err);
}

static const char *log_path(void)
{
    return kv_fixture_file("-wal");
}

static void damage_log(size_t at)
{
    int fd = open(log_path(), O_WRONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, "XXXX", 4, (off_t)at), 4);
    ck_assert_int_eq(close(fd), 0);
}

static void cut_log(size_t len)
{
    ck_assert_int_eq(truncate(log_path(), (off_t)len), 0);
}

/* Damage to the log, at this part of it in percent. */
static const struct loss {
    void (*damage)(size_t at); /* NULL: it is removed */
    size_t percent;
} LOSSES[] = {
    { damage_log, 0 }, { damage_log, 50 }, { cut_log, 50 }, { cut_log, 0 }, { NULL, 0 }
};

static void lose(const struct loss *loss)
{
    if (loss->damage)
        loss->damage(left.files[1].len * loss->percent / 100);
    else
        ck_assert_int_eq(unlink(log_path()), 0);
}

TEST(what_a_killed_process_has_left_is_whole)
{
    kv_fixture_open(&kv_store);
    ck_assert_uint_eq(kv_revision(kv_store.kv), left.revision);
    ck_assert_str_eq(kv_fixture_list("/", 0), left.content);
    ck_assert_uint_eq(kv_fixture_put("/more", "x", 0), left.revision + 1);
}

TEST_EACH(a_log_that_has_lost_writes_is_refused_and_left, LOSSES)
{
    lose(&LOSSES[_i]);
    struct kv_bytes before = { 0 };
    if (access(log_path(), F_OK) == 0)
        before = kv_fixture_read_file(log_path());
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(try_open(), -ERROR_INVALID);
        kv_fixture_said(
            arena_printf(kv_store.arena, "store '%s' has lost writes", kv_store.options.path));
        kv_fixture_said(arena_printf(kv_store.arena, "%d was acknowledged", (int)left.revision));
        kv_fixture_said("'store.db-wal' is damaged or gone");
        kv_fixture_said(
            "Restore a backup, or run 'propeller-standalone serve' without --strict-store");
        struct kv_bytes after = kv_fixture_read_file(log_path());
        ck_assert_uint_eq(after.len, before.len);
        if (before.len)
            ck_assert_mem_eq(after.bytes, before.bytes, before.len);
    }
}

TEST_EACH(a_store_that_lost_writes_goes_on_above_them_and_says_so, LOSSES)
{
    struct kv_watch *watch = NULL;
    const char *said;

    kv_store.options.goes_on = true;
    lose(&LOSSES[_i]);
    capture_start(2);
    kv_fixture_open(&kv_store);
    said = capture_text(kv_store.arena);
    capture_stop();
    ck_assert_ptr_nonnull(strstr(said, "\"level\":\"error\""));
    ck_assert_ptr_nonnull(strstr(said, "the store has lost writes that were acknowledged"));
    ck_assert_ptr_nonnull(
        strstr(said, arena_printf(kv_store.arena, "\"acknowledged\":\"%d\"", (int)left.revision)));
    ck_assert_uint_eq(kv_loss(kv_store.kv).noted, left.revision);
    ck_assert_uint_gt(kv_loss(kv_store.kv).found, 0);
    ck_assert_uint_lt(kv_loss(kv_store.kv).found, left.revision);

    uint64_t revision = kv_revision(kv_store.kv);

    ck_assert_uint_ge(revision, left.revision + STEP);
    ck_assert_str_eq(kv_fixture_get("/kept", 0), "1");
    ck_assert_int_eq(kv_watch(kv_store.kv, "/", left.revision, &watch, &kv_store.err), -ERROR_GONE);
    ck_assert_uint_eq(kv_fixture_put("/more", "x", 0), revision + 1);
    kv_fixture_close(&kv_store);
    kv_store.options.goes_on = false; /* nothing is lost any more */
    kv_fixture_open(&kv_store);
    ck_assert_uint_eq(kv_revision(kv_store.kv), revision + 1);
    ck_assert_uint_eq(kv_loss(kv_store.kv).found, 0);
}

TEST(a_damaged_store_is_refused_also_by_who_goes_on)
{
    kv_store.options.goes_on = true;
    cut_log(0);
    kv_fixture_write_file(kv_store.options.path, "", 0);
    ck_assert_int_eq(try_open(), -ERROR_INVALID);
    kv_fixture_said("has lost its content");
    put_back();
    kv_fixture_open(&kv_store);
    kv_fixture_close(&kv_store); /* the file has all of the log */
    kv_fixture_execute("UPDATE history SET text = text || ' '");
    ck_assert_int_eq(try_open(), -ERROR_INVALID);
    kv_fixture_said("cannot be used and was left as it is");
}

/* Nothing is lost in silence, wherever the log ends or a byte of it has changed. */
TEST_TIMES(every_part_of_the_log_counts, 2)
{
    size_t refused = 0, whole = 0;

    for (size_t at = 0; at < left.files[1].len; at += 509) {
        put_back();
        if (_i)
            damage_log(at);
        else
            cut_log(at);
        int r = try_open();
        ck_assert_msg(r == 0 || r == -ERROR_INVALID, "%s", kv_store.err.message);
        refused += r < 0;
        whole += r == 0;
        if (r < 0)
            continue;
        ck_assert_uint_eq(kv_revision(kv_store.kv), left.revision);
        ck_assert_str_eq(kv_fixture_list("/", 0), left.content);
        kv_fixture_close(&kv_store);
    }
    ck_assert_uint_gt(refused, whole);
}

TEST_TIMES(a_mark_that_is_damaged_keeps_no_sound_store_from_starting, 2)
{
    const char *lock = kv_fixture_file("-lock");
    struct kv_bytes text = kv_fixture_read_file(lock);
    size_t damaged = 0;

    for (size_t at = 0; at <= text.len; at++) {
        put_back();
        if (_i == 0) {
            ck_assert_int_eq(truncate(lock, (off_t)at), 0);
        } else if (at < text.len) {
            text.bytes[at] ^= 1;
            kv_fixture_write_file(lock, text.bytes, text.len);
            text.bytes[at] ^= 1;
        }
        capture_start(2);
        kv_fixture_open(&kv_store);
        const char *said = capture_text(kv_store.arena);
        capture_stop();
        uint64_t revision = kv_revision(kv_store.kv);
        if (revision != left.revision) {
            ck_assert_uint_ge(revision, left.revision + STEP);
            ck_assert_ptr_nonnull(strstr(said, "go on above all that it can have given"));
            damaged++;
        }
        ck_assert_str_eq(kv_fixture_list("/", 0), left.content);
        kv_fixture_close(&kv_store);
        kv_fixture_open(&kv_store); /* it is written again */
        ck_assert_uint_eq(kv_revision(kv_store.kv), revision);
        kv_fixture_close(&kv_store);
    }
    ck_assert_uint_ge(damaged, text.len - 1); /* all of them but one that is whole */
}

TEST(a_backup_with_the_log_of_before_is_refused_and_told_about_the_log)
{
    const char *backup = kv_fixture_file(".backup");

    kv_fixture_open(&kv_store);
    ck_assert_int_eq(kv_backup(kv_store.options.path, backup, &kv_store.err), 0);
    kv_fixture_close(&kv_store);
    struct kv_bytes file = kv_fixture_read_file(backup);
    put_back();
    kv_fixture_write_file(kv_store.options.path, file.bytes, file.len);
    ck_assert_int_eq(try_open(), -ERROR_INVALID);
    kv_fixture_said("restore a backup and remove 'store.db-wal', the log of before");
    ck_assert_int_eq(unlink(log_path()), 0);
    kv_fixture_open(&kv_store);
    ck_assert_uint_gt(kv_revision(kv_store.kv), left.revision);
    ck_assert_str_eq(kv_fixture_list("/", 0), left.content);
}
