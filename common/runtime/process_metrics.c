#include "common/runtime/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/clock.h"

/* /proc/self/stat is one line of some fifty numbers and a name of at most 15 characters. */
#define MAX_STAT 1024

static bool put(struct buf *ret, const char *name, const char *type, const char *help, double value)
{
    return buf_printf(ret, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name,
                      value);
}

/* Of /proc/self/stat, see proc(5): the numbers after the program's name, which may hold anything.
 */
struct stat_fields {
    unsigned long long user_ticks, system_ticks, start_ticks, virtual_bytes;
    long long resident_pages;
};

static bool read_stat(struct stat_fields *ret)
{
    char text[MAX_STAT];
    FILE *file = fopen("/proc/self/stat", "re");

    if (!file)
        return false;
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[len] = '\0';

    const char *after_name = strrchr(text, ')');
    return after_name &&
           sscanf(after_name + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d "
                  "%llu %llu %lld",
                  &ret->user_ticks, &ret->system_ticks, &ret->start_ticks, &ret->virtual_bytes,
                  &ret->resident_pages) == 5;
}

static bool write_stat(struct buf *ret)
{
    struct stat_fields stat;
    double ticks_per_s = (double)sysconf(_SC_CLK_TCK);

    if (ticks_per_s <= 0 || !read_stat(&stat))
        return true;

    double now_s = (double)clock_wall_us(&CLOCK_SYSTEM) / 1e6;
    double since_boot_s = (double)clock_boot_ms(&CLOCK_SYSTEM) / 1e3;
    double started_s = now_s - since_boot_s + (double)stat.start_ticks / ticks_per_s;

    return put(ret, "process_cpu_seconds_total", "counter",
               "Total user and system CPU time spent in seconds.",
               (double)(stat.user_ticks + stat.system_ticks) / ticks_per_s) &&
           put(ret, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
               (double)stat.resident_pages * (double)sysconf(_SC_PAGESIZE)) &&
           put(ret, "process_start_time_seconds", "gauge",
               "Start time of the process since unix epoch in seconds.", started_s) &&
           put(ret, "process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.",
               (double)stat.virtual_bytes);
}

static bool write_fds(struct buf *ret)
{
    struct rlimit limit;
    double open_fds = -1; /* the directory's own does not count */
    DIR *directory = opendir("/proc/self/fd");

    if (directory) {
        for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
            open_fds += entry->d_name[0] != '.';
        (void)closedir(directory);
        if (!put(ret, "process_open_fds", "gauge", "Number of open file descriptors.", open_fds))
            return false;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return true;
    return put(ret, "process_max_fds", "gauge", "Maximum number of open file descriptors.",
               (double)limit.rlim_cur);
}

bool process_metrics_write(struct buf *ret)
{
    return write_stat(ret) && write_fds(ret);
}
