/* Readers and backups of a store that others write to; and what a backup says of versions, once it is the store, to
 * those who knew the one that is lost. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

#define KEYS 300
#define VALUE 4000
#define AT_ONCE 6
#define WRITERS 8
#define BACKUPS 200
#define STEP UINT64_C(1000000000)
#define MAX_SAFE (UINT64_C(1) << 53) /* what a JSON number of a script can say */
#define LOST 10

static const char *backup;

static void begin(void)
{
    kv_store_begin();
    backup = kv_fixture_file(".backup");
    kv_store.options.history_revisions = 200; /* the copies would grow with it */
}

TEST_GROUP("backup", begin, kv_store_end);

/* --- readers --- */

static struct kv_reader *reader_open(void)
{
    struct kv_reader *reader = NULL;
    int r = kv_reader_open(kv_store.options.path, &reader, &kv_store.err);

    ck_assert_msg(r == 0, "%s", kv_store.err.message);
    return reader;
}

/* "key=text …", read in pages of two. */
static const char *read_all(struct kv_reader *reader)
{
    struct kv_range range = { .prefix = "/", .limit = 2, .uncounted = true };
    const char *text = "";
    struct kv_page page;

    do {
        ck_assert_int_eq(kv_reader_list(reader, kv_store.arena, &range, &page, &kv_store.err), 0);
        for (size_t i = 0; i < page.len; i++)
            text = arena_printf(kv_store.arena, "%s%s=%s ", text, page.items[i].key,
                                page.items[i].text);
        if (page.len)
            range.after = page.items[page.len - 1].key;
    } while (page.remaining);
    return text;
}

static uint64_t revision_of(struct kv_reader *reader)
{
    const struct kv_range range = { .prefix = "/", .limit = 1 };
    struct kv_page page;

    ck_assert_int_eq(kv_reader_list(reader, kv_store.arena, &range, &page, &kv_store.err), 0);
    return page.revision;
}

TEST(a_reader_sees_one_revision_however_much_is_written)
{
    kv_fixture_open(&kv_store);
    kv_fixture_put("/a", "1", 0);
    kv_fixture_put("/b", "1", 0);
    uint64_t revision = kv_fixture_put("/c", "1", 0);
    struct kv_reader *reader = reader_open();

    ck_assert_uint_eq(revision_of(reader), revision);
    for (int i = 0; i < 200; i++) {
        kv_fixture_put("/a", arena_printf(kv_store.arena, "%*d", 3000, i), KV_ANY);
        if (i % 50 == 0)
            ck_assert_str_eq(read_all(reader), "/a=1 /b=1 /c=1 ");
    }
    kv_fixture_delete("/b", KV_ANY);
    kv_fixture_put("/a", "2", KV_ANY);
    ck_assert_str_eq(read_all(reader), "/a=1 /b=1 /c=1 ");
    kv_reader_close(reader);
    reader = reader_open();
    ck_assert_uint_eq(revision_of(reader), revision + 202);
    ck_assert_str_eq(read_all(reader), "/a=2 /c=1 ");
    kv_reader_close(reader);
}

TEST(what_is_no_store_is_said)
{
    struct kv_reader *reader = NULL;
    const char *path = kv_store.options.path;

    ck_assert_int_eq(kv_reader_open(path, &reader, &kv_store.err), -ERROR_NOT_FOUND);
    ck_assert_int_eq(kv_backup(path, backup, &kv_store.err), -ERROR_NOT_FOUND);
    ck_assert_int_ne(access(path, F_OK), 0);
    kv_fixture_write_file(path, "", 0);
    ck_assert_int_eq(kv_reader_open(path, &reader, &kv_store.err), -ERROR_NOT_FOUND);
    kv_fixture_write_file(path, arena_printf(kv_store.arena, "%04000d", 0), 4000);
    ck_assert_int_eq(kv_reader_open(path, &reader, &kv_store.err), -ERROR_INVALID);
    kv_fixture_said("restore a backup");
}

/* --- backups --- */

TEST(a_damaged_row_is_no_backup)
{
    kv_fixture_open(&kv_store);
    kv_fixture_put("/a", "6", 0);
    kv_fixture_execute("UPDATE history SET text = '9'");
    ck_assert_int_eq(kv_backup(kv_store.options.path, backup, &kv_store.err), -ERROR_INTERNAL);
    kv_fixture_said("the copy is not sound");
    ck_assert_uint_eq(kv_fixture_count_files(".backup"), 0);
}

static void fill(void)
{
    const char *value = arena_printf(kv_store.arena, "%0*d", VALUE, 0);

    kv_fixture_open(&kv_store);
    for (int i = 0; i < KEYS; i++)
        kv_fixture_put(arena_printf(kv_store.arena, "/w/%d", i), value, 0);
}

static void check_backup(void)
{
    const char *expected = kv_fixture_list("/", 0);

    kv_fixture_close(&kv_store);
    kv_store.options.path = backup;
    kv_fixture_open(&kv_store);
    ck_assert_str_eq(kv_fixture_list("/", 0), expected);
}

