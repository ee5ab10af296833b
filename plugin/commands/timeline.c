/* timeline: conditions, runs and Events of an object in the order of time. */
#include "common/view/timeline.h"

#include "common/kube/kinds.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct str_list objects;
};

static const struct option OPTIONS[] = { COMMON_FLAGS };

/* Events are shown where the user may read them. */
static const cJSON *events_of(struct session *session, const char *ns)
{
    const cJSON *events = NULL;
    struct error err;

    if (object_list(session, &KIND_EVENT, ns, NULL, &events, &err) < 0) {
        output_line(stderr, "without Events: %s", err.message);
        return NULL;
    }
    return events;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    static const struct column COLUMNS[] = { { .header = "AGE", .key = "time", .type = COLUMN_AGE },
                                             { .header = "TIME", .key = "time", .wide = true },
                                             { .header = "SOURCE", .key = "source" },
                                             { .header = "WHAT", .key = "what" },
                                             { .header = "MESSAGE", .key = "message" } };
    const struct settings *s = settings;
    const cJSON *object = NULL;
    struct object_ref ref;
    int r = object_open(session, TAKES_ALL, &s->objects, &ref, &object, err);

    if (r < 0)
        return r;

    cJSON *document = output_document(session->arena, "Timeline");
    json_set_string(document, "object", object_ref_text(session->arena, &ref));
    cJSON *rows = json_set_array(document, "entries");
    timeline_rows(session->arena, object, events_of(session, ref.name.ns), rows);
    output_rows(&session->output, document, rows, COLUMNS, ARRAY_LEN(COLUMNS));
    return EXIT_DONE;
}

const struct command COMMAND_TIMELINE =
    COMMAND("timeline", run, struct settings, OPTIONS, TAKES_ALL,
            "Shows what happened to an object, in the order of time.",
            ARGUMENTS(struct settings, objects, "KIND/NAME"),
            EXAMPLES("timeline task/add", "timeline proplet/device-1 -o wide"));
