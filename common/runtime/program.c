#include "common/runtime/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/notify.h"

#define EXIT_USAGE 2

const char *const PROGRAM_LOG_LEVELS[] = { "trace", "debug", "info", "warn", "error", NULL };
const char *const PROGRAM_LOG_FORMATS[] = { "auto", "json", "text", NULL };

static bool is_read_by_a_person(void)
{
    return isatty(STDERR_FILENO);
}

void program_configure_log(const char *level, const char *format)
{
    enum log_level parsed = LOG_INFO;
    bool text = str_equal(format, "text") || (str_equal(format, "auto") && is_read_by_a_person());

    log_level_parse(level, &parsed);
    log_configure(parsed, text ? LOG_TEXT : LOG_JSON);
}

static void print_error(const char *name, const struct error *err)
{
    fprintf(stderr, "%s: %s\n", name, err->message);
}

int program_end_of_options(const char *name, int r, const struct error *err)
{
    if (r > 0)
        return EXIT_SUCCESS;

    print_error(name, err);
    notify_send(NULL, err->message);
    return EXIT_USAGE;
}

int program_end(const char *name, int r, const struct error *err)
{
    if (r == 0)
        return EXIT_SUCCESS;

    if (is_read_by_a_person())
        print_error(name, err);
    else
        log_error("the program ends with an error", "program", name, "error", err->message, NULL);
    notify_send(NULL, err->message);
    return EXIT_FAILURE;
}
