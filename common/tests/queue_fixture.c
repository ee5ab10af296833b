#include "common/tests/queue_fixture.h"

#include <check.h>

struct fake_clock queue_clock;
struct workqueue *queue;

void queue_set_up(void)
{
    fake_clock_init(&queue_clock);
    queue = workqueue_create("test", &queue_clock.clock);
}

void queue_tear_down(void)
{
    workqueue_destroy(queue);
}

void queue_use_system_clock(void)
{
    workqueue_destroy(queue);
    queue = workqueue_create("test", &CLOCK_SYSTEM);
}

static struct kube_name name_of(const char *name)
{
    struct kube_name ret;

    ck_assert(kube_name_set(&ret, "default", name));
    return ret;
}

void queue_add(const char *name, uint32_t delay_ms)
{
    struct kube_name key = name_of(name);

    workqueue_add_after(queue, &key, delay_ms);
}

void queue_done(const char *name)
{
    struct kube_name key = name_of(name);

    workqueue_done(queue, &key);
}

void queue_retry(const char *name, uint32_t min_delay_ms)
{
    struct kube_name key = name_of(name);

    workqueue_retry(queue, &key, min_delay_ms);
}

void queue_forget(const char *name)
{
    struct kube_name key = name_of(name);

    workqueue_forget(queue, &key);
}

unsigned next_random(unsigned *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}