struct attempt {
    pthread_t thread;
    pthread_barrier_t *barrier;
    int r;
    struct error err;
};

static void *back_up(void *ctx)
{
    struct attempt *attempt = ctx;

    (void)pthread_barrier_wait(attempt->barrier);
    attempt->r = kv_backup(kv_store.options.path, backup, &attempt->err);
    return NULL;
}

TEST_TIMES(of_several_backups_at_once_one_gets_the_name, 2)
{
    struct attempt attempts[AT_ONCE];
    pthread_barrier_t barrier;
    size_t made = 0;

    fill();
    if (_i) /* it is closed: each of them tries to open it */
        kv_fixture_close(&kv_store);
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, AT_ONCE), 0);
    for (size_t i = 0; i < AT_ONCE; i++) {
        attempts[i] = (struct attempt){ .barrier = &barrier };
        ck_assert_int_eq(pthread_create(&attempts[i].thread, NULL, back_up, &attempts[i]), 0);
    }
    for (size_t i = 0; i < AT_ONCE; i++) {
        pthread_join(attempts[i].thread, NULL);
        made += attempts[i].r == 0;
        if (attempts[i].r == 0)
            continue;
        ck_assert_msg(attempts[i].r == -ERROR_EXISTS, "%s", attempts[i].err.message);
        ck_assert_str_eq(attempts[i].err.message,
                         arena_printf(kv_store.arena, "backup '%s' exists already", backup));
    }
    (void)pthread_barrier_destroy(&barrier);
    ck_assert_uint_eq(made, 1);
    ck_assert_uint_eq(kv_fixture_count_files(".backup"), 1);
    if (_i)
        kv_fixture_open(&kv_store);
    check_backup();
}

static const char *const LEFT[] = { ".backup.new-aaaaaa", ".backup.new-aaaaaa-journal" };

TEST(what_a_killed_backup_has_left_disturbs_nobody)
{
    fill();
    for (size_t i = 0; i < ARRAY_LEN(LEFT); i++)
        kv_fixture_write_file(kv_fixture_file(LEFT[i]), "half", 4);
    ck_assert_msg(kv_backup(kv_store.options.path, backup, &kv_store.err) == 0, "%s",
                  kv_store.err.message);
    ck_assert_uint_eq(kv_fixture_count_files(".backup"), 1 + ARRAY_LEN(LEFT));
    for (size_t i = 0; i < ARRAY_LEN(LEFT); i++) {
        struct stat status;

        ck_assert_int_eq(stat(kv_fixture_file(LEFT[i]), &status), 0);
        ck_assert_int_eq(status.st_size, 4); /* it may be another's that is under way */
    }
    check_backup();
}

/* A name that leads nowhere is one, too. */
TEST(nothing_that_has_the_name_is_replaced)
{
    kv_fixture_open(&kv_store);
    ck_assert_int_eq(symlink("/nowhere/else", backup), 0);
    ck_assert_int_eq(kv_backup(kv_store.options.path, backup, &kv_store.err), -ERROR_EXISTS);
    ck_assert_uint_eq(kv_fixture_count_files(".backup"), 1);
}

TEST(a_backup_that_cannot_be_written_says_where)
{
    kv_fixture_open(&kv_store);
    ck_assert_int_eq(kv_backup(kv_store.options.path, "/nowhere/backup", &kv_store.err),
                     -ERROR_UNAVAILABLE);
    ck_assert_str_eq(kv_store.err.message,
                     "a file beside '/nowhere/backup': No such file or directory");
}

static atomic_bool stopping;
static atomic_int written;

static void *write_on(void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *value = arena_printf(arena, "%0*d", VALUE, 0);
    uint64_t state = (uint64_t)(uintptr_t)ctx + 1;
    struct error err;

    while (!atomic_load(&stopping)) {
        CLEANUP(arena_destroyp) struct arena *own = arena_create();
        const char *key = arena_printf(own, "/w/%d", (int)random_below(&state, KEYS));

        if (kv_put(kv_store.kv, key, value, VALUE, KV_ANY, NULL, &err) < 0)
            abort();
        atomic_fetch_add(&written, 1);
    }
    return NULL;
}

static pthread_t threads[WRITERS];

static void start_writers(void)
{
    atomic_store(&stopping, false);
    for (size_t i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_on, (void *)(uintptr_t)i), 0);
}

