/* top: load of Proplets or Tasks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/view/load.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct str_list what;
    const char *selector;
    const char *sort_by;
    bool watch;
};

#define WATCH_INTERVAL_MS 5000

static const char *const KEYS[] = { "name", "cpu", "memory", "active", NULL };

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
static const struct option OPTIONS[] = {
    { OPTION("selector", OPTION_STRING, selector), .letter = 'l', .value_name = "LABELS",
      .help = "labels of the objects" },
    { OPTION("sort-by", OPTION_CHOICE, sort_by), .fallback = "name", .choices = KEYS,
      .help = "order; the largest is first, but for name" },
    { OPTION("watch", OPTION_BOOL, watch), .letter = 'w',
      .help = "print it again every 5 seconds until Ctrl-C" },
    COMMON_FLAGS,
};

/* The first column is shown where there is more than one namespace, or more room. */
static const struct column PROPLETS[] = {
    { .header = "NAMESPACE", .key = "namespace" },
    { .header = "PROPLET", .key = "name" },
    { .header = "PHASE", .key = "phase" },
    { .header = "ACTIVE", .key = "active" },
    { .header = "MAX", .key = "maxTasks" },
    { .header = "CPU", .key = "cpu" },
    { .header = "MEMORY", .key = "memory" },
    { .header = "SAMPLE", .key = "timestamp", .type = COLUMN_AGE },
};
static const struct column TASKS[] = {
    { .header = "NAMESPACE", .key = "namespace" },
    { .header = "TASK", .key = "name" },
    { .header = "PHASE", .key = "phase" },
    { .header = "PROPLET", .key = "proplet" },
    { .header = "CPU", .key = "cpu" },
    { .header = "MEMORY", .key = "memory" },
    { .header = "SAMPLE", .key = "timestamp", .type = COLUMN_AGE },
};

static int print(struct session *session, const struct settings *settings,
                 const struct kube_kind *kind, struct error *err)
{
    bool is_proplet = kind == &KIND_PROPLET;
    size_t skip = session->flags->all_namespaces || session->output.format == OUTPUT_WIDE ? 0 : 1;
    const cJSON *objects = NULL;
    int r =
        object_list(session, kind, object_list_scope(session), settings->selector, &objects, err);
    if (r < 0)
        return r;

    cJSON *document = output_document(session->arena, "Top");
    cJSON *rows = json_set_array(document, is_proplet ? "proplets" : "tasks");
    load_rows(session->arena, kind, objects, settings->sort_by, rows);
    if (is_proplet)
        output_rows(&session->output, document, rows, PROPLETS + skip, ARRAY_LEN(PROPLETS) - skip);
    else
        output_rows(&session->output, document, rows, TASKS + skip, ARRAY_LEN(TASKS) - skip);
    return EXIT_DONE;
}

static int print_again(struct session *session, const struct settings *settings,
                       const struct kube_kind *kind, struct error *err)
{
    struct arena *whole = session->arena;
    int r = EXIT_DONE;

    do {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        session->arena = arena;
        session->output.now_us = clock_wall_us(&CLOCK_SYSTEM);
        if (isatty(STDOUT_FILENO))
            (void)fputs("\033[H\033[2J", stdout);
        r = print(session, settings, kind, err);
        (void)fflush(stdout);
    } while (r == EXIT_DONE && !ferror(stdout) && !session_sleep(session, WATCH_INTERVAL_MS));
    session->arena = whole;
    return r;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    const struct settings *s = settings;
    const char *what = s->what.len == 1 ? s->what.items[0] : "";
    bool is_proplet = str_equal(what, "proplets") || str_equal(what, "proplet");

    if (!is_proplet && !str_equal(what, "tasks") && !str_equal(what, "task"))
        return error_set(err, ERROR_INVALID, "the argument must be proplets or tasks");
    int r = session_connect(session, err);
    if (r < 0)
        return r;
    const struct kube_kind *kind = is_proplet ? &KIND_PROPLET : &KIND_TASK;
    return s->watch ? print_again(session, s, kind, err) : print(session, s, kind, err);
}

const struct command COMMAND_TOP =
    COMMAND("top", run, struct settings, OPTIONS, 0, "Shows the load of Proplets or of Tasks.",
            ARGUMENTS(struct settings, what, "proplets|tasks"),
            EXAMPLES("top proplets --sort-by cpu", "top tasks -A --watch"));
