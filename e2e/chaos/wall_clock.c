/*
 * Sets the wall clock of the process that preloads it. Each call reads the first byte of the file
 * $WALL_CLOCK: "+" is a day ahead, "-" a day behind, "0" the true time. No other clock changes.
 *
 * libfaketime is not used because its pthread_cond_timedwait() returns at once where the condition
 * waits by the monotonic clock, as the controller's do.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 24 * 60 * 60 };

static const volatile char *step;

__attribute__((constructor)) static void map_step(void)
{
    const char *path = getenv("WALL_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        abort();
    close(fd);
    step = mapped;
}

static time_t offset_s(void)
{
    char now = step ? *step : '0';
    return now == '+' ? DAY_S : now == '-' ? -DAY_S : 0;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    if (syscall(SYS_clock_gettime, id, now) != 0)
        return -1;
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        now->tv_sec += offset_s();
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec wall;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    *now = (struct timeval){ .tv_sec = wall.tv_sec, .tv_usec = wall.tv_nsec / 1000 };
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec wall;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    if (ret)
        *ret = wall.tv_sec;
    return wall.tv_sec;
}
