/* Readers and backups of a store that others write to, that was killed, or that is damaged. The test
 * starts itself as the process that makes backups until it is killed. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

#define KILLS ((int)power_count(10, 25, 100))
#define WRITERS 8
#define BACKUPS 200
#define KEYS 300
#define VALUE 4000

static struct kv_fixture fixture;

static void begin(void)
{
    kv_fixture_begin(&fixture);
}

static void end(void)
{
    kv_fixture_end(&fixture);
}

TEST_GROUP("reader", begin, end);

static struct kv_reader *reader_open(void)
{
    struct kv_reader *reader = NULL;
    int r = kv_reader_open(fixture.options.path, &reader, &fixture.err);

    ck_assert_msg(r == 0, "%s", fixture.err.message);
    return reader;
}

/* "key=text …", read in pages of two. */
static const char *read_all(struct kv_reader *reader)
{
    struct kv_range range = { .prefix = "/", .limit = 2, .uncounted = true };
    const char *text = "";
    struct kv_page page;

    do {
        ck_assert_int_eq(kv_reader_list(reader, fixture.arena, &range, &page, &fixture.err), 0);
        for (size_t i = 0; i < page.len; i++)
            text = arena_printf(fixture.arena, "%s%s=%s ", text, page.items[i].key,
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

    ck_assert_int_eq(kv_reader_list(reader, fixture.arena, &range, &page, &fixture.err), 0);
    return page.revision;
}

TEST(a_reader_sees_one_revision_however_much_is_written)
{
    struct kv_value value;

    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/a", "1", 0);
    kv_fixture_put(&fixture, "/b", "1", 0);
    uint64_t revision = kv_fixture_put(&fixture, "/c", "1", 0);
    struct kv_reader *reader = reader_open();

    ck_assert_uint_eq(revision_of(reader), revision);
    for (int i = 0; i < 200; i++) {
        kv_fixture_put(&fixture, "/a", arena_printf(fixture.arena, "%*d", 3000, i), KV_ANY);
        if (i % 50 == 0)
            ck_assert_str_eq(read_all(reader), "/a=1 /b=1 /c=1 ");
    }
    kv_fixture_delete(&fixture, "/b", KV_ANY);
    ck_assert_str_eq(read_all(reader), "/a=1 /b=1 /c=1 ");
    ck_assert_int_eq(kv_reader_get(reader, fixture.arena, "/b", &value, &fixture.err), 0);
    ck_assert_str_eq(value.text, "1");
    ck_assert_int_eq(kv_reader_get(reader, fixture.arena, "/d", &value, &fixture.err),
                     -ERROR_NOT_FOUND);
    kv_reader_close(reader);
    reader = reader_open();
    ck_assert_uint_eq(revision_of(reader), revision + 201);
    ck_assert_int_eq(kv_reader_get(reader, fixture.arena, "/b", &value, &fixture.err),
                     -ERROR_NOT_FOUND);
    kv_reader_close(reader);
}

TEST(what_is_no_store_is_said_and_left)
{
    struct kv_reader *reader = NULL;
    struct stat status;
    int fd;

    ck_assert_int_eq(kv_reader_open(fixture.options.path, &reader, &fixture.err), -ERROR_NOT_FOUND);
    ck_assert_int_ne(stat(fixture.options.path, &status), 0);
    fd = open(fixture.options.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(kv_reader_open(fixture.options.path, &reader, &fixture.err), -ERROR_NOT_FOUND);
    fd = open(fixture.options.path, O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(write(fd, "no database at all\n", 19), 19);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(kv_reader_open(fixture.options.path, &reader, &fixture.err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "restore a backup"));
}

static void execute(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

TEST(a_damaged_row_is_no_backup)
{
    const char *backup = kv_fixture_file(&fixture, ".backup");

    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/a", "6", 0);
    execute(fixture.options.path, "UPDATE history SET text = '9'");
    ck_assert_int_eq(kv_backup(fixture.options.path, backup, &fixture.err), -ERROR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "the copy is not sound"));
    ck_assert_uint_eq(kv_fixture_count_files(&fixture, ".backup"), 0);
}

/* --- backups while others write --- */

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

        if (kv_put(fixture.kv, key, value, VALUE, KV_ANY, NULL, &err) < 0)
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

    kv_fixture_begin(&copy);
    copy.options.path = path;
    kv_fixture_open(&copy); /* looks through all of it */
    ck_assert_uint_ge(kv_fixture_count(copy.kv, "/w/"), KEYS);
    kv_fixture_end(&copy);
}

/* The copies would grow with the history. */
static void open_small(void)
{
    fixture.options.history_revisions = 200;
    kv_fixture_open(&fixture);
}

static void fill(void)
{
    const char *value = arena_printf(fixture.arena, "%0*d", VALUE, 0);

    for (int i = 0; i < KEYS; i++)
        kv_fixture_put(&fixture, arena_printf(fixture.arena, "/w/%d", i), value, 0);
}

/* Each is made although somebody always writes, and writers go on meanwhile: where they had no turn while it
 * was made, that is seen of another one. */
TEST(backups_end_while_eight_write)
{
    open_small();
    fill();
    start_writers();
    for (int i = 0, went_on = 0; went_on < 5; i++) {
        const char *path = arena_printf(fixture.arena, "%s.%d", fixture.options.path, i);
        int before = atomic_load(&written);

        ck_assert_int_lt(i, BACKUPS);
        ck_assert_int_eq(kv_backup(fixture.options.path, path, &fixture.err), 0);
        went_on += atomic_load(&written) > before;
        expect_whole(path);
        ck_assert_int_eq(unlink(path), 0);
    }
    stop_writers();
}

/* --- kill -9 --- */

/* Backups with the names <store>.0, <store>.1 …, until it is killed; a byte for each that is done. */
static int back_up_until_killed(const char *store, const char *first)
{
    int64_t number = 0;
    struct error err;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!str_to_int64(first, &number))
        return 2;
    for (;; number++) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        int r = kv_backup(store, arena_printf(arena, "%s.%d", store, (int)number), &err);

        if (r < 0 && r != -ERROR_EXISTS)
            return 3;
        if (r == 0 && write(STDOUT_FILENO, ".", 1) != 1)
            return 4;
    }
}

static pid_t start_backups(int first, int *ret_pipe)
{
    const char *text = arena_printf(fixture.arena, "%d", first);
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl("/proc/self/exe", "test", "back-up", fixture.options.path, text, NULL);
        _exit(5);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(close(ends[1]), 0);
    *ret_pipe = ends[0];
    return pid;
}

/* Kills it at a random moment behind its first backup; how many it has made. */
static int kill_backups(pid_t pid, int pipe_fd, uint64_t *state)
{
    struct pollfd next = { .fd = pipe_fd, .events = POLLIN };
    char bytes[64];
    int done = 1, status;

    ck_assert_int_eq(read(pipe_fd, bytes, 1), 1);
    ck_assert_int_ge(poll(&next, 1, (int)random_below(state, 30)), 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status), "it ended by itself: %d", status);
    for (ssize_t n; (n = read(pipe_fd, bytes, sizeof(bytes))) > 0;)
        done += (int)n;
    ck_assert_int_eq(close(pipe_fd), 0);
    return done;
}

