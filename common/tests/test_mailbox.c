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

TEST_GROUP("mailbox", set_up, tear_down);

static bool put(const char *key, const char *body, uint64_t *ret_sequence)
{
    struct mail mail = {
        .kind = "result", .source = "m/d/c/c", .body = body, .body_len = strlen(body)
    };

    return mailbox_put(mailbox, key, &mail, ret_sequence) == MAILBOX_TAKEN;
}

TEST(peek_gives_the_oldest_first_and_keeps_them)
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

TEST(bodies_are_copied_with_their_nul_bytes)
{
    char bytes[] = { 'x', '\0', 'y' };
    struct mail in = { .kind = "create", .body = bytes, .body_len = sizeof(bytes) };
    struct mail *mail;

    ck_assert_int_eq(mailbox_put(mailbox, "a", &in, NULL), MAILBOX_TAKEN);
    memset(bytes, 'z', sizeof(bytes));
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 1);
    ck_assert_uint_eq(mail[0].body_len, 3);
    ck_assert_mem_eq(mail[0].body, "x\0y\0", 4);
    ck_assert_str_eq(mail[0].source, "");
}

TEST(what_was_peeked_outlives_its_acknowledgement)
{
    struct mail *mail;

    ck_assert(put("a", "one", NULL));
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 1);
    mailbox_ack(mailbox, "a", mail[0].sequence);
    ck_assert_str_eq(mail[0].body, "one");
}

TEST(ack_leaves_what_came_after_the_peek)
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

TEST(ack_of_one_key_leaves_older_mail_of_another)
{
    uint64_t sequence;

    ck_assert(put("b", "older", NULL));
    ck_assert(put("a", "newer", &sequence));
    mailbox_ack(mailbox, "a", sequence);
    mailbox_ack(mailbox, "nobody", sequence);
    ck_assert_uint_eq(mailbox_len(mailbox), 1);
}

TEST(sequences_rise_over_all_keys)
{
    uint64_t before;
    uint64_t after;

    ck_assert(put("a", "", &before));
    ck_assert(put("b", "", &after));
    ck_assert_uint_lt(before, after);
}

TEST(a_put_over_the_limit_of_a_source_under_its_key_is_refused)
{
    const struct mail other = { .kind = "result", .source = "m/d/c/other", .body = "" };
    uint64_t sequence;

    set_up_with(2, PLENTY, PLENTY);
    ck_assert(put("a", "1", &sequence));
    ck_assert(put("a", "2", NULL));
    ck_assert(!put("a", "3", NULL));
    ck_assert(put("b", "1", NULL));
    ck_assert_int_eq(mailbox_put(mailbox, "a", &other, NULL), MAILBOX_TAKEN);
    mailbox_ack(mailbox, "a", sequence);
    ck_assert(put("a", "3", NULL));
}

TEST(a_put_over_the_total_of_messages_is_refused)
{
    uint64_t sequence;

    set_up_with(PLENTY, 2, PLENTY);
    ck_assert(put("a", "", &sequence));
    ck_assert(put("b", "", NULL));
    ck_assert(!put("c", "", NULL));
    mailbox_ack(mailbox, "a", sequence);
    ck_assert(put("c", "", NULL));
}

TEST(a_put_over_the_total_of_bytes_is_refused_until_there_is_room)
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
}

TEST(wait_says_whether_it_is_empty)
{
    ck_assert(mailbox_wait_empty(mailbox, LONG_MS));
    ck_assert(put("a", "", NULL));
    ck_assert(!mailbox_wait_empty(mailbox, 0));
    ck_assert(!mailbox_wait_empty(mailbox, 20));
}

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

TEST(a_wait_ends_with_the_last_acknowledgement)
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

static uint64_t put_number(const char *key, const char *body)
{
    uint64_t sequence;

    ck_assert(put(key, body, &sequence));
    return sequence;
}

static void put_at(const char *key, int64_t came_ms)
{
    const struct mail mail = { .kind = "result", .body = "", .came_ms = came_ms };

    ck_assert_int_eq(mailbox_put(mailbox, key, &mail, NULL), MAILBOX_TAKEN);
}

