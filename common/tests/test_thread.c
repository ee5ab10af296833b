#include "common/runtime/thread.h"

#include "common/tests/suite.h"

struct seen {
    size_t stack;
    bool ran;
};

static void *look(void *ctx)
{
    struct seen *seen = ctx;
    pthread_attr_t attributes;

    seen->ran = true;
    ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attributes), 0);
    ck_assert_int_eq(pthread_attr_getstacksize(&attributes, &seen->stack), 0);
    ck_assert_int_eq(pthread_attr_destroy(&attributes), 0);
    return NULL;
}

TEST(a_thread_has_a_small_stack)
{
    struct seen seen = { 0 };
    struct error err;
    pthread_t thread;

    ck_assert_int_eq(thread_start(&thread, "looking", look, &seen, &err), 0);
    thread_join(thread);
    ck_assert(seen.ran);
    ck_assert_uint_ge(seen.stack, THREAD_STACK);
    ck_assert_uint_lt(seen.stack, 4 * THREAD_STACK); /* sanitizers add to it */
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *ctx)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return ctx;
}

TEST(a_long_name_is_cut)
{
    struct error err;
    pthread_t thread;
    char name[32];

    pthread_mutex_lock(&gate);
    ck_assert_int_eq(thread_start(&thread, "propellerjob-worker", wait_at_gate, NULL, &err), 0);
    ck_assert_int_eq(pthread_getname_np(thread, name, sizeof(name)), 0);
    pthread_mutex_unlock(&gate);
    thread_join(thread);
    ck_assert_str_eq(name, "propellerjob-wo");
}
