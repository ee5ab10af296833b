/* kill -9 at random under 16 writers. The test starts itself as the process that writes; what it was
 * told is acknowledged comes through a pipe, which outlives the process. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/base/str.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"
#include "standalone/tests/kv_oracle.h"

#define KILLS power_count(10, 40, 200)

#define WRITERS 16
#define KEYS_EACH 3
#define KEYS ((size_t)WRITERS * KEYS_EACH)
#define MAX_ACKS 80
/* Writes of one process have the numbers from round * ROUND on. */
#define ROUND 1000000
#define REPORT_FD 3

/* --- the process that is killed --- */

/* A line of a report. revision 0: it is about to be written. One write, so lines do not mix. */
struct report {
    uint64_t key;
    uint64_t n;
    uint64_t revision;
};

struct writer {
    pthread_t thread;
    struct kv *kv;
    size_t number;
    uint64_t n;
};

static void report(size_t key, uint64_t n, uint64_t revision)
{
    struct report line = { .key = key, .n = n, .revision = revision };

    if (write(REPORT_FD, &line, sizeof(line)) != (ssize_t)sizeof(line))
        _exit(3);
}

static void write_once(struct writer *self)
{
    size_t key = self->number * KEYS_EACH + self->n % KEYS_EACH;
    uint64_t n = self->n++, revision;
    struct error err;

    report(key, n, 0);
    if (kv_oracle_write(self->kv, key, n, &revision, &err) < 0)
        _exit(4);
    if (revision)
        report(key, n, revision);
}

static void *write_on(void *ctx)
{
    for (;;)
        write_once(ctx);
    return NULL;
}

static int write_until_killed(const char *path, uint64_t first)
{
    struct kv_options options = { .path = path, .history_revisions = 2000 };
    static struct writer writers[WRITERS];
    struct kv *kv;
    struct error err;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (kv_open(&options, &kv, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .kv = kv, .number = i, .n = first };
        if (pthread_create(&writers[i].thread, NULL, write_on, &writers[i]))
            return 2;
    }
    pthread_join(writers[0].thread, NULL);
    return 2;
}

/* --- the one that kills it --- */

struct oracle {
    struct kv_known keys[KEYS];
    uint64_t head;                              /* at the last look */
    struct report acks[MAX_ACKS + ROUND / 100]; /* of this round */
    size_t acks_len;
    uint64_t random;
};

static struct kv_fixture fixture;
static struct oracle oracle;

static void begin(void)
{
    kv_fixture_begin(&fixture);
    fixture.options.clock = NULL;
    oracle = (struct oracle){ .head = 1, .random = 4711 };
}

static void end(void)
{
    kv_fixture_end(&fixture);
}

TEST_GROUP("kill", begin, end);

static pid_t start_writers(uint64_t round, int *ret_fd)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    const char *first = arena_printf(fixture.arena, "%" PRIu64, round * ROUND);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (ends[1] != REPORT_FD && dup2(ends[1], REPORT_FD) < 0)
            _exit(5);
        if (ends[0] != REPORT_FD)
            (void)close(ends[0]);
        (void)execl("/proc/self/exe", "test_kv_kill", fixture.options.path, first, (char *)NULL);
        _exit(5);
    }
    ck_assert_int_eq(close(ends[1]), 0);
    *ret_fd = ends[0];
    return pid;
}

static bool read_report(int fd, struct report *ret)
{
    size_t len = 0;

    while (len < sizeof(*ret)) {
        ssize_t n = read(fd, (char *)ret + len, sizeof(*ret) - len);
        ck_assert_int_ge(n, 0);
        if (n == 0)
            break;
        len += (size_t)n;
    }
    ck_assert(len == 0 || len == sizeof(*ret));
    return len > 0;
}

static void note(const struct report *line)
{
    struct kv_known *known = &oracle.keys[line->key];

    if (!line->revision) {
        known->asked = line->n;
        return;
    }
    ck_assert_uint_eq(line->n, known->asked);
    ck_assert_uint_gt(line->revision, oracle.head); /* also of what was never told */
    ck_assert_uint_gt(line->revision, known->revision);
    known->n = line->n;
    known->revision = line->revision;
    ck_assert_uint_lt(oracle.acks_len, ARRAY_LEN(oracle.acks));
    oracle.acks[oracle.acks_len++] = *line;
}

