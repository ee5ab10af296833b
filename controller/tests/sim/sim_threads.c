#include "controller/tests/sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/base/compiler.h"

/* Threads of all replicas that were ever started in one run. */
#define MAX_THREADS 2048
/* A run takes some hundred thousand; more of them, and nothing comes to an end any more. */
#define MAX_STEPS 20000000
/* 2026-01-01T00:00:00Z: what the fake API server dates its objects with begins there, too. */
#define WALL_BEGIN_US INT64_C(1767225600000000)
/* The monotonic clock begins like that of a machine that has run for a while. */
#define BEGIN_US INT64_C(1000000000)
/* A thread that takes a lock lets another one go first, once in so many times. */
#define PREEMPT_ONE_IN 16
#define NEVER INT64_MAX

enum state { FREE, RUNNABLE, WAITING, ENDED };

struct thread {
    enum state state;
    sem_t baton; /* posted: it runs */
    struct replica *replica;
    const void *on;      /* waits for this; NULL: for the time alone */
    int64_t deadline_us; /* NEVER: none */
    bool timed_out;
    void *(*function)(void *ctx);
    void *ctx;
    void *result;
    pthread_t handle;
};

static struct {
    struct thread threads[MAX_THREADS];
    size_t count;
    bool running;
    unsigned atomic_depth;
    uint64_t seed;
    uint64_t state; /* of the random numbers */
    int64_t now_us;
    uint64_t steps;
} sim = { .state = 0x9e3779b97f4a7c15, .now_us = BEGIN_US };

static _Thread_local struct thread *self;

/*
 * The linker's names (ld --wrap): a call of X goes to __wrap_X, and __real_X is the library's own.
 * NOLINTBEGIN(bugprone-reserved-identifier)
 */
#define WRAPPED(result, name, ...)                                                                 \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

WRAPPED(int, pthread_create, pthread_t *ret, const pthread_attr_t *attributes,
        void *(*function)(void *ctx), void *ctx);
WRAPPED(int, pthread_join, pthread_t handle, void **ret);
WRAPPED(int, pthread_mutex_lock, pthread_mutex_t *lock);
WRAPPED(int, pthread_mutex_unlock, pthread_mutex_t *lock);
WRAPPED(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *lock);
WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *cond, pthread_mutex_t *lock,
        const struct timespec *deadline);
WRAPPED(int, pthread_cond_signal, pthread_cond_t *cond);
WRAPPED(int, pthread_cond_broadcast, pthread_cond_t *cond);
WRAPPED(int, pthread_rwlock_rdlock, pthread_rwlock_t *lock);
WRAPPED(int, pthread_rwlock_wrlock, pthread_rwlock_t *lock);
WRAPPED(int, pthread_rwlock_unlock, pthread_rwlock_t *lock);
WRAPPED(int, clock_gettime, clockid_t id, struct timespec *ret);
WRAPPED(int, poll, struct pollfd *fds, nfds_t count, int timeout_ms);
WRAPPED(ssize_t, write, int fd, const void *bytes, size_t len);
WRAPPED(_Noreturn void, _exit, int status);
WRAPPED(ssize_t, getrandom, void *bytes, size_t len, unsigned flags);
WRAPPED(int, getentropy, void *bytes, size_t len);
WRAPPED(int, RAND_bytes, unsigned char *bytes, int len);
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- time and randomness ---- */

int64_t sim_now_us(void)
{
    return sim.now_us;
}

uint64_t sim_random(uint64_t below)
{
    sim.state ^= sim.state << 13;
    sim.state ^= sim.state >> 7;
    sim.state ^= sim.state << 17;
    return (sim.state >> 11) % below;
}

bool sim_chance(unsigned one_in)
{
    return sim_random(one_in) == 0;
}

