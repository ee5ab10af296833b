#include "webhook/tests/serving_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/runtime/metrics.h"
#include "common/tests/power.h"
#include "common/tests/temp_dir.h"
#include "webhook/handler.h"

#define A "CN = a"
#define B "CN = b"
#define DAY_S 86400

/* The value behind the name and labels; 0: there is none yet. */
static double metric_of(const char *name)
{
    struct buf text = BUF_INIT(METRICS_MAX_TEXT);
    double value = 0;

    ck_assert(metrics_write(&text));
    const char *line = strstr(buf_string(&text), arena_printf(serving_arena, "\n%s ", name));
    if (line)
        value = strtod(line + strlen(name) + 2, NULL);
    buf_release(&text);
    return value;
}

static double expiry_seconds(void)
{
    return metric_of("propeller_webhook_certificate_expiry_seconds");
}

static double failed_loads(void)
{
    return metric_of("propeller_webhook_certificate_loads_total{result=\"failed\"}");
}

static void wait_failed_load(void)
{
    while (failed_loads() < 1)
        poll(NULL, 0, 5);
}

/* The seconds to expiry follow the clock after each look at the files. */
static void wait_another_look(void)
{
    double before = expiry_seconds();

    serving_advance_clock(-DAY_S);
    while (expiry_seconds() < before + 0.5 * DAY_S)
        poll(NULL, 0, 5);
}

TEST_GROUP_ONCE("serving", serving_make_certificates, serving_remove_certificates, serving_set_up,
                serving_tear_down);

TEST(without_a_pair_nothing_listens_and_readyz_says_why)
{
    serving_begin();
    serving_wait_unready("no certificate: cannot open");
    serving_wait_unready("/tls.crt': No such file or directory");
    ck_assert_uint_eq(serving_port(serving), 0);
}

TEST(a_pair_that_comes_later_is_served)
{
    serving_begin();
    serving_wait_unready("tls.crt");
    serving_put_cert("a");
    serving_wait_unready("tls.key");
    ck_assert_uint_eq(serving_port(serving), 0);
    serving_put_key("a");
    serving_wait_ready();
    ck_assert_str_eq(serving_subject(), A);
}

TEST(the_next_handshake_has_the_new_pair)
{
    serving_put_pair("a");
    serving_begin();
    ck_assert_str_eq(serving_subject(), A);
    serving_put_pair("b");
    serving_wait_subject(B);
    serving_put_pair("a");
    serving_wait_subject(A);
}

TEST(a_connection_in_use_is_answered_while_the_pair_changes)
{
    CLEANUP(tls_client_destroyp) struct tls_client *client = tls_client_create(serving_ca());

    serving_put_pair("a");
    serving_begin();
    unsigned port = serving_port(serving);
    ck_assert_int_eq(tls_client_post(client, serving_arena, port, SERVING_PATH, "{", 1).status,
                     400);
    serving_put_pair("b");
    serving_wait_subject(B);
    ck_assert_int_eq(tls_client_post(client, serving_arena, port, SERVING_PATH, "{", 1).status,
                     400);
    ck_assert_uint_eq(tls_client_connections(client), 1);
    /* that answer ended the old connection */
    ck_assert_str_eq(tls_client_post(client, serving_arena, port, SERVING_PATH, "{", 1).subject, B);
    ck_assert_uint_eq(serving_port(serving), port);
}

TEST(halves_of_two_pairs_change_nothing_until_both_are_there)
{
    char why[300];

    serving_put_pair("a");
    serving_begin();
    serving_put_cert("b");
    wait_failed_load();
    ck_assert_str_eq(serving_subject(), A);
    ck_assert(serving_is_ready(why));
    serving_put_key("b");
    serving_wait_subject(B);
}

/* A folder of one state of a mounted Secret. */
static void mount(const char *folder, const char *pair)
{
    const char *path = arena_printf(serving_arena, "%s/%s", serving_dir, folder);

    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(
        symlink(serving_file_of(pair, ".crt"), arena_printf(serving_arena, "%s/tls.crt", path)), 0);
    ck_assert_int_eq(
        symlink(serving_file_of(pair, ".key"), arena_printf(serving_arena, "%s/tls.key", path)), 0);
}