static void put_copy(const char *key, const char *body, const char *copy)
{
    const struct mail mail = {
        .kind = "result", .source = "m/d/c/c", .body = body, .body_len = strlen(body)
    };

    mailbox_put_copy(mailbox, key, &mail, copy);
}

/* Releases what is told; "-": nothing. */
static const char *released(void)
{
    char *copy = mailbox_take_released(mailbox);
    const char *ret = copy ? arena_strdup(arena, copy) : "-";

    free(copy);
    return ret;
}

TEST(held_mail_is_kept_and_holds_up_nobody)
{
    struct mail *mail;

    mailbox_hold(mailbox, "stuck", put_number("stuck", "one"));
    ck_assert(mailbox_wait_empty(mailbox, 0));
    ck_assert(put("stuck", "two", NULL));
    ck_assert(!mailbox_wait_empty(mailbox, 0));
    mailbox_ack(mailbox, "stuck", put_number("stuck", "three"));
    ck_assert(mailbox_wait_empty(mailbox, 0));

    mailbox_hold(mailbox, "stuck", put_number("stuck", "four"));
    ck_assert_uint_eq(mailbox_len(mailbox), 1);
    ck_assert_uint_eq(mailbox_held(mailbox), 1);
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "stuck", &mail), 1);
    ck_assert_str_eq(mail[0].body, "four");
    mailbox_ack(mailbox, "stuck", UINT64_MAX);
    ck_assert_uint_eq(mailbox_held(mailbox), 0);
}

TEST(message_waits_until_its_copy_is_there_and_the_copy_goes_with_it)
{
    ck_assert(put("stuck", "one", NULL));
    ck_assert(put("other", "two", NULL));
    put_copy("stuck", "one", "copy-1");
    ck_assert_uint_eq(mailbox_held(mailbox), 1);
    ck_assert(!mailbox_wait_empty(mailbox, 0));
    mailbox_ack(mailbox, "other", UINT64_MAX);
    ck_assert(mailbox_wait_empty(mailbox, 0));
    ck_assert_str_eq(released(), "-");

    ck_assert(put("stuck", "one", NULL)); /* the broker delivers it again: it is durable */
    put_copy("stuck", "one", "copy-1");   /* and its copy, too */
    ck_assert_uint_eq(mailbox_len(mailbox), 1);
    ck_assert(mailbox_wait_empty(mailbox, 0));
    mailbox_ack(mailbox, "stuck", UINT64_MAX);
    ck_assert_str_eq(released(), "copy-1");
    ck_assert_str_eq(released(), "-");
}

TEST(copy_of_an_earlier_process_is_held_at_once)
{
    put_copy("stuck", "one", "copy-1");
    ck_assert_uint_eq(mailbox_len(mailbox), 1);
    ck_assert(mailbox_wait_empty(mailbox, 0));
    mailbox_ack(mailbox, "stuck", UINT64_MAX);
    ck_assert_str_eq(released(), "copy-1");
}

/* Half of four messages may be held. */
TEST(copies_beyond_the_limit_are_elsewhere_until_there_is_room)
{
    set_up_with(PLENTY, 4, PLENTY);
    put_copy("a", "one", "copy-a");
    put_copy("b", "two", "copy-b");
    put_copy("c", "three", "copy-c");
    ck_assert(mailbox_wait_empty(mailbox, 0)); /* it delays no other either */
    ck_assert_uint_eq(mailbox_len(mailbox), 2);
    ck_assert(mailbox_is_elsewhere(mailbox, "c"));
    ck_assert(!mailbox_is_elsewhere(mailbox, "a"));
    ck_assert(mailbox_any_elsewhere(mailbox));

    mailbox_ack(mailbox, "a", UINT64_MAX);
    ck_assert(mailbox_recall(mailbox, 0));
    ck_assert(mailbox_is_elsewhere(mailbox, "c")); /* it may still come */
    ck_assert(!mailbox_recall(mailbox, 999));
    put_copy("b", "two", "copy-b");
    put_copy("c", "three", "copy-c");
    ck_assert_uint_eq(mailbox_held(mailbox), 2);
    ck_assert(!mailbox_recall(mailbox, 59999)); /* all is full */
    ck_assert(mailbox_recall(mailbox, 60000));
    ck_assert(!mailbox_is_elsewhere(mailbox, "c"));
    ck_assert(!mailbox_recall(mailbox, 120000)); /* all is here */
}