void sim_trace(const char *fmt, ...)
{
    static int traces = -1;
    va_list args;

    if (traces < 0)
        traces = getenv("SIM_TRACE") != NULL;
    if (!traces)
        return;
    fprintf(stderr, "%12.6f r%u ", (double)(sim.now_us - BEGIN_US) / 1e6,
            self && self->replica ? self->replica->number : 0);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

void sim_fail(const char *fmt, ...)
{
    va_list args;

    printf("seed %llu, after %.3f virtual seconds: ", (unsigned long long)sim.seed,
           (double)(sim.now_us - BEGIN_US) / 1e6);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
    __real__exit(EXIT_FAILURE);
}

/* ---- which thread runs ---- */

static bool may_run(const struct thread *thread)
{
    return thread->state != FREE && thread->state != ENDED &&
           !(thread->replica && (thread->replica->dead || thread->replica->paused));
}

static size_t runnable_threads(struct thread *ret[static MAX_THREADS])
{
    size_t count = 0;

    for (size_t i = 0; i < sim.count; i++) {
        struct thread *thread = &sim.threads[i];

        if (!may_run(thread))
            continue;
        if (thread->state == WAITING && thread->deadline_us <= sim.now_us) {
            thread->state = RUNNABLE;
            thread->timed_out = true;
        }
        if (thread->state == RUNNABLE)
            ret[count++] = thread;
    }
    return count;
}

static int64_t earliest_deadline(void)
{
    int64_t earliest_us = NEVER;

    for (size_t i = 0; i < sim.count; i++) {
        const struct thread *thread = &sim.threads[i];

        if (may_run(thread) && thread->state == WAITING && thread->deadline_us < earliest_us)
            earliest_us = thread->deadline_us;
    }
    return earliest_us;
}

static struct thread *choose(void)
{
    static struct thread *runnable[MAX_THREADS];
    size_t count = runnable_threads(runnable);

    if (count == 0) {
        int64_t next_us = earliest_deadline();

        if (next_us == NEVER)
            sim_fail("all threads wait, and none of them for a time: a deadlock");
        sim.now_us = next_us;
        count = runnable_threads(runnable);
    }
    return runnable[sim_random(count)];
}

/* The running thread has set its own state, and comes back when it is chosen again. */
static void yield(void)
{
    if (++sim.steps > MAX_STEPS)
        sim_fail("%llu steps, and no end", (unsigned long long)sim.steps);
    sim.now_us += 1 + (int64_t)sim_random(20);

    struct thread *me = self, *next = choose();
    if (next == me)
        return;
    sem_post(&next->baton);
    while (sem_wait(&me->baton) < 0 && errno == EINTR)
        ;
}

static void preempt(void)
{
    if (sim.atomic_depth == 0 && sim_chance(PREEMPT_ONE_IN))
        yield();
}

bool sim_wait(const void *on, int64_t deadline_us)
{
    assert(sim.atomic_depth == 0);
    self->state = WAITING;
    self->on = on;
    self->deadline_us = deadline_us;
    self->timed_out = false;
    yield();
    self->on = NULL;
    return !self->timed_out;
}

static void make_runnable(struct thread *thread)
{
    thread->state = RUNNABLE;
    thread->timed_out = false;
}

void sim_wake(const void *on)
{
    for (size_t i = 0; i < sim.count; i++) {
        if (sim.threads[i].state == WAITING && sim.threads[i].on == on)
            make_runnable(&sim.threads[i]);
    }
}

void sim_sleep_us(int64_t us)
{
    (void)sim_wait(NULL, sim.now_us + us);
}

void sim_atomic_begin(void)
{
    sim.atomic_depth++;
}

void sim_atomic_end(void)
{
    sim.atomic_depth--;
}

struct replica *sim_replica(void)
{
    return self ? self->replica : NULL;
}

void sim_kill(struct replica *replica)
{
    replica->dead = true;
}

void sim_pause(struct replica *replica, bool paused)
{
    replica->paused = paused;
    replica->was_paused = true;
}

/* ---- threads ---- */

static void *enter(void *ctx)
{
    self = ctx;
    while (sem_wait(&self->baton) < 0 && errno == EINTR)
        ;
    self->result = self->function(self->ctx);
    self->state = ENDED;
    sim_wake(self);
    struct thread *next = choose();
    sem_post(&next->baton);
    return NULL;
}

static struct thread *add_thread(struct replica *replica, void *(*function)(void *), void *ctx)
{
    pthread_attr_t attributes;

    if (sim.count == MAX_THREADS)
        sim_fail("more than %d threads", MAX_THREADS);
    struct thread *thread = &sim.threads[sim.count++];
    *thread = (struct thread){ .state = RUNNABLE,
                               .replica = replica,
                               .function = function,
                               .ctx = ctx,
                               .deadline_us = NEVER };
    sem_init(&thread->baton, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1u << 20);
    int code = __real_pthread_create(&thread->handle, &attributes, enter, thread);
    pthread_attr_destroy(&attributes);
    if (code)
        sim_fail("pthread_create: %s", strerror(code));
    return thread;
}

void sim_spawn(struct replica *replica, void *(*function)(void *ctx), void *ctx)
{
    (void)add_thread(replica, function, ctx);
}

static struct thread *thread_of(pthread_t handle)
{
    for (size_t i = 0; i < sim.count; i++) {
        /* A handle is used again when its thread was joined. */
        if (sim.threads[i].state != FREE && pthread_equal(sim.threads[i].handle, handle))
            return &sim.threads[i];
    }
    sim_fail("joins a thread that is not one of the simulation");
}

static void *run_begin(void *ctx)
{
    void (*begin)(void) = *(void (**)(void))ctx;

    begin();
    fflush(stdout);
    __real__exit(EXIT_SUCCESS); /* the other threads remain where they are */
}

void sim_run(uint64_t seed, void (*begin)(void))
{
    sim.seed = seed;
    sim.state = (seed + 1) * 0x9e3779b97f4a7c15;
    for (int i = 0; i < 8; i++)
        (void)sim_random(2);
    sim.running = true;
    struct thread *first = add_thread(NULL, run_begin, &begin);
    sem_post(&first->baton);
    __real_pthread_join(first->handle, NULL);
    abort(); /* run_begin ends the process */
}

/* ---- what the linker puts in the place of the library's functions ---- */

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *ctx)
{
    if (!sim.running)
        return __real_pthread_create(ret, attributes, function, ctx);
    *ret = add_thread(self->replica, function, ctx)->handle;
    return 0;
}

