#include "common/tests/process.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/wait.h>

#include "common/base/alloc.h"
#include "common/base/compiler.h"

#define MAX_PATH 4096
#define MAX_ARGS 64
/* Tries 10 ms apart until a program must listen: against hangs only. */
#define LISTEN_TRIES 12000
#define MAX_LOG_END 3000

char *temp_dir_create(void)
{
    const char *base = getenv("TMPDIR");
    char path[MAX_PATH];

    (void)snprintf(path, sizeof(path), "%s/test-XXXXXX", base ? base : "/tmp");
    ck_assert_msg(mkdtemp(path), "mkdtemp '%s': %s", path, strerror(errno));
    return xstrdup(path);
}

char *temp_file_read(const char *dir, const char *name)
{
    char path[MAX_PATH];
    char *text = NULL;
    size_t size = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);

    FILE *file = fopen(path, "re");

    ck_assert_msg(file, "open '%s': %s", path, strerror(errno));
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = xstrdup("");
    }
    (void)fclose(file);
    return text;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

void temp_dir_destroy(char *path)
{
    if (!path)
        return;
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

char *temp_file_write(const char *dir, const char *name, const char *text)
{
    char path[MAX_PATH];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);

    FILE *file = fopen(path, "we");

    ck_assert_msg(file != NULL, "create '%s': %s", path, strerror(errno));
    bool written = fputs(text, file) >= 0;
    ck_assert_msg(fclose(file) == 0 && written, "write '%s': %s", path, strerror(errno));
    return xstrdup(path);
}

/* A path for execv; daemons are in sbin, which is in nobody's $PATH. */
static char *find_program(const char *name)
{
    const char *in_path = getenv("PATH");
    char directories[MAX_PATH];
    char path[2 * MAX_PATH];

    if (strchr(name, '/'))
        return xstrdup(name);
    (void)snprintf(directories, sizeof(directories), "%s:/usr/local/sbin:/usr/sbin:/sbin",
                   in_path ? in_path : "/usr/bin:/bin");
    for (const char *start = directories; *start;) {
        size_t len = strcspn(start, ":");

        (void)snprintf(path, sizeof(path), "%.*s/%s", (int)len, start, name);
        if (access(path, X_OK) == 0)
            return xstrdup(path);
        start += len + (start[len] == ':');
    }
    ck_abort_msg("the program '%s' is not installed, and this test needs it", name);
    return NULL;
}

