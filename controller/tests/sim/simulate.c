/* simulate [SEED [COUNT]]: runs COUNT seeds from SEED on, each in a process of its own, one on each
 * processor. SIM_TRACE=1 prints what happens. With TEST_TALLY set, "simulate <passed> <failed>" is appended
 * to the file it names, and with TEST_FAILURES a line for each seed that failed to that one. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "controller/tests/sim/sim_world.h"

#define MAX_AT_ONCE 16
/* Processor time of a seed, which needs about 0.2 s. A thread that spins never lets
 * the virtual clock go on, so this ends its seed with SIGXCPU. */
#define MAX_SEED_S 60

static const char KUBECONFIG[] =
    "apiVersion: v1\nkind: Config\ncurrent-context: sim\n"
    "clusters: [{name: sim, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    "contexts: [{name: sim, context: {cluster: sim, user: sim, namespace: default}}]\n"
    "users: [{name: sim, user: {}}]\n";

static struct child {
    pid_t pid; /* 0: none */
    uint64_t seed;
} children[MAX_AT_ONCE];
static size_t at_once;
static cpu_set_t processors; /* that this process may use */
static unsigned passed, failed;

static void write_kubeconfig(char *path)
{
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, KUBECONFIG, sizeof(KUBECONFIG) - 1) < 0)
        abort();
    close(fd);
    sim_kubeconfig = path;
}

/* Appends a line to the file that the environment names, if it names one. */
static void note(const char *variable, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(const char *variable, const char *fmt, ...)
{
    const char *path = getenv(variable);
    FILE *file = path ? fopen(path, "a") : NULL;
    va_list args;

    if (!file)
        return;
    va_start(args, fmt);
    (void)vfprintf(file, fmt, args);
    va_end(args);
    (void)fclose(file);
}

static struct child *slot_of(pid_t pid)
{
    for (size_t i = 0; i < at_once; i++) {
        if (children[i].pid == pid)
            return &children[i];
    }
    return NULL;
}

static void wait_for_one(void)
{
    int status;
    struct child *child = slot_of(wait(&status));

    if (!child)
        abort();
    child->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        passed++;
        return;
    }
    failed++;
    printf("seed %llu failed; again: SIM_TRACE=1 make simulate SEED=%llu SEEDS=1\n",
           (unsigned long long)child->seed, (unsigned long long)child->seed);
    note("TEST_FAILURES",
         "simulation, seed %llu:\n    again: SIM_TRACE=1 make simulate SEED=%llu SEEDS=1\n",
         (unsigned long long)child->seed, (unsigned long long)child->seed);
}

/* One thread of a seed runs at a time, so another processor is only a longer way from one to the next. */
static void stay_on_one(size_t index)
{
    cpu_set_t one;
    size_t processor = 0;

    while (processor < CPU_SETSIZE - 1 && (!CPU_ISSET(processor, &processors) || index-- > 0))
        processor++;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
}

static void begin(uint64_t seed)
{
    struct child *child = slot_of(0);

    while (!child) {
        wait_for_one();
        child = slot_of(0);
    }
    fflush(stdout);
    child->seed = seed;
    child->pid = fork();
    if (child->pid != 0)
        return;
    if (!getenv("SIM_TRACE"))
        (void)!freopen("/dev/null", "w", stderr);
    stay_on_one((size_t)(child - children));
    setrlimit(RLIMIT_CPU, &(struct rlimit){ MAX_SEED_S, MAX_SEED_S });
    sim_run(seed, sim_world);
}

int main(int argc, char **argv)
{
    static char path[] = "/tmp/simulate-XXXXXX";
    int64_t first = 1, count = 1;

    alloc_init();
    json_init();
    if ((argc > 1 && !str_to_int64(argv[1], &first)) ||
        (argc > 2 && !str_to_int64(argv[2], &count)) || first < 0) {
        fprintf(stderr, "usage: simulate [SEED [COUNT]]\n");
        return 2;
    }
    log_configure(LOG_INFO, LOG_TEXT); /* traced or not: another level would take other locks */
    CPU_ZERO(&processors);
    if (sched_getaffinity(0, sizeof(processors), &processors) == 0)
        at_once = (size_t)CPU_COUNT(&processors);
    at_once = at_once < 1 ? 1 : at_once > MAX_AT_ONCE ? MAX_AT_ONCE : at_once;
    write_kubeconfig(path);
    for (int64_t i = 0; i < count; i++)
        begin((uint64_t)(first + i));
    while (passed + failed < count)
        wait_for_one();
    unlink(path);
    printf("simulation: %u passed, %u failed\n", passed, failed);
    note("TEST_TALLY", "simulate %u %u\n", passed, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