/* As the kubelet does: one rename swaps all files. */
static void swap(const char *folder)
{
    const char *fresh = arena_printf(serving_arena, "%s/..data_tmp", serving_dir);

    ck_assert_int_eq(symlink(folder, fresh), 0);
    ck_assert_int_eq(rename(fresh, arena_printf(serving_arena, "%s/..data", serving_dir)), 0);
}

TEST(a_mounted_secret_that_is_swapped_is_followed)
{
    static const char *const FILES[] = { "tls.crt", "tls.key" };

    mount("..first", "a");
    mount("..second", "b");
    swap("..first");
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
        ck_assert_int_eq(symlink(arena_printf(serving_arena, "..data/%s", FILES[i]),
                                 arena_printf(serving_arena, "%s/%s", serving_dir, FILES[i])),
                         0);
    serving_begin();
    ck_assert_str_eq(serving_subject(), A);
    swap("..second");
    serving_wait_subject(B);
    swap("..first");
    serving_wait_subject(A);
}

TEST(removed_files_change_nothing)
{
    char why[300];

    serving_put_pair("a");
    serving_begin();
    ck_assert_int_eq(unlink(arena_printf(serving_arena, "%s/tls.crt", serving_dir)), 0);
    wait_failed_load();
    ck_assert_str_eq(serving_subject(), A);
    ck_assert(serving_is_ready(why));
}

TEST(readyz_says_when_the_certificate_has_expired_and_a_new_one_mends_it)
{
    serving_put_pair("a"); /* two days from now */
    serving_begin();
    serving_wait_ready();
    serving_advance_clock(3 * DAY_S);
    serving_wait_unready("the certificate expired at 20");
    serving_put_pair("b"); /* no better */
    wait_failed_load();
    serving_wait_unready("the certificate expired at 20");
    serving_advance_clock(-3 * DAY_S);
    serving_put_pair("a");
    serving_wait_subject(A);
    serving_wait_ready();
}

TEST(an_expired_pair_is_never_served_first)
{
    serving_put_pair("a");
    serving_advance_clock(3 * DAY_S);
    serving_begin();
    serving_wait_unready("no certificate: 'tls.crt' expired at 20");
    ck_assert_uint_eq(serving_port(serving), 0);
    serving_advance_clock(-3 * DAY_S); /* it was the clock; the files stay as they are */
    serving_wait_ready();
    ck_assert_str_eq(serving_subject(), A);
}

TEST(a_pair_of_the_future_is_served_when_its_time_has_come)
{
    serving_put_pair("a");
    serving_advance_clock(-DAY_S);
    serving_begin();
    serving_wait_unready("no certificate: 'tls.crt' is not valid before 20");
    ck_assert_uint_eq(serving_port(serving), 0);
    serving_advance_clock(DAY_S);
    serving_wait_ready();
    ck_assert_str_eq(serving_subject(), A);
}

TEST(a_pair_of_the_future_replaces_a_good_one_only_when_its_time_has_come)
{
    enum { LOOKS = 4 };
    char why[300];

    serving_put_pair("a");
    serving_begin();
    serving_wait_ready();
    wait_another_look(); /* a day back: "b" begins tomorrow */
    serving_put_pair("b");
    wait_failed_load();
    for (int i = 1; i < LOOKS; i++)
        wait_another_look();
    ck_assert_double_eq(failed_loads(), 1); /* one reason is counted and logged once */
    ck_assert_str_eq(serving_subject(), A);
    ck_assert(serving_is_ready(why));
    serving_advance_clock(LOOKS * DAY_S);
    serving_wait_subject(B);
    serving_wait_ready();
}

TEST(the_seconds_to_expiry_are_counted_down)
{
    serving_put_pair("a");
    serving_begin();
    double before = expiry_seconds();
    ck_assert(before > DAY_S && before <= 2 * DAY_S);
    serving_advance_clock(1000);
    for (int i = 0; i < 3000 && expiry_seconds() > before - 1000; i++)
        poll(NULL, 0, 5);
    ck_assert(expiry_seconds() <= before - 1000 && expiry_seconds() > before - 1100);
}

