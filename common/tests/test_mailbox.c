#include "common/runtime/mailbox.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/tests/suite.h"

#define PLENTY ((size_t)1 << 20)

/* Long enough that a wait that should end at once never ends by it on a loaded machine. */
#define LONG_MS 60000

static struct mailbox *mailbox;
static struct arena *arena;

static void set_up_with(size_t key_messages, size_t total_messages, size_t total_bytes)
{
    struct mailbox_limits limits = { .key_messages = key_messages,
                                     .total_messages = total_messages,
                                     .total_bytes = total_bytes };

    mailbox_destroy(mailbox);
    mailbox = mailbox_create(&limits);
}

static void set_up(void)
{
    arena = arena_create();
    set_up_with(PLENTY, PLENTY, PLENTY);
}

static void tear_down(void)
{
    mailbox_destroy(mailbox);
    mailbox = NULL;
    arena_destroy(arena);
}

static bool put(const char *key, const char *body, uint64_t *ret_sequence)
{
    struct mail mail = {
        .kind = "result", .source = "m/d/c/c", .body = body, .body_len = strlen(body)
    };

    return mailbox_put(mailbox, key, &mail, ret_sequence);
}

START_TEST(peek_gives_the_oldest_first_and_keeps_them)
{
    struct mail *mail;

    ck_assert(put("a", "one", NULL));
    ck_assert(put("b", "other", NULL));
    ck_assert(put("a", "two", NULL));
    for (int again = 0; again < 2; again++) {
        ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 2);
        ck_assert_str_eq(mail[0].body, "one");
        ck_assert_str_eq(mail[1].body, "two");
        ck_assert_str_eq(mail[0].kind, "result");
        ck_assert_str_eq(mail[0].source, "m/d/c/c");
        ck_assert_uint_lt(mail[0].sequence, mail[1].sequence);
    }
    ck_assert_uint_eq(mailbox_len(mailbox), 3);
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "c", &mail), 0);
}
END_TEST

START_TEST(bodies_are_copied_with_their_nul_bytes)
{
    char bytes[] = { 'x', '\0', 'y' };
    struct mail in = { .kind = "create", .body = bytes, .body_len = sizeof(bytes) };
    struct mail *mail;

    ck_assert(mailbox_put(mailbox, "a", &in, NULL));
    memset(bytes, 'z', sizeof(bytes));
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 1);
    ck_assert_uint_eq(mail[0].body_len, 3);
    ck_assert_mem_eq(mail[0].body, "x\0y\0", 4);
    ck_assert_str_eq(mail[0].source, "");
}
END_TEST

START_TEST(what_was_peeked_outlives_its_acknowledgement)
{
    struct mail *mail;

    ck_assert(put("a", "one", NULL));
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 1);
    mailbox_ack(mailbox, "a", mail[0].sequence);
    ck_assert_str_eq(mail[0].body, "one");
}
END_TEST

START_TEST(ack_leaves_what_came_after_the_peek)
{
    uint64_t first;
    uint64_t second;
    struct mail *mail;

    ck_assert(put("a", "one", &first));
    ck_assert(put("a", "two", &second));
    ck_assert_uint_lt(first, second);
    mailbox_ack(mailbox, "a", first);
    mailbox_ack(mailbox, "a", first);
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 1);
    ck_assert_str_eq(mail[0].body, "two");
    mailbox_ack(mailbox, "a", second);
    ck_assert_uint_eq(mailbox_len(mailbox), 0);
}
END_TEST

START_TEST(ack_of_one_key_leaves_older_mail_of_another)
{
    uint64_t sequence;

    ck_assert(put("b", "older", NULL));
    ck_assert(put("a", "newer", &sequence));
    mailbox_ack(mailbox, "a", sequence);
    mailbox_ack(mailbox, "nobody", sequence);
    ck_assert_uint_eq(mailbox_len(mailbox), 1);
}
END_TEST

START_TEST(sequences_rise_over_all_keys_and_after_a_drop)
{
    uint64_t before;
    uint64_t after;

    ck_assert(put("a", "", &before));
    mailbox_drop_all(mailbox);
    ck_assert_uint_eq(mailbox_len(mailbox), 0);
    ck_assert(put("b", "", &after));
    ck_assert_uint_lt(before, after);
}
END_TEST