/* It is likely to be written soon; what is there for a long time is stuck. */
TEST(new_copy_takes_the_place_of_the_one_that_is_held_for_the_longest_time)
{
    set_up_with(PLENTY, 4, PLENTY);
    put_copy("a", "one", "copy-a");
    put_copy("b", "two", "copy-b");
    ck_assert(put("c", "three", NULL));
    put_copy("c", "three", "copy-c");
    ck_assert(mailbox_wait_empty(mailbox, 0));
    ck_assert(mailbox_is_elsewhere(mailbox, "a"));
    ck_assert(!mailbox_is_elsewhere(mailbox, "c"));
    ck_assert_uint_eq(mailbox_len(mailbox), 2);
    ck_assert_str_eq(released(), "-"); /* its copy is needed */
}

/* Result and create of one device: the result was first. */
TEST(message_that_supersedes_is_not_shown_before_what_is_elsewhere)
{
    const struct mail restart = { .kind = "restart", .body = "", .supersedes = true };
    struct mail *mail;

    set_up_with(PLENTY, 2, PLENTY);
    put_copy("a", "one", "copy-a");
    ck_assert(put("b", "two", NULL));
    put_copy("b", "two", "copy-b");
    ck_assert(mailbox_is_elsewhere(mailbox, "a"));
    ck_assert_int_eq(mailbox_put(mailbox, "a", &restart, NULL), MAILBOX_TAKEN);
    ck_assert(put("a", "later", NULL));

    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 1);
    ck_assert_str_eq(mail[0].body, "later");
    mailbox_ack(mailbox, "a", mail[0].sequence);
    ck_assert_uint_eq(mailbox_len(mailbox), 2); /* that of b, and the create */

    mailbox_ack(mailbox, "b", UINT64_MAX);
    ck_assert(mailbox_recall(mailbox, 0));
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 0);
    put_copy("a", "one", "copy-a");
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 2);
    mailbox_ack(mailbox, "a", mail[1].sequence);
    ck_assert_uint_eq(mailbox_len(mailbox), 0);
}

/* They come with the subscription, behind what the session of the earlier process had queued. */
TEST(message_that_supersedes_is_not_shown_before_the_copies_of_an_earlier_process)
{
    const struct mail restart = { .kind = "restart", .body = "", .supersedes = true };
    struct mail *mail;

    mailbox_expect_copies(mailbox, true);
    ck_assert_int_eq(mailbox_put(mailbox, "a", &restart, NULL), MAILBOX_TAKEN);
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 0);
    put_copy("a", "one", "copy-a");
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 1);
    ck_assert(mailbox_expects_copies(mailbox));
    mailbox_expect_copies(mailbox, false);
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 2);
    ck_assert_str_eq(mail[0].kind, "restart"); /* the result is behind it, so it counts */
    ck_assert(!mailbox_expects_copies(mailbox));
}

static void put_copies(const char *key, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *body = arena_printf(arena, "%zu", i);
        put_copy(key, body, arena_printf(arena, "copy-%s-%zu", key, i));
    }
}

TEST(one_source_holds_no_more_than_its_share_under_a_key)
{
    set_up_with(16 * 3, 4000, PLENTY);
    put_copies("a", 100);
    put_copies("b", 2);
    ck_assert_uint_eq(mailbox_held(mailbox), 3 + 2);
    ck_assert(mailbox_is_elsewhere(mailbox, "a"));
    ck_assert(!mailbox_is_elsewhere(mailbox, "b"));
}

/* A hundred keys of which no message can be written, where twenty may be held. */
TEST(each_key_has_its_turn_however_many_are_stuck)
{
    bool seen[100] = { false };
    size_t count = 0;

    set_up_with(16, 40, PLENTY);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 100; i++) {
            const char *key = arena_printf(arena, "key-%d", i);
            struct mail *mail;
            put_copies(key, 5);
            if (!seen[i] && mailbox_peek(mailbox, arena, key, &mail)) {
                seen[i] = true;
                count++;
            }
        }
        ck_assert_uint_le(mailbox_held(mailbox), 20);
        ck_assert(mailbox_recall(mailbox, (round + 1) * 60000));
    }
    ck_assert_uint_eq(count, 100);
}

