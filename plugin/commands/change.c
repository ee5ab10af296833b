/* suspend, resume, restart, cordon, uncordon: one field or annotation of each object. */
#include "common/api/names.h"
#include "common/base/clock.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct str_list objects;
};

static const struct option OPTIONS[] = { COMMON_FLAGS };

static const struct change {
    const struct command *command;
    const char *field; /* of spec; NULL: the restart annotation */
    bool value;
    const char *done, *document;
} CHANGES[] = {
    { &COMMAND_SUSPEND, "suspend", true, "suspended", "Suspend" },
    { &COMMAND_RESUME, "suspend", false, "resumed", "Resume" },
    { &COMMAND_RESTART, NULL, false, "restarted", "Restart" },
    { &COMMAND_CORDON, "unschedulable", true, "cordoned", "Cordon" },
    { &COMMAND_UNCORDON, "unschedulable", false, "uncordoned", "Uncordon" },
};

/* A value that the annotation did not have asks for one more run. */
static int restart(struct session *session, const struct object_ref *ref, struct error *err)
{
    cJSON *patch = json_object(session->arena);
    cJSON *annotations = json_set_object(json_set_object(patch, "metadata"), "annotations");
    char now[RFC3339_LEN];

    json_set_string(annotations, ANNOTATION_RESTART,
                    rfc3339_format_micro(session->output.now_us, now));
    return object_merge(session, ref, patch, err);
}

/* All names are checked before the first object changes. */
static int run(struct session *session, const void *settings, struct error *err)
{
    const struct str_list *objects = &((const struct settings *)settings)->objects;
    struct object_ref *refs = arena_array(session->arena, struct object_ref, objects->len + 1);
    const struct change *change = CHANGES;
    int r = session_connect(session, err);

    while (change->command != session->command)
        change++;
    struct results results = results_begin(session, change->document);
    if (r == 0 && !objects->len)
        r = error_set(err, ERROR_INVALID, "name at least one object");
    for (size_t i = 0; r == 0 && i < objects->len; i++)
        r = object_ref_parse(session, session->command->takes, objects->items[i], &refs[i], err);
    for (size_t i = 0; r == 0 && i < objects->len; i++) {
        r = change->field
                ? object_set_spec_bool(session, &refs[i], change->field, change->value, err)
                : restart(session, &refs[i], err);
        if (r == 0)
            results_add(&results, &refs[i], change->done);
    }
    results_end(&results);
    return r;
}

#define SUSPENDABLE (TAKES_TASK | TAKES_JOB | TAKES_FEDERATED)

const struct command COMMAND_SUSPEND =
    COMMAND("suspend", run, struct settings, OPTIONS, SUSPENDABLE,
            "Suspends Tasks or jobs, so that what runs is stopped and nothing starts.",
            ARGUMENTS(struct settings, objects, "KIND/NAME..."),
            EXAMPLES("suspend task/add", "suspend propellerjob/inspection -n lab"));
const struct command COMMAND_RESUME =
    COMMAND("resume", run, struct settings, OPTIONS, SUSPENDABLE,
            "Resumes Tasks or jobs that are suspended.",
            ARGUMENTS(struct settings, objects, "KIND/NAME..."),
            EXAMPLES("resume task/add", "resume propellerjob/inspection -n lab"));
const struct command COMMAND_RESTART =
    COMMAND("restart", run, struct settings, OPTIONS, TAKES_TASK, "Asks for one more run of Tasks.",
            ARGUMENTS(struct settings, objects, "TASK..."),
            EXAMPLES("restart add", "restart task/add task/report -n lab"));
const struct command COMMAND_CORDON = COMMAND(
    "cordon", run, struct settings, OPTIONS, TAKES_PROPLET, "Keeps new Tasks away from Proplets.",
    ARGUMENTS(struct settings, objects, "PROPLET..."),
    EXAMPLES("cordon device-1", "cordon device-1 device-2 -n lab"));
const struct command COMMAND_UNCORDON = COMMAND(
    "uncordon", run, struct settings, OPTIONS, TAKES_PROPLET, "Lets Proplets take new Tasks again.",
    ARGUMENTS(struct settings, objects, "PROPLET..."),
    EXAMPLES("uncordon device-1", "uncordon device-1 device-2 -n lab"));