START_TEST(a_put_over_the_limit_of_its_key_is_refused)
{
    uint64_t sequence;

    set_up_with(2, PLENTY, PLENTY);
    ck_assert(put("a", "1", &sequence));
    ck_assert(put("a", "2", NULL));
    ck_assert(!put("a", "3", NULL));
    ck_assert(put("b", "1", NULL));
    mailbox_ack(mailbox, "a", sequence);
    ck_assert(put("a", "3", NULL));
}
END_TEST

START_TEST(a_put_over_the_total_of_messages_is_refused)
{
    uint64_t sequence;

    set_up_with(PLENTY, 2, PLENTY);
    ck_assert(put("a", "", &sequence));
    ck_assert(put("b", "", NULL));
    ck_assert(!put("c", "", NULL));
    mailbox_ack(mailbox, "a", sequence);
    ck_assert(put("c", "", NULL));
}
END_TEST

START_TEST(a_put_over_the_total_of_bytes_is_refused_until_there_is_room)
{
    static char body[1025];
    uint64_t sequence;

    memset(body, 'x', sizeof(body) - 1);
    set_up_with(PLENTY, PLENTY, 2500);
    ck_assert(put("a", body, &sequence));
    ck_assert(put("b", body, NULL));
    ck_assert(!put("c", body, NULL));
    mailbox_ack(mailbox, "a", sequence);
    ck_assert(put("c", body, NULL));
    mailbox_drop_all(mailbox);
    ck_assert(put("c", body, NULL));
    ck_assert(put("c", body, NULL));
}
END_TEST

START_TEST(wait_says_whether_it_is_empty)
{
    ck_assert(mailbox_wait_empty(mailbox, LONG_MS));
    ck_assert(put("a", "", NULL));
    ck_assert(!mailbox_wait_empty(mailbox, 0));
    ck_assert(!mailbox_wait_empty(mailbox, 20));
}
END_TEST

struct waiter {
    pthread_t thread;
    atomic_bool waiting;
    bool empty;
    int64_t waited_ms;
};

static void *wait_thread(void *data)
{
    struct waiter *waiter = data;
    int64_t before_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    atomic_store(&waiter->waiting, true);
    waiter->empty = mailbox_wait_empty(mailbox, LONG_MS);
    waiter->waited_ms = clock_monotonic_ms(&CLOCK_SYSTEM) - before_ms;
    return NULL;
}

static void start_waiter(struct waiter *waiter)
{
    atomic_init(&waiter->waiting, false);
    ck_assert_int_eq(pthread_create(&waiter->thread, NULL, wait_thread, waiter), 0);
    while (!atomic_load(&waiter->waiting))
        sched_yield();
}

START_TEST(a_wait_ends_with_the_last_acknowledgement)
{
    struct waiter waiter;
    uint64_t one;
    uint64_t two;

    ck_assert(put("a", "", &one));
    ck_assert(put("b", "", &two));
    start_waiter(&waiter);
    mailbox_ack(mailbox, "a", one);
    mailbox_ack(mailbox, "b", two);
    pthread_join(waiter.thread, NULL);
    ck_assert(waiter.empty);
    ck_assert_int_lt(waiter.waited_ms, LONG_MS);
}
END_TEST

START_TEST(a_wait_ends_with_a_drop)
{
    struct waiter waiter;

    ck_assert(put("a", "", NULL));
    start_waiter(&waiter);
    mailbox_drop_all(mailbox);
    pthread_join(waiter.thread, NULL);
    ck_assert(waiter.empty);
    ck_assert_int_lt(waiter.waited_ms, LONG_MS);
}
END_TEST

struct waker {
    pthread_t thread;
    atomic_bool stop;
};

/* A wake ends the waits of its moment only, and nobody can see that a thread waits: repeated. */
static void *wake_thread(void *data)
{
    struct waker *waker = data;

    while (!atomic_load(&waker->stop)) {
        mailbox_wake(mailbox);
        sched_yield();
    }
    return NULL;
}