/* What is noted beside the store: nothing that was acknowledged is above it, or its loss would not be seen. */
static void check_mark(void)
{
    char text[64] = "";
    uint64_t revision = 0;
    int fd = open(kv_fixture_file(&fixture, "-lock"), O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(read(fd, text, sizeof(text) - 1), 0);
    ck_assert_int_eq(close(fd), 0);
    if (oracle.acks_len)
        ck_assert_int_eq(sscanf(text, "made\nrevision %" SCNu64, &revision), 1);
    for (size_t i = 0; i < oracle.acks_len; i++)
        ck_assert_uint_ge(revision, oracle.acks[i].revision);
}

/* After so many acknowledgements; or at once, while it opens the file and reads its log. */
static void let_write_and_kill(uint64_t round)
{
    uint64_t acks = random_below(&oracle.random, MAX_ACKS);
    struct report line;
    int fd, status;
    pid_t pid = start_writers(round, &fd);

    oracle.acks_len = 0;
    if (acks < MAX_ACKS / 10) {
        for (uint64_t i = random_below(&oracle.random, 2000); i; i--)
            (void)sched_yield();
    } else {
        while (oracle.acks_len < acks && read_report(fd, &line))
            note(&line);
    }
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status), "round %" PRIu64 ": it ended by itself: %d", round, status);
    while (read_report(fd, &line))
        note(&line);
    ck_assert_int_eq(close(fd), 0);
}

static int by_revision(const void *a, const void *b)
{
    const struct report *left = a, *right = b;

    return left->revision < right->revision ? -1 : left->revision > right->revision;
}

/* Since the last look: each acknowledged write has its revision, and what lies between them are
 * writes that were begun and not told. */
static void check_events(void)
{
    struct kv_watch *watch = kv_fixture_watch(&fixture, "/", oracle.head);
    uint64_t revision = oracle.head;
    size_t acked = 0, untold = 0;

    qsort(oracle.acks, oracle.acks_len, sizeof(*oracle.acks), by_revision);
    for (;;) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct kv_event event;
        int r = kv_watch_next(watch, arena, &event, &fixture.err);
        ck_assert_msg(r >= 0, "%s", fixture.err.message);
        if (r == 0)
            break;
        ck_assert_uint_eq(event.value.revision, ++revision);
        if (acked == oracle.acks_len || oracle.acks[acked].revision != revision) {
            untold++;
            continue;
        }
        const struct report *ack = &oracle.acks[acked++];
        ck_assert_str_eq(event.value.key, kv_oracle_name(arena, ack->key));
        ck_assert_int_eq(event.type, kv_oracle_deletes(ack->n) ? KV_DELETE : KV_PUT);
        if (event.type == KV_PUT)
            ck_assert_str_eq(event.value.text, kv_oracle_text(arena, ack->key, ack->n));
    }
    ck_assert_msg(acked == oracle.acks_len, "revision %" PRIu64 " is lost",
                  acked < oracle.acks_len ? oracle.acks[acked].revision : 0);
    ck_assert_uint_le(untold, WRITERS);
    kv_watch_close(watch);
}

TEST(nothing_acknowledged_is_lost_and_nothing_is_half_written)
{
    size_t acks = 0;

    for (uint64_t round = 1; round <= KILLS; round++) {
        let_write_and_kill(round);
        check_mark();
        kv_fixture_open(&fixture);
        check_events();
        for (size_t key = 0; key < KEYS; key++)
            kv_oracle_check(fixture.kv, key, &oracle.keys[key]);
        ck_assert_uint_ge(kv_revision(fixture.kv), oracle.head);
        oracle.head = kv_revision(fixture.kv);
        acks += oracle.acks_len;
        kv_fixture_close(&fixture);
    }
    ck_assert_uint_gt(acks, KILLS * 5);
}

int main(int argc, char **argv)
{
    int64_t first = 0;

    if (argc == 3)
        return str_to_int64(argv[2], &first) ? write_until_killed(argv[1], (uint64_t)first) : 2;
    return suite_run_tests();
}
