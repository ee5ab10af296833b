#include "plugin/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_TRIES 100
#define END_TRY_NS 20000000L

/* output < 0: the program has no input and no output. Returns an errno. */
static int spawn(const char *const *argv, int output, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;

    (void)sigemptyset(&none);
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE); /* the only one that this program ignores */
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawn_file_actions_init(&actions);
    if (output >= 0) {
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    } else {
        flags |= POSIX_SPAWN_SETSID;
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_setflags(&attributes, flags);
    int r =
        posix_spawnp(ret, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return r;
}

static int fail(const char *program, int problem, struct error *err)
{
    if (problem == ENOENT)
        return error_set(err, ERROR_NOT_FOUND, "program '%s' is not in $PATH", program);
    return error_set(err, ERROR_INVALID, "program '%s' cannot be started: %s", program,
                     strerrordesc_np(problem));
}

int child_start(const char *const *argv, struct child *ret, struct error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail(argv[0], errno, err);
    int problem = spawn(argv, ends[1], &ret->pid);
    (void)close(ends[1]);
    if (problem) {
        (void)close(ends[0]);
        ret->pid = 0;
        return fail(argv[0], problem, err);
    }
    ret->output = ends[0];
    return 0;
}

int child_start_apart(const char *const *argv, struct child *ret, struct error *err)
{
    int problem = spawn(argv, -1, &ret->pid);

    if (!problem)
        return 0;
    ret->pid = 0;
    return fail(argv[0], problem, err);
}

static void give_line(struct child *child, void (*take)(void *ctx, const char *line), void *ctx)
{
    if (child->line.len)
        take(ctx, buf_string(&child->line));
    buf_clear(&child->line);
}

bool child_read(struct child *child, void (*take)(void *ctx, const char *line), void *ctx)
{
    char chunk[1024];
    ssize_t n = read(child->output, chunk, sizeof(chunk));

    if (n < 0 && errno == EINTR)
        return true;
    for (ssize_t i = 0; i < n; i++) {
        if (chunk[i] == '\n' || !buf_append(&child->line, &chunk[i], 1))
            give_line(child, take, ctx);
    }
    if (n <= 0)
        give_line(child, take, ctx);
    return n > 0;
}

bool child_has_ended(struct child *child, int *ret_status)
{
    if (!child->pid || waitpid(child->pid, ret_status, WNOHANG) != child->pid)
        return false;
    child->pid = 0;
    return true;
}

void child_end(struct child *child)
{
    const struct timespec pause = { .tv_nsec = END_TRY_NS };
    int status;

    if (child->pid)
        (void)kill(child->pid, SIGTERM);
    for (int i = 0; child->pid && i < END_TRIES && !child_has_ended(child, &status); i++)
        (void)nanosleep(&pause, NULL);
    if (child->pid) {
        (void)kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, &status, 0);
    }
    child->pid = 0;
    child_release(child);
}

void child_release(struct child *child)
{
    if (child->output >= 0)
        (void)close(child->output);
    child->output = -1;
    buf_release(&child->line);
}
