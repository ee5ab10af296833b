#include "webhook/tests/webhook_process.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/tests/certs.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

#define MAX_PATH 4096

struct webhook_process {
    char *dir;
    char ca[MAX_PATH];
    uint16_t port;
    pid_t pid;
};

static void run(struct webhook_process *process, const char *timeout)
{
    char *program = process_built("propeller-webhook");
    char port[16];
    char log[MAX_PATH];

    (void)snprintf(port, sizeof(port), "%u", process->port);
    (void)snprintf(log, sizeof(log), "%s/log", process->dir);

    const char *const argv[] = { program,      "--port",
                                 port,         "--cert-dir",
                                 process->dir, "--request-timeout",
                                 timeout,      "--health-probe-bind-address",
                                 "0",          "--metrics-bind-address",
                                 "0",          "--enable-vmafx",
                                 NULL };

    process->pid = process_start(argv, log);
    free(program);
    process_wait_listening(process->pid, process->port, process->dir, "log");
}

struct webhook_process *webhook_process_start(const char *timeout)
{
    struct webhook_process *process = xcalloc(1, sizeof(*process));

    process->dir = temp_dir_create();
    process->port = process_free_port();
    (void)snprintf(process->ca, sizeof(process->ca), "%s/ca.crt", process->dir);
    certs_make_ca(process->dir, "ca");
    certs_make(process->dir, "ca", "tls", "DNS:localhost,IP:127.0.0.1");
    run(process, timeout);
    return process;
}

bool webhook_process_stop(struct webhook_process *process)
{
    int status = process_end(process->pid, SIGTERM);

    if (status != 0) {
        char *log = temp_file_read(process->dir, "log");

        (void)fprintf(stderr, "propeller-webhook ended with status %d: %s\n", status, log);
        free(log);
    }
    temp_dir_destroy(process->dir);
    free(process);
    return status == 0;
}

unsigned webhook_process_port(const struct webhook_process *process)
{
    return process->port;
}

const char *webhook_process_ca(const struct webhook_process *process)
{
    return process->ca;
}

size_t webhook_process_peak_kib(const struct webhook_process *process)
{
    char path[64];
    char line[256];
    size_t kib = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)process->pid);

    FILE *file = fopen(path, "re");

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmHWM:", strlen("VmHWM:")) == 0)
            kib = strtoul(line + strlen("VmHWM:"), NULL, 10);
    }
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_uint_gt(kib, 0);
    return kib;
}

size_t webhook_process_descriptors(const struct webhook_process *process)
{
    char path[64];
    size_t count = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)process->pid);

    DIR *folder = opendir(path);

    ck_assert_ptr_nonnull(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}