/* Passed over for long enough: see passed_over.h. */
static void park(const char *key)
{
    int64_t now_ms = 1;

    while (!mailbox_failed(mailbox, key, now_ms, now_ms - 1)) {
        ck_assert_int_lt(now_ms, (int64_t)LONG_MS * 100);
        now_ms += LONG_MS;
    }
}

START_TEST(parked_mail_is_kept_and_holds_up_nobody)
{
    struct mail *mail;

    ck_assert(put("stuck", "one", NULL));
    ck_assert(!mailbox_wait_empty(mailbox, 0));
    park("stuck");
    ck_assert(mailbox_wait_empty(mailbox, 0));
    ck_assert(put("stuck", "two", NULL));
    ck_assert(mailbox_wait_empty(mailbox, 0));
    ck_assert(put("other", "three", NULL));
    ck_assert(!mailbox_wait_empty(mailbox, 0));
    mailbox_ack(mailbox, "other", UINT64_MAX);
    ck_assert(mailbox_wait_empty(mailbox, 0));

    ck_assert_uint_eq(mailbox_len(mailbox), 2);
    ck_assert_uint_eq(mailbox_parked(mailbox), 2);
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "stuck", &mail), 2);
    ck_assert_str_eq(mail[0].body, "one");
}
END_TEST

START_TEST(what_is_written_is_not_parked_any_more)
{
    struct mail *mail;

    ck_assert(put("stuck", "one", NULL));
    ck_assert(put("stuck", "two", NULL));
    park("stuck");
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "stuck", &mail), 2);
    mailbox_ack(mailbox, "stuck", mail[0].sequence);
    ck_assert_uint_eq(mailbox_parked(mailbox), 1);
    mailbox_ack(mailbox, "stuck", mail[1].sequence);
    ck_assert_uint_eq(mailbox_parked(mailbox), 0);
    ck_assert(put("stuck", "three", NULL));
    ck_assert(!mailbox_wait_empty(mailbox, 0));
}
END_TEST

START_TEST(a_success_between_two_failures_begins_the_count_anew)
{
    ck_assert(put("slow", "one", NULL));
    for (int64_t now_ms = 1; now_ms < (int64_t)LONG_MS * 100; now_ms += LONG_MS) {
        ck_assert(!mailbox_failed(mailbox, "slow", now_ms, now_ms - 1));
        ck_assert(!mailbox_failed(mailbox, "slow", now_ms + 1, now_ms + 1));
        ck_assert(put("slow", "next", NULL));
        mailbox_ack(mailbox, "slow", (uint64_t)(now_ms / LONG_MS) + 1);
    }
    ck_assert(!mailbox_failed(mailbox, "nobody", 1, 1));
}
END_TEST

START_TEST(parked_mail_counts_towards_the_limits_and_goes_with_a_drop)
{
    set_up_with(PLENTY, 2, PLENTY);
    ck_assert(put("stuck", "one", NULL));
    park("stuck");
    ck_assert(put("other", "two", NULL));
    ck_assert(!put("another", "three", NULL));
    mailbox_drop_all(mailbox);
    ck_assert_uint_eq(mailbox_parked(mailbox), 0);
    ck_assert(put("stuck", "four", NULL));
    ck_assert(!mailbox_wait_empty(mailbox, 0));
}
END_TEST

START_TEST(the_oldest_is_told_until_it_is_written)
{
    struct mail late = { .kind = "result", .body = "", .came_ms = 20 };
    struct mail early = { .kind = "result", .body = "", .came_ms = 10 };

    ck_assert_int_eq(mailbox_oldest_ms(mailbox), 0);
    ck_assert(put("untold", "", NULL));
    ck_assert_int_eq(mailbox_oldest_ms(mailbox), 0);
    ck_assert(mailbox_put(mailbox, "a", &late, NULL));
    ck_assert(mailbox_put(mailbox, "b", &early, NULL));
    ck_assert(mailbox_put(mailbox, "b", &late, NULL));
    ck_assert_int_eq(mailbox_oldest_ms(mailbox), 10);
    mailbox_ack(mailbox, "b", UINT64_MAX);
    ck_assert_int_eq(mailbox_oldest_ms(mailbox), 20);
}
END_TEST

