#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/compiler.h"
#include "common/tests/queue_fixture.h"
#include "common/tests/suite.h"

/*
 * Model test: random operations on few names; the model says for every name when it may come, and
 * whether somebody has it.
 */
#define MODEL_NAMES 6
struct model {
    bool waits, processed;
    int64_t due_ms;
    char name[8];
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&queue_clock.clock);
}

static void model_add(struct model *model, int64_t due_ms)
{
    if (!model->waits || due_ms < model->due_ms)
        model->due_ms = due_ms;
    model->waits = true;
}

static size_t model_waiting(const struct model *models)
{
    size_t count = 0;

    for (size_t i = 0; i < MODEL_NAMES; i++)
        count += models[i].waits && !models[i].processed;
    return count;
}

/* The earliest of those that may come now; NULL: get() would block. */
static struct model *model_first(struct model *models)
{
    struct model *first = NULL;

    for (size_t i = 0; i < MODEL_NAMES; i++) {
        struct model *model = &models[i];

        if (model->waits && !model->processed && model->due_ms <= now_ms() &&
            (!first || model->due_ms < first->due_ms))
            first = model;
    }
    return first;
}

static void model_get(struct model *models)
{
    const struct model *first = model_first(models);
    struct kube_name got;

    if (!first)
        return;
    ck_assert(workqueue_get(queue, &got));
    for (size_t i = 0; i < MODEL_NAMES; i++) {
        struct model *model = &models[i];

        if (strcmp(model->name, got.name) != 0)
            continue;
        ck_assert(model->waits);
        ck_assert(!model->processed);
        ck_assert_int_le(model->due_ms, now_ms());
        model->waits = false;
        model->processed = true;
        return;
    }
    ck_abort_msg("a name that nobody added: %s", got.name);
}

static void model_step(struct model *models, unsigned *random)
{
    struct model *model = &models[next_random(random) % MODEL_NAMES];
    uint32_t delay = next_random(random) % 4 ? next_random(random) % 20 : 0;

    switch (next_random(random) % 8) {
    case 0:
    case 1:
    case 2:
        queue_add(model->name, delay);
        model_add(model, now_ms() + delay);
        break;
    case 3:
    case 4:
        model_get(models);
        break;
    case 5:
        if (model->processed) {
            queue_done(model->name);
            model->processed = false;
        }
        break;
    case 6:
        /* with a minimum above any back-off that few failures give, the time is known */
        if (model->processed) {
            queue_retry(model->name, 30);
            model_add(model, now_ms() + 30);
            queue_forget(model->name);
        }
        break;
    default:
        fake_clock_advance(&queue_clock, next_random(random) % 8);
        break;
    }
    ck_assert_uint_eq(workqueue_len(queue), model_waiting(models));
}

TEST_GROUP("model", queue_set_up, queue_tear_down);

TEST_TIMES(random_operations_keep_the_invariants, 20)
{
    struct model models[MODEL_NAMES] = { 0 };
    unsigned random = (unsigned)_i + 1;

    for (size_t i = 0; i < MODEL_NAMES; i++)
        (void)snprintf(models[i].name, sizeof(models[i].name), "n%zu", i);
    for (int i = 0; i < 3000; i++)
        model_step(models, &random);

    /* what still waits comes, and then nothing does */
    for (size_t i = 0; i < MODEL_NAMES; i++) {
        if (models[i].processed)
            queue_done(models[i].name);
        models[i].processed = false;
    }
    fake_clock_advance(&queue_clock, 1000);
    while (model_first(models))
        model_get(models);
    ck_assert_uint_eq(workqueue_len(queue), 0);
}

struct getter {
    pthread_t thread;
    bool got;
    struct kube_name name;
};

static void *get_one(void *ctx)
{
    struct getter *getter = ctx;

    getter->got = workqueue_get(queue, &getter->name);
    return NULL;
}

static void getter_start(struct getter *getter)
{
    ck_assert_int_eq(pthread_create(&getter->thread, NULL, get_one, getter), 0);
}

static void getter_join(struct getter *getter)
{
    ck_assert_int_eq(pthread_join(getter->thread, NULL), 0);
}

/* get() asks for the time before it sleeps and sleeps with the lock; so whoever changes the queue
 * after this meets a sleeper. */
static void wait_for_reads(unsigned reads)
{
    while (atomic_load(&queue_clock.reads) < reads)
        (void)poll(NULL, 0, 1);
}

TEST_GROUP("threads", queue_set_up, queue_tear_down);

TEST(an_earlier_name_wakes_who_sleeps_for_a_later_one)
{
    struct getter getter;

    queue_add("later", 3600 * 1000);
    unsigned reads = atomic_load(&queue_clock.reads);
    getter_start(&getter);
    wait_for_reads(reads + 2);
    queue_add("now", 0);
    getter_join(&getter);
    ck_assert_str_eq(getter.name.name, "now");
}

