/* Backups beside each other, and beside what others have left. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

#define KEYS 200
#define AT_ONCE 6

static struct kv_fixture fixture;
static const char *backup;

static void begin(void)
{
    kv_fixture_begin(&fixture);
    backup = kv_fixture_file(&fixture, ".backup");
    kv_fixture_open(&fixture);
    for (int i = 0; i < KEYS; i++)
        kv_fixture_put(&fixture, arena_printf(fixture.arena, "/k%03d", i), "x", 0);
}

static void end(void)
{
    kv_fixture_end(&fixture);
}

TEST_GROUP("backup", begin, end);

static void check_backup(void)
{
    const char *expected = kv_fixture_list(&fixture, "/", 0);

    kv_fixture_close(&fixture);
    fixture.options.path = backup;
    kv_fixture_open(&fixture);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), expected);
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
    attempt->r = kv_backup(fixture.options.path, backup, &attempt->err);
    return NULL;
}

TEST_TIMES(of_several_backups_at_once_one_gets_the_name, 2)
{
    struct attempt attempts[AT_ONCE];
    pthread_barrier_t barrier;
    size_t made = 0;

    if (_i) /* nobody has it open: each of them tries to */
        kv_fixture_close(&fixture);
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
                         arena_printf(fixture.arena, "backup '%s' exists already", backup));
    }
    (void)pthread_barrier_destroy(&barrier);
    ck_assert_uint_eq(made, 1);
    ck_assert_uint_eq(kv_fixture_count_files(&fixture, ".backup"), 1);
    if (_i)
        kv_fixture_open(&fixture);
    check_backup();
}

/* The names that such files have, and had. */
static const char *const LEFT[] = { ".backup.new", ".backup.new-journal", ".backup.new-aaaaaa",
                                    ".backup.new-aaaaaa-journal" };

TEST(what_a_killed_backup_has_left_disturbs_nobody)
{
    for (size_t i = 0; i < ARRAY_LEN(LEFT); i++) {
        int fd = open(kv_fixture_file(&fixture, LEFT[i]), O_WRONLY | O_CREAT, 0600);

        ck_assert_int_eq(write(fd, "half", 4), 4);
        close(fd);
    }
    ck_assert_msg(kv_backup(fixture.options.path, backup, &fixture.err) == 0, "%s",
                  fixture.err.message);
    ck_assert_uint_eq(kv_fixture_count_files(&fixture, ".backup"), 1 + ARRAY_LEN(LEFT));
    for (size_t i = 0; i < ARRAY_LEN(LEFT); i++) {
        struct stat status;

        ck_assert_int_eq(stat(kv_fixture_file(&fixture, LEFT[i]), &status), 0);
        ck_assert_int_eq(status.st_size, 4); /* it may be another's that is under way */
    }
    check_backup();
}

/* A name that leads nowhere is one, too. */
TEST(nothing_that_has_the_name_is_replaced)
{
    ck_assert_int_eq(symlink("/nowhere/else", backup), 0);
    ck_assert_int_eq(kv_backup(fixture.options.path, backup, &fixture.err), -ERROR_EXISTS);
    ck_assert_uint_eq(kv_fixture_count_files(&fixture, ".backup"), 1);
}
