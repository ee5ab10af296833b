/* propeller-controller */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/json/json.h"
#include "common/runtime/program.h"
#include "controller/process/process.h"
#include "controller/process/uninstall.h"

#define NAME "propeller-controller"

int main(int argc, char **argv)
{
    static struct process process; /* other threads hold pointers to it until the very end */
    struct error err = { 0 };

    alloc_init();
    json_init();
    process.arena = arena_create();
    int r = controller_options_parse(process.arena, argc, argv, &process.settings, &err);
    if (r != 0) {
        arena_destroy(process.arena);
        return program_end_of_options(NAME, r, &err);
    }
    program_configure_log(process.settings.log_level, process.settings.log_format);
    if (process.settings.client_key)
        log_warn("--client-key is deprecated, every user of this machine can read it: use "
                 "--client-key-file",
                 NULL);

    if (process.settings.uninstall) {
        r = uninstall_by_settings(&process.settings, &err);
        arena_destroy(process.arena);
        return program_end(NAME, r, &err);
    }
    r = process_create(&process, &err);
    if (r == 0)
        r = manager_run(process.host.manager, &err);
    process_destroy(&process);
    return program_end(NAME, r, &err);
}
