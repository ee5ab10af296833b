#include "common/base/cond.h"

#include <errno.h>

void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec cond_deadline(uint32_t timeout_ms)
{
    struct timespec deadline;

    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += timeout_ms / 1000;
    deadline.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    return deadline;
}

bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *deadline)
{
    return pthread_cond_timedwait(cond, lock, deadline) != ETIMEDOUT;
}