START_TEST(a_wake_ends_a_wait_that_is_not_over)
{
    int64_t before_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    struct waker waker;

    ck_assert(put("a", "", NULL));
    atomic_init(&waker.stop, false);
    ck_assert_int_eq(pthread_create(&waker.thread, NULL, wake_thread, &waker), 0);
    ck_assert(!mailbox_wait_empty(mailbox, LONG_MS));
    atomic_store(&waker.stop, true);
    pthread_join(waker.thread, NULL);
    ck_assert_int_lt(clock_monotonic_ms(&CLOCK_SYSTEM) - before_ms, LONG_MS);
}
END_TEST

#define KEYS 4
#define MESSAGES 500

static void *put_thread(void *data)
{
    char body[16];

    for (int i = 0; i < MESSAGES; i++) {
        snprintf(body, sizeof(body), "%d", i);
        while (!put(data, body, NULL))
            sched_yield(); /* full: the readers make room */
    }
    return NULL;
}

/* As a worker does: peek, write, acknowledge what was peeked. Each message is to come once. */
static void *read_thread(void *data)
{
    const char *key = data;
    int expected = 0;

    while (expected < MESSAGES) {
        CLEANUP(arena_destroyp) struct arena *mine = arena_create();
        struct mail *mail;
        size_t count = mailbox_peek(mailbox, mine, key, &mail);

        for (size_t i = 0; i < count; i++)
            if (strtol(mail[i].body, NULL, 10) != expected++)
                return data;
        if (count)
            mailbox_ack(mailbox, key, mail[count - 1].sequence);
        else
            sched_yield();
    }
    return NULL;
}

START_TEST(writers_and_readers_lose_nothing_and_keep_the_order_of_a_key)
{
    static char keys[KEYS][2] = { "a", "b", "c", "d" };
    pthread_t writers[KEYS];
    pthread_t readers[KEYS];

    set_up_with(10, 25, PLENTY);
    for (int i = 0; i < KEYS; i++) {
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_thread, keys[i]), 0);
        ck_assert_int_eq(pthread_create(&writers[i], NULL, put_thread, keys[i]), 0);
    }
    for (int i = 0; i < KEYS; i++) {
        void *failed;

        pthread_join(writers[i], NULL);
        pthread_join(readers[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert(mailbox_wait_empty(mailbox, 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mailbox");
    TCase *tcase = tcase_create("mailbox");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, peek_gives_the_oldest_first_and_keeps_them);
    tcase_add_test(tcase, bodies_are_copied_with_their_nul_bytes);
    tcase_add_test(tcase, what_was_peeked_outlives_its_acknowledgement);
    tcase_add_test(tcase, ack_leaves_what_came_after_the_peek);
    tcase_add_test(tcase, ack_of_one_key_leaves_older_mail_of_another);
    tcase_add_test(tcase, sequences_rise_over_all_keys_and_after_a_drop);
    tcase_add_test(tcase, a_put_over_the_limit_of_its_key_is_refused);
    tcase_add_test(tcase, a_put_over_the_total_of_messages_is_refused);
    tcase_add_test(tcase, a_put_over_the_total_of_bytes_is_refused_until_there_is_room);
    tcase_add_test(tcase, wait_says_whether_it_is_empty);
    tcase_add_test(tcase, a_wait_ends_with_the_last_acknowledgement);
    tcase_add_test(tcase, a_wait_ends_with_a_drop);
    tcase_add_test(tcase, a_wake_ends_a_wait_that_is_not_over);
    tcase_add_test(tcase, parked_mail_is_kept_and_holds_up_nobody);
    tcase_add_test(tcase, what_is_written_is_not_parked_any_more);
    tcase_add_test(tcase, a_success_between_two_failures_begins_the_count_anew);
    tcase_add_test(tcase, parked_mail_counts_towards_the_limits_and_goes_with_a_drop);
    tcase_add_test(tcase, the_oldest_is_told_until_it_is_written);
    tcase_add_test(tcase, writers_and_readers_lose_nothing_and_keep_the_order_of_a_key);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