char *process_built(const char *name)
{
    char self[MAX_PATH];
    char path[MAX_PATH + 64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    ck_assert_int_gt(len, 0);
    self[len] = '\0';
    for (unsigned i = 0; i < 3; i++) {
        char *slash = strrchr(self, '/');

        ck_assert_ptr_nonnull(slash);
        *slash = '\0';
    }
    (void)snprintf(path, sizeof(path), "%s/bin/%.48s", self, name);
    return xstrdup(path);
}

/* A child of fork() could wait for ever for a lock of the thread sanitizer that another thread held; posix_spawn runs
 * nothing of this program in the child. setpriv lets the program die with the thread that started it. */
static pid_t start(const char *dir, const char *const argv[], const char *log_path)
{
    static const char *const SETPRIV[] = { "setpriv", "--pdeathsig", "KILL", "--" };
    char *setpriv = find_program(SETPRIV[0]), *program = find_program(argv[0]);
    const char *full[ARRAY_LEN(SETPRIV) + MAX_ARGS + 1] = { NULL };
    posix_spawn_file_actions_t actions;
    size_t len = ARRAY_LEN(SETPRIV);
    pid_t pid;

    memcpy(full, SETPRIV, sizeof(SETPRIV));
    full[len++] = program;
    for (size_t i = 1; argv[i]; i++) {
        ck_assert_uint_lt(i, MAX_ARGS);
        full[len++] = argv[i];
    }
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log_path,
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    if (dir)
        posix_spawn_file_actions_addchdir_np(&actions, dir);

    int code = posix_spawn(&pid, setpriv, &actions, NULL, (char *const *)(uintptr_t)full, environ);

    ck_assert_msg(code == 0, "start '%s' with its output to '%s': %s", program, log_path,
                  strerror(code));
    posix_spawn_file_actions_destroy(&actions);
    free(setpriv);
    free(program);
    return pid;
}

pid_t process_start(const char *const argv[], const char *log_path)
{
    return start(NULL, argv, log_path);
}

int process_end(pid_t pid, int signal)
{
    int status;

    if (signal)
        ck_assert_int_eq(kill(pid, signal), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

bool process_has_ended(pid_t pid)
{
    pid_t ended = waitpid(pid, NULL, WNOHANG);

    ck_assert_msg(ended >= 0, "wait for process %d: %s", (int)pid, strerror(errno));
    return ended == pid;
}

/* The program that the process runs, and what it waits for: proc(5) explains the numbers. */
static void describe(pid_t pid, char *ret, size_t size)
{
    char dir[64], link[80], program[MAX_PATH];
    char *stat, *wchan;

    (void)snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
    (void)snprintf(link, sizeof(link), "%s/exe", dir);
    ssize_t len = readlink(link, program, sizeof(program) - 1);
    program[len < 0 ? 0 : len] = '\0';
    stat = temp_file_read(dir, "stat");
    wchan = temp_file_read(dir, "wchan");
    (void)snprintf(ret, size, "program '%s', waits in '%s', stat: %s", program, wchan, stat);
    free(wchan);
    free(stat);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
}

/* The last lines of a log, as much as a message of check holds. */
static const char *log_end(const char *dir, const char *log)
{
    const char *text = temp_file_read(dir, log);
    size_t len = strlen(text);

    return len > MAX_LOG_END ? text + len - MAX_LOG_END : text;
}

/* 0, or what connect says. */
static int try_to_connect(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_msg(fd >= 0, "socket: %s", strerror(errno));
    int code = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : errno;
    close(fd);
    return code;
}

void process_wait_listening(pid_t pid, uint16_t port, const char *dir, const char *log)
{
    char what[2 * MAX_PATH];
    int code;

    for (int i = 0; (code = try_to_connect(port)) != 0; i++) {
        if (process_has_ended(pid))
            ck_abort_msg("it ended before it listened on port %u: %s", port, log_end(dir, log));
        if (i == LISTEN_TRIES) {
            describe(pid, what, sizeof(what));
            ck_abort_msg("process %d does not listen on port %u: connect: %s; %s; its log: %s",
                         (int)pid, port, strerror(code), what, log_end(dir, log));
        }
        poll(NULL, 0, 10);
    }
}

void process_run(const char *dir, const char *const argv[])
{
    char log_path[MAX_PATH];
    char name[64];

    (void)snprintf(name, sizeof(name), "%s.log", argv[0]);
    (void)snprintf(log_path, sizeof(log_path), "%s/%s", dir, name);

    int status = process_end(start(dir, argv, log_path), 0);

    if (status != 0)
        ck_abort_msg("'%s' ended with status %d: %s", argv[0], status, temp_file_read(dir, name));
}

/* Below those of the end-to-end cases (e2e/lib/base.sh) and those that the kernel gives to clients. */
#define FIRST_PORT 12000
#define PORTS 4000

static int reserved[PORTS]; /* sockets that keep the ports of this process until it ends */
static size_t reserved_len;

/*
 * Binds a socket to the port, which fails if any other socket has it. Programs that listen set SO_REUSEADDR; then the kernel lets them share the port with a socket
 * that has SO_REUSEADDR, too, and does not listen.
 */
static bool reserve(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    ck_assert_msg(fd >= 0, "socket: %s", strerror(errno));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return false;
    }
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_uint_lt(reserved_len, PORTS);
    reserved[reserved_len++] = fd;
    return true;
}

uint16_t process_free_port(void)
{
    for (unsigned i = 0; i < PORTS; i++) {
        uint16_t port = (uint16_t)(FIRST_PORT + ((unsigned)getpid() + i) % PORTS);

        if (reserve(port))
            return port;
    }
    ck_abort_msg("no port from %d to %d is free", FIRST_PORT, FIRST_PORT + PORTS - 1);
    return 0;
}
