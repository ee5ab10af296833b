#include "common/runtime/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/str.h"

#define EXIT_USAGE 2

void program_configure_log(const char *level, const char *format)
{
    enum log_level parsed = LOG_INFO;

    log_level_parse(level, &parsed);
    log_configure(parsed, str_equal(format, "text") ? LOG_TEXT : LOG_JSON);
}

int program_end_of_options(const char *name, int r, const struct error *err)
{
    if (r > 0)
        return EXIT_SUCCESS;

    fprintf(stderr, "%s: %s\n", name, err->message);
    return EXIT_USAGE;
}

int program_end(const char *name, int r, const struct error *err)
{
    if (r == 0)
        return EXIT_SUCCESS;

    log_error("program ends", "program", name, "error", err->message, NULL);
    return EXIT_FAILURE;
}