static void stop_writers(void)
{
    atomic_store(&stopping, true);
    for (size_t i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

static void expect_whole(const char *path)
{
    struct kv_fixture copy;
    struct stat status;

    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    kv_fixture_begin(&copy);
    copy.options.path = path;
    kv_fixture_open(&copy); /* looks through all of it */
    ck_assert_uint_ge(kv_fixture_count(copy.kv, "/w/"), KEYS);
    kv_fixture_end(&copy);
}

/* That which kill -9 would leave at any moment under the name of a backup: nothing, or all of it. */
static void *back_up_once(void *path)
{
    struct error err;

    ck_assert_msg(kv_backup(kv_store.options.path, path, &err) == 0, "%s", err.message);
    return NULL;
}

/* Backups end while writers never pause, and writers go on meanwhile. A backup during which none of them wrote does not
 * count. */
TEST(backups_end_while_eight_write_and_are_whole_once_they_have_a_name)
{
    fill();
    start_writers();
    for (int i = 0, went_on = 0; went_on < 3; i++) {
        char *path = arena_printf(kv_store.arena, "%s.%d", kv_store.options.path, i);
        int before = atomic_load(&written);
        pthread_t thread;

        ck_assert_int_lt(i, BACKUPS);
        ck_assert_int_eq(pthread_create(&thread, NULL, back_up_once, path), 0);
        while (access(path, F_OK) != 0)
            (void)poll(NULL, 0, 1);
        expect_whole(path);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        went_on += atomic_load(&written) > before;
    }
    stop_writers();
}

/* --- a backup that is the store --- */

/* Of a store in which a key was changed and one was deleted. */
static uint64_t begin_with_backup(void)
{
    kv_fixture_open(&kv_store);
    kv_fixture_put("/a", "1", 0);
    kv_fixture_put("/b", "1", 0);
    kv_fixture_put("/a", "2", KV_ANY);
    kv_fixture_delete("/b", KV_ANY);
    ck_assert_int_eq(kv_backup(kv_store.options.path, backup, &kv_store.err), 0);
    return kv_revision(kv_store.kv);
}

/* Writes behind the backup and returns the newest revision, which the restored store does not have. */
static uint64_t write_what_is_lost(void)
{
    for (int i = 0; i < LOST; i++)
        kv_fixture_put("/lost", "x", KV_ANY);
    uint64_t revision = kv_revision(kv_store.kv);
    kv_fixture_close(&kv_store);
    return revision;
}

/* As docs/explanation/standalone.md says: the file in place, the log and its index away. */
static void put_back(void)
{
    struct kv_bytes copy = kv_fixture_read_file(backup);

    kv_fixture_write_file(kv_store.options.path, copy.bytes, copy.len);
    (void)unlink(kv_fixture_file("-wal"));
    (void)unlink(kv_fixture_file("-shm"));
}

TEST(revisions_go_on_above_those_that_are_lost)
{
    struct kv_watch *watch = NULL;
    struct kv_value value;

    uint64_t backed_up = begin_with_backup(), lost = write_what_is_lost();
    put_back();
    kv_fixture_open(&kv_store);
    uint64_t restored = kv_revision(kv_store.kv);
    ck_assert_uint_gt(restored, lost);
    ck_assert_uint_lt(restored, MAX_SAFE);
    ck_assert_str_eq(kv_fixture_list("/", 0), "/a=2");

    /* A client with a version from before the restore must list again. */
    ck_assert_int_eq(kv_watch(kv_store.kv, "/", lost, &watch, &kv_store.err), -ERROR_GONE);
    ck_assert_int_eq(kv_watch(kv_store.kv, "/", backed_up, &watch, &kv_store.err), -ERROR_GONE);
    ck_assert_int_eq(kv_get(kv_store.kv, kv_store.arena, "/a", backed_up, &value, &kv_store.err),
                     -ERROR_GONE);

    watch = kv_fixture_watch("/", restored);
    ck_assert_uint_eq(kv_fixture_put("/b", "3", 0), restored + 1);
    kv_fixture_put("/a", "3", KV_ANY);
    ck_assert_str_eq(kv_fixture_next(watch), "+/b=3");
    ck_assert_str_eq(kv_fixture_next(watch), "~/a=3(2)");
    kv_watch_close(watch);
}

/* A machine whose clock is not set yet, or to nonsense. */
TEST(without_a_clock_they_go_up_by_a_large_step)
{
    static const int64_t WALL_MS[] = { 0, INT64_C(1) << 50 };

    uint64_t last = begin_with_backup();
    kv_fixture_close(&kv_store);
    for (size_t i = 0; i < ARRAY_LEN(WALL_MS); i++) {
        atomic_store(&kv_store.clock.elapsed_ms, WALL_MS[i] - FAKE_CLOCK_WALL_US / 1000);
        put_back();
        kv_fixture_open(&kv_store);
        ck_assert_uint_eq(kv_revision(kv_store.kv), last + STEP); /* also of the restore before */
        last += STEP;
        kv_fixture_close(&kv_store);
    }
}

/* A full disk, say: it is still a backup for the next start. */
TEST(one_that_could_not_be_restored_is_restored_later)
{
    (void)begin_with_backup();
    uint64_t lost = write_what_is_lost();
    put_back();
    kv_fixture_execute("CREATE TRIGGER stop BEFORE UPDATE ON state"
                       " BEGIN SELECT RAISE(ABORT, 'stopped'); END");
    ck_assert_int_lt(kv_open(&kv_store.options, &kv_store.kv, &kv_store.err), 0);
    kv_fixture_execute("DROP TRIGGER stop");
    ck_assert_int_eq(kv_fixture_count_rows(), 4);
    kv_fixture_open(&kv_store);
    ck_assert_uint_gt(kv_revision(kv_store.kv), lost);
}
