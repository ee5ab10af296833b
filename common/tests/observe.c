#include "common/tests/observe.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/runtime/metrics.h"

static int captured_fd;
static int original = -1;
static int memory = -1;

void capture_start(int fd)
{
    ck_assert_int_eq(original, -1);
    memory = memfd_create("captured", 0);
    ck_assert_int_ge(memory, 0);
    ck_assert_int_eq(fcntl(memory, F_SETFL, O_APPEND), 0);
    ck_assert_int_eq(fflush(stdout), 0);
    captured_fd = fd;
    original = dup(fd);
    ck_assert_int_ge(original, 0);
    ck_assert_int_eq(dup2(memory, fd), fd);
}

const char *capture_text(struct arena *arena)
{
    struct stat info;

    ck_assert_int_eq(fflush(stdout), 0);
    ck_assert_int_eq(fstat(memory, &info), 0);
    char *text = arena_alloc(arena, (size_t)info.st_size + 1, 1);
    ck_assert_int_eq(pread(memory, text, (size_t)info.st_size, 0), info.st_size);
    return text;
}

void capture_stop(void)
{
    ck_assert_int_eq(fflush(stdout), 0);
    ck_assert_int_eq(dup2(original, captured_fd), captured_fd);
    ck_assert_int_eq(close(original), 0);
    ck_assert_int_eq(close(memory), 0);
    original = -1;
    memory = -1;
}

static bool has_line(const char *line, struct buf *text)
{
    struct buf wanted = BUF_INIT(1024);

    ck_assert(metrics_write(text));
    ck_assert(buf_printf(&wanted, "\n%s\n", line));
    bool found = strstr(buf_string(text), buf_string(&wanted));
    buf_release(&wanted);
    return found;
}

void ck_metric(const char *line)
{
    struct buf text = BUF_INIT(METRICS_MAX_TEXT);

    ck_assert_msg(has_line(line, &text), "no '%s' in:\n%s", line, buf_string(&text));
    buf_release(&text);
}

void ck_no_metric(const char *line)
{
    struct buf text = BUF_INIT(METRICS_MAX_TEXT);

    ck_assert_msg(!has_line(line, &text), "'%s' in:\n%s", line, buf_string(&text));
    buf_release(&text);
}

double metric_said(const char *name)
{
    struct buf text = BUF_INIT(METRICS_MAX_TEXT);
    struct buf wanted = BUF_INIT(1024);

    ck_assert(metrics_write(&text));
    ck_assert(buf_printf(&wanted, "\n%s ", name));
    const char *line = strstr(buf_string(&text), buf_string(&wanted));
    double value = line ? strtod(line + strlen(buf_string(&wanted)), NULL) : -1;
    buf_release(&wanted);
    buf_release(&text);
    return value;
}