TEST(kill_9_leaves_no_half_backup_under_its_name)
{
    uint64_t state = 11;
    int next = 0, cut_short = 0;

    open_small();
    fill();
    start_writers();
    for (int i = 0; i < KILLS; i++) {
        struct stat status;
        int pipe_fd;
        pid_t pid = start_backups(next, &pipe_fd);
        int done = kill_backups(pid, pipe_fd, &state);

        /* One more may have got its name, but not been told of. */
        for (int k = 0; k <= done; k++) {
            const char *path = arena_printf(fixture.arena, "%s.%d", fixture.options.path, next + k);

            if (stat(path, &status) == 0)
                expect_whole(path);
            else
                ck_assert_int_eq(k, done);
            (void)unlink(path);
        }
        cut_short += kv_fixture_count_files(
                         &fixture, arena_printf(fixture.arena, ".%d.new-", next + done)) > 0;
        next += done; /* and beside what is left of the one that was cut short */
    }
    stop_writers();
    ck_assert_int_gt(cut_short, KILLS / 4);
}

/* As docs/explanation/standalone.md says: the file in place, the log and its index away. */
TEST(a_backup_in_the_place_of_the_file_is_the_store)
{
    const char *backup = kv_fixture_file(&fixture, ".backup");

    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/a", "1", 0);
    ck_assert_int_eq(kv_backup(fixture.options.path, backup, &fixture.err), 0);
    kv_fixture_put(&fixture, "/a", "2", KV_ANY);
    kv_fixture_put(&fixture, "/b", "2", 0);
    kv_fixture_close(&fixture);
    ck_assert_int_eq(rename(backup, fixture.options.path), 0);
    (void)unlink(kv_fixture_file(&fixture, "-wal"));
    (void)unlink(kv_fixture_file(&fixture, "-shm"));
    kv_fixture_open(&fixture);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), "/a=1");
}

int main(int argc, char **argv)
{
    alloc_init();
    if (argc == 4 && str_equal(argv[1], "back-up"))
        return back_up_until_killed(argv[2], argv[3]);
    return suite_run_tests();
}
