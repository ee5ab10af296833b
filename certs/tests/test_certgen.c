/* The program propeller-certgen, on files. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certs/file_place.h"
#include "certs/file_set.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

/* Processes at once. */
#define MANY 4

static struct arena *arena;
static char *dir;
static char *program;

static void setup(void)
{
    json_init();
    arena = arena_create();
    dir = temp_dir_create();
    program = process_built("propeller-certgen");
}

static void teardown(void)
{
    free(program);
    temp_dir_destroy(dir);
    arena_destroy(arena);
}

TEST_GROUP("certgen", setup, teardown);

static const char *in_dir(const char *name)
{
    return arena_printf(arena, "%s/%s", dir, name);
}

static pid_t certgen_start_with(const char *cert_dir, const char *ca_dir, const char *log,
                                const char *more)
{
    const char *const argv[] = { program, "--cert-dir",          cert_dir,           "--ca-dir",
                                 ca_dir,  "--webhook-namespace", "propeller-system", more,
                                 NULL };

    return process_start(argv, in_dir(log));
}

static pid_t certgen_start(const char *cert_dir, const char *ca_dir, const char *log)
{
    return certgen_start_with(cert_dir, ca_dir, log, NULL);
}

static const char *said(const char *log)
{
    char *text = temp_file_read(dir, log);
    const char *copy = arena_strdup(arena, text);

    free(text);
    return copy;
}

static const char *read_one(const char *directory, const char *name)
{
    const char *text = NULL;
    struct error err = { 0 };

    ck_assert_msg(file_set_read(arena, directory, name, &text, &err) == 0, "%s", err.message);
    return text;
}

/* The log of the run that was refused. */
static void expect_refused(const char *cert_dir, const char *ca_dir, const char *log)
{
    ck_assert_int_ne(process_end(certgen_start(cert_dir, ca_dir, log), 0), 0);
    ck_assert_msg(strstr(said(log), "--ca-dir: must not be --cert-dir"), "%s", said(log));
}

TEST(one_directory_by_two_names_is_refused_and_the_pair_in_it_stays)
{
    const char *certs = in_dir("certs");
    const char *link = in_dir("link");

    ck_assert_int_eq(process_end(certgen_start(certs, in_dir("ca"), "first"), 0), 0);
    const char *cert = read_one(certs, FILE_PLACE_CERT);
    const char *key = read_one(certs, FILE_PLACE_KEY);
    ck_assert_ptr_nonnull(cert);
    ck_assert_ptr_nonnull(key);

    ck_assert_int_eq(symlink("certs", link), 0);
    expect_refused(certs, certs, "same");
    expect_refused(certs, arena_printf(arena, "%s/./certs/", dir), "dotted");
    expect_refused(certs, link, "linked");
    expect_refused(link, certs, "linked-too");
    ck_assert_str_eq(read_one(certs, FILE_PLACE_CERT), cert);
    ck_assert_str_eq(read_one(certs, FILE_PLACE_KEY), key);
    ck_assert_ptr_null(read_one(certs, FILE_PLACE_CA_KEY));
}

TEST(one_directory_that_is_not_there_yet_is_refused_and_stays_empty)
{
    const char *made = in_dir("made");

    ck_assert_int_eq(symlink("made", in_dir("dangling")), 0);
    expect_refused(arena_printf(arena, "%s/./made", dir), made, "dotted");
    ck_assert_int_eq(rmdir(made), 0);
    expect_refused(in_dir("dangling"), made, "dangling.log");
    ck_assert_int_eq(rmdir(made), 0);
}

TEST(of_many_at_once_one_makes_the_pairs_and_the_others_keep_them)
{
    pid_t pids[MANY];
    unsigned made = 0;

    for (unsigned i = 0; i < MANY; i++)
        pids[i] = certgen_start(in_dir("certs"), in_dir("ca"), arena_printf(arena, "%u", i));
    for (unsigned i = 0; i < MANY; i++) {
        const char *log = arena_printf(arena, "%u", i);
        int status = process_end(pids[i], 0);

        ck_assert_msg(status == 0, "status %d: %s", status, said(log));
        made += strstr(said(log), "new authority") != NULL;
    }
    ck_assert_uint_eq(made, 1);
}

/* It has the directory open, or has ended. */
static bool has_come_to(pid_t pid, const char *directory)
{
    char path[4096];

    for (int fd = 3; fd < 32; fd++) {
        ssize_t len =
            readlink(arena_printf(arena, "/proc/%d/fd/%d", (int)pid, fd), path, sizeof(path) - 1);
        if (len < 0)
            continue;
        path[len] = '\0';
        if (file_set_is_same(path, directory))
            return true;
    }
    return false;
}

TEST(a_check_waits_for_who_is_renewing)
{
    const char *certs = in_dir("certs");
    const char *ca = in_dir("ca");
    struct error err;
    int lock;

    ck_assert_int_eq(process_end(certgen_start(certs, ca, "first"), 0), 0);
    ck_assert_int_eq(file_set_lock(ca, &lock, &err), 0);
    ck_assert_int_eq(rename(certs, in_dir("aside")), 0); /* half of it is there */

    pid_t pid = certgen_start_with(certs, ca, "check", "--check");
    while (!has_come_to(pid, ca)) {
        ck_assert_msg(!process_has_ended(pid), "did not wait: %s", said("check"));
        (void)poll(NULL, 0, 1);
    }
    ck_assert_int_eq(rename(in_dir("aside"), certs), 0);
    file_set_unlock(lock);
    int status = process_end(pid, 0);
    ck_assert_msg(status == 0, "status %d: %s", status, said("check"));
}

TEST(a_check_makes_nothing)
{
    ck_assert_int_ne(
        process_end(certgen_start_with(in_dir("certs"), in_dir("ca"), "check", "--check"), 0), 0);
    ck_assert_msg(strstr(said("check"), "to be done: new authority"), "%s", said("check"));
    ck_assert_int_lt(access(in_dir("ca"), F_OK), 0);
}