TEST(a_poke_makes_a_sleeper_see_the_moved_clock)
{
    struct getter getter;

    queue_add("later", 3600 * 1000);
    unsigned reads = atomic_load(&queue_clock.reads);
    getter_start(&getter);
    wait_for_reads(reads + 2);
    fake_clock_advance(&queue_clock, INT64_C(3600) * 1000);
    workqueue_poke(queue);
    getter_join(&getter);
    ck_assert_str_eq(getter.name.name, "later");
}

/* Sleepers are woken in the order in which they fell asleep: after "later" the one that watches the
 * time sleeps behind the other, which must take over. */
TEST(a_sleeper_takes_over_from_one_who_watches_a_later_time)
{
    struct getter getters[2];
    unsigned reads = atomic_load(&queue_clock.reads);

    queue_add("latest", 3600 * 1000);
    getter_start(&getters[0]);
    wait_for_reads(reads += 4);
    getter_start(&getters[1]);
    wait_for_reads(reads += 1);
    queue_add("later", 1800 * 1000);
    reads += 4;
    wait_for_reads(reads);
    queue_add("soon", 20);
    wait_for_reads(reads + 4); /* the other has looked, and watches */
    fake_clock_advance(&queue_clock, 20);
    while (workqueue_len(queue) > 2)
        (void)poll(NULL, 0, 1);
    workqueue_shutdown(queue);
    getter_join(&getters[0]);
    getter_join(&getters[1]);
    ck_assert(getters[0].got != getters[1].got);
    ck_assert_str_eq(getters[getters[1].got].name.name, "soon");
}

TEST(shutdown_wakes_every_sleeper)
{
    struct getter getters[3];

    queue_add("later", 3600 * 1000);
    unsigned reads = atomic_load(&queue_clock.reads);
    for (size_t i = 0; i < ARRAY_LEN(getters); i++)
        getter_start(&getters[i]);
    wait_for_reads(reads + 4); /* one more for the one that watches the time */
    workqueue_shutdown(queue);
    for (size_t i = 0; i < ARRAY_LEN(getters); i++) {
        getter_join(&getters[i]);
        ck_assert(!getters[i].got);
    }
}

TEST(sleepers_pass_the_baton_from_one_due_name_to_the_next)
{
    struct getter getters[3];

    queue_use_system_clock();
    for (size_t i = 0; i < ARRAY_LEN(getters); i++)
        getter_start(&getters[i]);
    queue_add("c", 30);
    queue_add("a", 10);
    queue_add("b", 20);
    for (size_t i = 0; i < ARRAY_LEN(getters); i++) {
        getter_join(&getters[i]);
        ck_assert(getters[i].got);
    }
    ck_assert_uint_eq(workqueue_len(queue), 0);
}

/*
 * Four threads change names, four process them. A change raises the version of a name and adds it;
 * a worker notes the version it saw. In the end every last version was seen.
 */
#define RACE_NAMES 5
#define RACE_CHANGES 3000
static atomic_uint versions[RACE_NAMES];
static atomic_uint seen[RACE_NAMES];
static atomic_bool busy[RACE_NAMES];

static void *change_names(void *ctx)
{
    unsigned random = *(const unsigned *)ctx;
    char name[2] = "0";

    for (int i = 0; i < RACE_CHANGES; i++) {
        unsigned n = next_random(&random) % RACE_NAMES;

        name[0] = (char)('0' + n);
        atomic_fetch_add(&versions[n], 1);
        queue_add(name, next_random(&random) % 3);
    }
    return NULL;
}

static void *process_names(void *ctx)
{
    unsigned random = *(const unsigned *)ctx;
    struct kube_name got;

    while (workqueue_get(queue, &got)) {
        unsigned n = (unsigned)(got.name[0] - '0');

        ck_assert(!atomic_exchange(&busy[n], true));
        unsigned version = atomic_load(&versions[n]);
        bool failed = next_random(&random) % 8 == 0;
        if (!failed)
            atomic_store(&seen[n], version);
        ck_assert(atomic_exchange(&busy[n], false));
        if (failed)
            workqueue_retry(queue, &got, 0);
        else
            workqueue_forget(queue, &got);
        workqueue_done(queue, &got);
    }
    return NULL;
}

static bool all_seen(void)
{
    for (size_t i = 0; i < RACE_NAMES; i++) {
        if (atomic_load(&seen[i]) != atomic_load(&versions[i]))
            return false;
    }
    return true;
}

TEST(no_change_is_lost_and_no_name_runs_twice_at_once)
{
    pthread_t threads[8];
    unsigned seeds[8];

    queue_use_system_clock();
    for (unsigned i = 0; i < 8; i++) {
        seeds[i] = i;
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, i < 4 ? change_names : process_names, &seeds[i]), 0);
    }
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    while (!all_seen())
        (void)poll(NULL, 0, 1);
    workqueue_shutdown(queue);
    for (size_t i = 4; i < 8; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