TEST(an_address_in_use_is_an_error_at_the_start)
{
    serving_put_pair("a");
    serving_begin();

    struct serving_options options = {
        .cert_dir = serving_dir,
        .clock = &CLOCK_SYSTEM,
        .http = { .address = arena_printf(serving_arena, "127.0.0.1:%u", serving_port(serving)),
                  .handler = admission_handle },
    };
    struct serving *second = serving_create(&options);
    struct error err = { 0 };

    ck_assert_int_eq(serving_start(second, &err), -ERROR_UNAVAILABLE);
    serving_stop(second);
    serving_join(second);
    serving_destroy(second);
}

TEST(an_address_that_is_in_use_when_the_pair_comes_is_tried_again)
{
    serving_put_pair("a");
    serving_begin();
    const char *later = arena_printf(serving_arena, "%s/later", serving_dir);
    struct serving_options options = {
        .cert_dir = later,
        .clock = &CLOCK_SYSTEM,
        .poll_ms = 20,
        .http = { .address = arena_printf(serving_arena, "127.0.0.1:%u", serving_port(serving)),
                  .handler = admission_handle },
    };
    struct serving *second = serving_create(&options);
    struct error err = { 0 };
    char why[300] = "";

    (void)serving_start(second, &err);
    ck_assert_int_eq(symlink(serving_dir, later), 0);
    while (!strstr(why, "127.0.0.1")) {
        ck_assert_int_eq(serving_check(second, why, sizeof(why)), 0);
        poll(NULL, 0, 5);
    }
    serving_stop(serving);
    serving_join(serving);
    while (!serving_check(second, why, sizeof(why)))
        poll(NULL, 0, 5);
    serving_stop(second);
    serving_join(second);
    serving_destroy(second);
}

TEST(stopping_is_quick_and_frees_the_port)
{
    serving_put_pair("a");
    serving_begin();
    unsigned port = serving_port(serving);
    serving_stop(serving);
    serving_join(serving);
    ck_assert_uint_eq(serving_port(serving), 0);

    CLEANUP(tls_client_destroyp) struct tls_client *client = tls_client_create(serving_ca());
    ck_assert_int_eq(tls_client_post(client, serving_arena, port, SERVING_PATH, "{", 1).status, 0);
}

#define CLIENTS 8
#define ROTATIONS ((int)power_count(8, 30, 30))
static atomic_bool done;
static atomic_uint answered;

static void count_answer(struct tls_client *client, struct arena *arena, void *failures)
{
    unsigned port = serving_port(serving);
    struct tls_reply reply = tls_client_post(client, arena, port, SERVING_PATH, "{", 1);

    atomic_fetch_add(reply.status == 400 ? &answered : (atomic_uint *)failures, 1);
}

static void *ask_on_one_connection(void *failures)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(tls_client_destroyp) struct tls_client *client = tls_client_create(serving_ca());

    while (!atomic_load(&done))
        count_answer(client, arena, failures);
    return NULL;
}

static void *ask_on_new_connections(void *failures)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    while (!atomic_load(&done)) {
        CLEANUP(tls_client_destroyp) struct tls_client *client = tls_client_create(serving_ca());

        count_answer(client, arena, failures);
    }
    return NULL;
}

TEST(no_request_fails_while_pairs_change_under_load)
{
    pthread_t threads[CLIENTS];
    atomic_uint failures = 0;

    serving_put_pair("a");
    serving_begin();
    for (size_t i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL,
                                        i % 2 ? ask_on_new_connections : ask_on_one_connection,
                                        &failures),
                         0);
    for (int i = 0; i < ROTATIONS; i++) {
        unsigned before = atomic_load(&answered);

        serving_put_pair(i % 2 ? "a" : "b");
        serving_wait_subject(i % 2 ? A : B);
        while (atomic_load(&answered) < before + CLIENTS * 2)
            poll(NULL, 0, 5);
    }
    atomic_store(&done, true);
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&failures), 0);
}
