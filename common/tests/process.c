#include "common/tests/process.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/base/alloc.h"

#define MAX_PATH 4096

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

static void exec_in_child(const char *program, const char *dir, const char *const argv[], int log,
                          pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null < 0 || (dir && chdir(dir) < 0))
        _exit(126);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

static pid_t start(const char *dir, const char *const argv[], const char *log_path)
{
    char *program = find_program(argv[0]);
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pid_t parent = getpid();

    ck_assert_msg(log >= 0, "open '%s': %s", log_path, strerror(errno));

    pid_t pid = fork();

    ck_assert_msg(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0)
        exec_in_child(program, dir, argv, log, parent);
    close(log);
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
    return waitpid(pid, NULL, WNOHANG) == pid;
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

/* Below those that the kernel hands out by itself. Between the choice and the listening another program
 * could choose the same one: those that run at once have a part each, by the slot that unit.sh gives. */
#define FIRST_PORT 20000
#define PORTS 3000
#define SLOTS 4

uint16_t process_free_port(void)
{
    const char *slot = getenv("TEST_SLOT");
    unsigned first = FIRST_PORT + (slot ? (unsigned)slot[0] % SLOTS * PORTS : 0);
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    for (unsigned i = 0; i < PORTS; i++) {
        unsigned offset = (unsigned)getpid() + (unsigned)now.tv_nsec / 1000 + i;
        uint16_t port = (uint16_t)(first + offset % PORTS);
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons(port),
                                       .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_free = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

        close(fd);
        if (is_free)
            return port;
    }
    ck_abort_msg("no free port");
    return 0;
}
