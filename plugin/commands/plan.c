/* plan: where the Tasks of a file would run, without creating them. */
#include <errno.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/api/task.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/json/yaml.h"
#include "controller/scheduler/scheduler.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"
#include "plugin/commands/snapshot_read.h"
#include "plugin/why/why.h"

struct settings {
    struct common_flags common;
    const char *file;
    const char *scheduler;
};

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
static const struct option OPTIONS[] = {
    { OPTION("filename", OPTION_STRING, file), .letter = 'f', .value_name = "FILE",
      .help = "manifests; \"-\" is the standard input" },
    { OPTION("scheduler", OPTION_CHOICE, scheduler), .fallback = "round-robin",
      .choices = SCHEDULER_NAMES, .help = "as --scheduler of the controller" },
    COMMON_FLAGS,
};

/* Tasks of the file, in the arena of the session. */
struct manifests {
    struct session *session;
    cJSON *tasks;
};

static int take(void *ctx, const struct yaml_place *place, cJSON *object, struct error *err)
{
    struct manifests *manifests = ctx;
    const char *kind = json_string(json_get(object, "kind"), "");

    if (str_has_suffix(kind, "List"))
        return 0;
    if (!str_equal(kind, "Task") ||
        !str_equal(json_string(json_get(object, "apiVersion"), ""), API_VERSION))
        return error_set(err, ERROR_INVALID,
                         "document %zu is a '%.60s', but only Tasks are planned", place->document,
                         kind);
    if (!cJSON_IsObject(json_get(object, "metadata")))
        return error_set(err, ERROR_INVALID, "document %zu: metadata must be an object with a name",
                         place->document);
    json_add(manifests->tasks, json_copy(object));
    return 0;
}

static int read_file(struct manifests *manifests, const char *path, struct error *err)
{
    bool is_input = str_equal(path, "-");
    FILE *file = is_input ? stdin : fopen(path, "re");

    if (!file)
        return error_set(err, ERROR_INVALID, "--filename: file '%s': %s", path,
                         strerrordesc_np(errno));
    int r = yaml_read(file, take, manifests, err);
    if (!is_input)
        (void)fclose(file);
    return r < 0 ? error_wrap(err, "--filename: '%s'", path) : 0;
}

/* The present objects, and the Tasks of the file that have their place. */
struct planning {
    struct session *session;
    const struct settings *settings;
    struct snapshot *snapshot;
    cJSON *read; /* members: the namespaces that the snapshot has */
    cJSON *rows;
};

/* As the API server would name it. */
static void set_name(struct session *session, cJSON *metadata)
{
    const char *base = json_string(json_get(metadata, "generateName"), "");
    char uuid[UUID_LEN];

    if (!json_get(metadata, "namespace"))
        json_set_string(metadata, "namespace", session->ns);
    if (!json_get(metadata, "name") && *base)
        json_set_string(metadata, "name",
                        arena_printf(session->arena, "%s%.5s", base, uuid_random(uuid)));
}

static int read_namespace(const struct planning *planning, const char *ns, struct error *err)
{
    struct session *session = planning->session;

    if (json_get(planning->read, ns))
        return 0;
    json_set_bool(planning->read, ns, true);
    int r = snapshot_read(session, planning->snapshot, &KIND_PROPLET, ns, err);
    return r < 0 ? r : snapshot_read(session, planning->snapshot, &KIND_TASK, ns, err);
}

/* The next Task of the file meets this one there. */
static void place(const struct planning *planning, const cJSON *task, const char *proplet)
{
    cJSON *placed = json_copy(task);
    cJSON *status = json_set_object(placed, "status");
    char now[RFC3339_LEN];

    json_set_string(status, "phase", TASK_PHASE_NAMES[TASK_SCHEDULED]);
    json_set_string(status, "assignedProplet", proplet);
    json_set_string(status, "scheduledAt", rfc3339_format(clock_wall_us(&CLOCK_SYSTEM), now));
    snapshot_add(planning->snapshot, &KIND_TASK, placed);
    json_free(placed);
}

/* A row for the Task, and one for each Proplet below it. EXIT_NO: none fits. */
static int plan_task(const struct planning *planning, cJSON *task, struct error *err)
{
    struct session *session = planning->session;
    cJSON *checked = NULL;

    set_name(session, (cJSON *)(uintptr_t)json_get(task, "metadata"));
    const char *name = json_string(json_path(task, "metadata", "name", NULL), "");
    const char *ns = json_string(json_path(task, "metadata", "namespace", NULL), "");
    int r = kube_create_dry(session->client, session->arena, &KIND_TASK, task, &checked, err);
    if (r == -ERROR_EXISTS) { /* it is there already: planned as it is written */
        checked = task;
        r = 0;
    }
    if (r == 0)
        r = read_namespace(planning, ns, err);
    if (r < 0)
        return r;

    cJSON *row = json_add_object(planning->rows);
    json_set_string(row, "object", arena_printf(session->arena, "task/%s", name));
    json_set_string(row, "namespace", ns);
    const char *chosen = why_schedule(session->arena, checked, planning->snapshot,
                                      planning->settings->scheduler, session->output.now_us, row);
    json_set_string(row, "proplet", chosen);
    json_set_string(row, "message",
                    chosen ? "" : json_string(json_path(row, "scheduler", "message", NULL), ""));
    if (chosen && !strchr(chosen, ',')) /* a broadcast is on several */
        place(planning, checked, chosen);
    return chosen ? EXIT_DONE : EXIT_NO;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    static const struct column COLUMNS[] = { { .header = "TASK", .key = "object" },
                                             { .header = "PROPLET", .key = "proplet" },
                                             { .header = "WHY NONE", .key = "message" } };
    const struct settings *s = settings;
    struct manifests manifests = { session, json_array(session->arena) };
    struct planning planning = { .session = session,
                                 .settings = s,
                                 .snapshot = snapshot_create(session->arena),
                                 .read = json_object(session->arena) };
    int status = EXIT_DONE;

    if (!s->file)
        return error_set(err, ERROR_INVALID, "--filename: must be given");
    int r = session_connect(session, err);
    if (r == 0)
        r = read_file(&manifests, s->file, err);
    if (r == 0 && !json_len(manifests.tasks))
        r = error_set(err, ERROR_INVALID, "--filename: '%s' has no Task", s->file);
    if (r < 0)
        return r;

    cJSON *document = output_document(session->arena, "Plan");
    planning.rows = json_set_array(document, "tasks");
    for (cJSON *task = manifests.tasks->child; task; task = task->next) {
        r = plan_task(&planning, task, err);
        if (r < 0)
            return r;
        status = r > status ? r : status;
    }
    output_rows(&session->output, document, planning.rows, COLUMNS, ARRAY_LEN(COLUMNS));
    return status;
}

const struct command COMMAND_PLAN =
    COMMAND("plan", run, struct settings, OPTIONS, 0,
            "Says where the Tasks of a file would run now, and creates nothing.",
            EXAMPLES("plan -f task.yaml", "plan -f - -o json"));
