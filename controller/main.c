/* propeller-controller */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "controller/process.h"

#define EXIT_USAGE 2

static void configure_log(const struct controller_settings *settings)
{
    enum log_level level = LOG_INFO;

    log_level_parse(settings->log_level, &level);
    log_configure(level, str_equal(settings->log_format, "text") ? LOG_TEXT : LOG_JSON);
    if (settings->client_key)
        log_warn("--client-key is deprecated, everybody on this machine can read it: use "
                 "--client-key-file",
                 NULL);
}

int main(int argc, char **argv)
{
    static struct process process; /* other threads hold pointers to it until the very end */
    struct error err = { 0 };

    json_init();
    process.arena = arena_create();
    int r = controller_options_parse(process.arena, argc, argv, &process.settings, &err);
    if (r != 0) {
        if (r < 0)
            fprintf(stderr, "propeller-controller: %s\n", err.message);
        arena_destroy(process.arena);
        return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
    }
    configure_log(&process.settings);

    r = process_create(&process, &err);
    if (r == 0)
        r = manager_run(process.manager, &err);
    if (r < 0)
        log_error("propeller-controller ends", "error", err.message, NULL);
    process_destroy(&process);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