TEST(only_the_last_message_that_supersedes_is_kept_and_it_takes_no_capacity)
{
    struct mail restart = { .kind = "restart", .body_len = 1, .supersedes = true };
    uint64_t sequence;
    struct mail *mail;

    set_up_with(1, 1, PLENTY);
    ck_assert(put("a", "one", NULL)); /* the total is used up */
    for (char body[] = "1"; *body <= '9'; ++*body) {
        restart.body = body;
        restart.source = "device-1";
        ck_assert_int_eq(mailbox_put(mailbox, "a", &restart, NULL), MAILBOX_TAKEN);
        restart.source = "device-2";
        ck_assert_int_eq(mailbox_put(mailbox, "a", &restart, &sequence), MAILBOX_TAKEN);
    }
    ck_assert_uint_eq(mailbox_peek(mailbox, arena, "a", &mail), 3);
    ck_assert_str_eq(mail[1].body, "9");
    ck_assert_str_eq(mail[2].body, "9");
    ck_assert_uint_eq(mail[2].sequence, sequence);
}

/* Otherwise a device that restarts for ever would delay the messages of all others. */
TEST(message_that_supersedes_a_held_one_is_held)
{
    const struct mail restart = { .kind = "restart", .body = "", .supersedes = true };
    uint64_t sequence;

    ck_assert_int_eq(mailbox_put(mailbox, "a", &restart, &sequence), MAILBOX_TAKEN);
    mailbox_hold(mailbox, "a", sequence);
    ck_assert_int_eq(mailbox_put(mailbox, "a", &restart, &sequence), MAILBOX_TAKEN);
    ck_assert(mailbox_wait_empty(mailbox, 0));
    mailbox_ack(mailbox, "a", sequence - 1); /* a reconcile that saw the older one */
    ck_assert_uint_eq(mailbox_len(mailbox), 1);
    ck_assert_uint_eq(mailbox_held(mailbox), 1);
}

/* Otherwise each recall would let as many more into the broker. */
TEST(messages_that_a_recall_is_to_bring_are_counted)
{
    const struct mail more = { .kind = "result", .source = "m/d/c/c", .body = "more" };

    set_up_with(4, 100, PLENTY);
    put_copies("a", 4);
    ck_assert_int_eq(mailbox_put(mailbox, "a", &more, NULL), MAILBOX_TOO_MANY);
    ck_assert(mailbox_recall(mailbox, 0));
    ck_assert_int_eq(mailbox_put(mailbox, "a", &more, NULL), MAILBOX_TOO_MANY);
    ck_assert_uint_eq(mailbox_len_of_source(mailbox, "m/d/c/c", "b"), 4);
    put_copies("a", 2);
    ck_assert_int_eq(mailbox_put(mailbox, "a", &more, NULL), MAILBOX_TOO_MANY);
    ck_assert(mailbox_recall(mailbox, 1000)); /* the others do not come: they are gone */
    ck_assert_int_eq(mailbox_put(mailbox, "a", &more, NULL), MAILBOX_TAKEN);
}

/* A broker needs time to send many, and what is still to come must not be forgotten meanwhile. */
TEST(next_recall_waits_for_what_the_last_one_brings)
{
    struct mail copy = { .kind = "result", .source = "m/d/c/c", .body = "0", .body_len = 1 };

    set_up_with(16, 100, PLENTY);
    put_copies("a", 3);
    ck_assert(mailbox_recall(mailbox, 0));
    copy.came_ms = 900;
    mailbox_put_copy(mailbox, "a", &copy, "copy-a-0");
    copy.came_ms = 950;
    copy.body = "1";
    mailbox_put_copy(mailbox, "a", &copy, "copy-a-1");
    ck_assert(!mailbox_recall(mailbox, 1949));
    ck_assert(mailbox_is_elsewhere(mailbox, "a"));
    mailbox_put_copy(mailbox, "a", &copy, "copy-a-1"); /* twice says nothing */
    ck_assert(mailbox_recall(mailbox, 1950));

    mailbox_copies_come(mailbox, 3000); /* by a new connection */
    ck_assert(!mailbox_recall(mailbox, 3999));
    ck_assert(mailbox_recall(mailbox, 4000));
}