int __wrap_pthread_join(pthread_t handle, void **ret)
{
    if (!sim.running)
        return __real_pthread_join(handle, ret);

    struct thread *thread = thread_of(handle);
    while (thread->state != ENDED)
        (void)sim_wait(thread, NEVER);
    thread->state = FREE;
    if (ret)
        *ret = thread->result;
    /* It still hands the processor over; its handle must not be used again until it has. */
    return __real_pthread_join(handle, NULL);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (!self)
        return __real_pthread_mutex_lock(lock);
    preempt();
    while (pthread_mutex_trylock(lock) == EBUSY)
        (void)sim_wait(lock, NEVER);
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    int code = __real_pthread_mutex_unlock(lock);

    if (self)
        sim_wake(lock);
    return code;
}

static int cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_us)
{
    (void)__wrap_pthread_mutex_unlock(lock);
    bool in_time = sim_wait(cond, deadline_us);
    (void)__wrap_pthread_mutex_lock(lock);
    return in_time ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    return self ? cond_wait(cond, lock, NEVER) : __real_pthread_cond_wait(cond, lock);
}

/* All condition variables with a deadline are on the monotonic clock (common/base/cond.h). */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *deadline)
{
    if (!self)
        return __real_pthread_cond_timedwait(cond, lock, deadline);
    return cond_wait(cond, lock, (int64_t)deadline->tv_sec * 1000000 + deadline->tv_nsec / 1000);
}

/* POSIX lets a signal wake any of those that wait, so the seed chooses. */
int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    static struct thread *waiting[MAX_THREADS];
    size_t count = 0;

    if (!self)
        return __real_pthread_cond_signal(cond);
    for (size_t i = 0; i < sim.count; i++) {
        if (sim.threads[i].state == WAITING && sim.threads[i].on == cond)
            waiting[count++] = &sim.threads[i];
    }
    if (count)
        make_runnable(waiting[sim_random(count)]);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    if (!self)
        return __real_pthread_cond_broadcast(cond);
    sim_wake(cond);
    return 0;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    if (!self)
        return __real_pthread_rwlock_rdlock(lock);
    preempt();
    while (pthread_rwlock_tryrdlock(lock) == EBUSY)
        (void)sim_wait(lock, NEVER);
    return 0;
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    if (!self)
        return __real_pthread_rwlock_wrlock(lock);
    preempt();
    while (pthread_rwlock_trywrlock(lock) == EBUSY)
        (void)sim_wait(lock, NEVER);
    return 0;
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    int code = __real_pthread_rwlock_unlock(lock);

    if (self)
        sim_wake(lock);
    return code;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    if (!sim.running)
        return __real_clock_gettime(id, ret);

    int64_t us = sim.now_us;
    if (id == CLOCK_REALTIME)
        us += WALL_BEGIN_US - BEGIN_US + (self && self->replica ? self->replica->wall_step_us : 0);
    *ret = (struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    return 0;
}

/* Those that poll wait for this. */
static const char DESCRIPTORS;

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (!self)
        return __real_poll(fds, count, timeout_ms);

    int64_t deadline_us = timeout_ms < 0 ? NEVER : sim.now_us + (int64_t)timeout_ms * 1000;
    for (;;) {
        int ready = count ? __real_poll(fds, count, 0) : 0;

        if (ready != 0 || sim.now_us >= deadline_us)
            return ready;
        (void)sim_wait(&DESCRIPTORS, deadline_us);
    }
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    ssize_t written = __real_write(fd, bytes, len);

    if (self && fd > STDERR_FILENO)
        sim_wake(&DESCRIPTORS);
    return written;
}

/* A controller that gives up. */
void __wrap__exit(int status)
{
    if (!self || !self->replica)
        __real__exit(status);
    sim_trace("_exit(%d)", status);
    if (!self->replica->was_paused)
        sim_fail("controller %u did not stop in time", self->replica->number);
    self->replica->dead = true;
    sim_wake(self->replica);
    self->state = WAITING;
    self->deadline_us = NEVER;
    yield();
    abort(); /* a thread of a dead replica is never chosen */
}

ssize_t __wrap_getrandom(void *bytes, size_t len, unsigned flags UNUSED)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)sim_random(256);
    return (ssize_t)len;
}

int __wrap_getentropy(void *bytes, size_t len)
{
    return __wrap_getrandom(bytes, len, 0) == (ssize_t)len ? 0 : -1;
}

int __wrap_RAND_bytes(unsigned char *bytes, int len)
{
    return __wrap_getrandom(bytes, (size_t)len, 0) == len;
}