TEST(messages_of_a_source_are_counted_wherever_they_are)
{
    set_up_with(16, 4, PLENTY);
    ck_assert(put("a", "waits", NULL));
    for (int connection = 0; connection < 2; connection++) /* each delivers all copies */
        put_copies("b", 3); /* one is held, as its share is, and two are elsewhere */
    ck_assert_uint_eq(mailbox_len_of_source(mailbox, "m/d/c/c", "other"), 4);
    ck_assert_uint_eq(mailbox_len_of_source(mailbox, "m/d/c/c", "a"), 3);
    ck_assert_uint_eq(mailbox_len_of_source(mailbox, "m/d/c/other", "a"), 0);
}

TEST(overdue_are_those_that_wait_for_long_the_oldest_first_and_each_once)
{
    const char *key;
    struct mail mail;

    put_at("a", 10);
    put_at("b", 20);
    put_at("c", 30);
    ck_assert(mailbox_overdue(mailbox, arena, 20, 100, 200, &key, &mail));
    ck_assert_str_eq(key, "a");
    ck_assert(mailbox_overdue(mailbox, arena, 20, 100, 200, &key, &mail));
    ck_assert_str_eq(key, "b");
    ck_assert(!mailbox_overdue(mailbox, arena, 20, 100, 200, &key, &mail));
    mailbox_overdue_again(mailbox, "b", mail.sequence);
    ck_assert(mailbox_overdue(mailbox, arena, 20, 100, 200, &key, &mail));
    ck_assert_str_eq(key, "b");
    ck_assert(mailbox_overdue(mailbox, arena, 20, 200, 300, &key, &mail)); /* again, later */
    ck_assert_str_eq(key, "a");
}

/* Each of them would otherwise delay the others for as long as the first. */
TEST(overdue_at_once_is_what_comes_behind_a_copy)
{
    const char *key;
    struct mail mail;

    put_copy("stuck", "one", "copy-1");
    ck_assert(put("stuck", "two", NULL));
    put_at("other", 30);
    put_at("stuck", 30); /* of another source */
    ck_assert(mailbox_overdue(mailbox, arena, -1, 100, 200, &key, &mail));
    ck_assert_str_eq(mail.body, "two");
    ck_assert(!mailbox_overdue(mailbox, arena, -1, 100, 200, &key, &mail));
}

static bool knows(void *ctx, const char *key)
{
    return strcmp(key, ctx) == 0;
}

TEST(what_nobody_knows_is_forgotten_with_its_copy)
{
    char known[] = "a";

    ck_assert(put("a", "one", NULL));
    put_copy("b", "two", "copy-b");
    mailbox_forget_unknown(mailbox, knows, known);
    ck_assert_uint_eq(mailbox_len(mailbox), 1);
    ck_assert_str_eq(released(), "copy-b");
}

TEST(the_oldest_is_told_until_it_is_written)
{
    struct mail late = { .kind = "result", .body = "", .came_ms = 20 };
    struct mail early = { .kind = "result", .body = "", .came_ms = 10 };

    ck_assert_int_eq(mailbox_oldest_ms(mailbox), 0);
    ck_assert(put("untold", "", NULL));
    ck_assert_int_eq(mailbox_oldest_ms(mailbox), 0);
    ck_assert_int_eq(mailbox_put(mailbox, "a", &late, NULL), MAILBOX_TAKEN);
    ck_assert_int_eq(mailbox_put(mailbox, "b", &early, NULL), MAILBOX_TAKEN);
    ck_assert_int_eq(mailbox_put(mailbox, "b", &late, NULL), MAILBOX_TAKEN);
    ck_assert_int_eq(mailbox_oldest_ms(mailbox), 10);
    mailbox_ack(mailbox, "b", UINT64_MAX);
    ck_assert_int_eq(mailbox_oldest_ms(mailbox), 20);
}

TEST(a_wake_ends_a_wait_that_is_not_over)
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

TEST(writers_and_readers_lose_nothing_and_keep_the_order_of_a_key)
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
