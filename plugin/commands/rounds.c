/* rounds: the rounds of a FederatedJob. */
#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/view/means.h"
#include "common/view/state.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct str_list objects;
};

static const struct option OPTIONS[] = { COMMON_FLAGS };

static int64_t count(const cJSON *round, const char *status)
{
    int64_t found = 0;

    json_for_each (part, json_path(round, "status", "participants", NULL))
        found += str_equal(json_string(json_get(part, "status"), ""), status);
    return found;
}

/* From its start to its end, or to now; "": it has not started. */
static const char *duration(const struct session *session, const cJSON *round)
{
    const cJSON *status = json_get(round, "status");
    int64_t start_us, end_us = session->output.now_us;

    if (!rfc3339_parse(json_string(json_get(status, "startTime"), ""), &start_us))
        return "";
    rfc3339_parse(json_string(json_get(status, "endTime"), ""), &end_us);
    return duration_text(session->arena, end_us - start_us);
}

/* "loss=0.125" of each metric, in four digits. */
static void add_metrics(const struct session *session, const cJSON *means, cJSON *texts)
{
    json_for_each (mean, means)
        json_add_string(
            texts, arena_printf(session->arena, "%s=%.4g", mean->string, json_double(mean, 0)));
}

static void add_row(const struct session *session, const struct means *means, const cJSON *round,
                    cJSON *rows)
{
    const cJSON *status = json_get(round, "status");
    const char *name = json_string(json_path(round, "metadata", "name", NULL), "");
    struct state state = state_of(&KIND_TRAININGROUND, round);
    cJSON *row = json_add_object(rows);

    json_set_string(row, "object", arena_printf(session->arena, "traininground/%s", name));
    json_set_string(row, "round", name);
    json_set_string(row, "phase", state.phase);
    json_set_string(row, "updates",
                    arena_printf(session->arena, "%lld/%lld",
                                 (long long)json_int(json_get(status, "updatesReceived"), 0),
                                 (long long)json_int(json_get(status, "updatesRequired"), 0)));
    json_set_int(row, "late", count(round, "Late"));
    json_set_int(row, "failed", count(round, "Failed") + count(round, "Rejected"));
    json_set_int(row, "offline", count(round, "Offline") + count(round, "Missing"));
    json_set_string(row, "duration", duration(session, round));
    means_show(means, kube_uid(round), json_set_object(row, "means"));
    add_metrics(session, json_get(row, "means"), json_set_array(row, "metrics"));
    json_set_copy(row, "model", json_get(status, "aggregatedModelRef"));
    json_set_string(row, "message", state.message);
}

static const char *created(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "creationTimestamp", NULL), "");
}

/* Names of rounds are numbered without leading zeros, so a shorter one of the same second is older. */
static int compare(const void *a, const void *b)
{
    const cJSON *x = *(const cJSON *const *)a, *y = *(const cJSON *const *)b;
    const char *x_name = json_string(json_path(x, "metadata", "name", NULL), "");
    const char *y_name = json_string(json_path(y, "metadata", "name", NULL), "");
    int order = strcmp(created(x), created(y));

    if (order)
        return order;
    return strlen(x_name) != strlen(y_name) ? (strlen(x_name) < strlen(y_name) ? -1 : 1)
                                            : strcmp(x_name, y_name);
}

/* A Task of a participant: only its numbers are kept, as its update may be large. */
static int take_task(void *ctx, const cJSON *task, struct error *err UNUSED)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *owner = kube_controller_uid(task);

    if (owner)
        means_add(ctx, owner, json_opened(arena, json_path(task, "status", "results", NULL)));
    return 0;
}

static void add_rows(const struct session *session, const struct means *means, const cJSON *job,
                     const cJSON *rounds, cJSON *rows)
{
    const cJSON **own = arena_array(session->arena, const cJSON *, json_len(rounds) + 1);
    size_t len = 0;

    json_for_each (round, rounds) {
        if (str_equal(kube_controller_uid(round), kube_uid(job)))
            own[len++] = round;
    }
    qsort(own, len, sizeof(cJSON *), compare);
    for (size_t i = 0; i < len; i++)
        add_row(session, means, own[i], rows);
}

static int run(struct session *session, const void *settings, struct error *err)
{
    static const struct column COLUMNS[] = {
        { .header = "ROUND", .key = "round" },
        { .header = "PHASE", .key = "phase" },
        { .header = "UPDATES", .key = "updates" },
        { .header = "LATE", .key = "late" },
        { .header = "FAILED", .key = "failed" },
        { .header = "OFFLINE", .key = "offline" },
        { .header = "DURATION", .key = "duration" },
        { .header = "METRICS", .key = "metrics" },
        { .header = "MODEL", .key = "model", .wide = true },
        { .header = "MESSAGE", .key = "message" },
    };
    const struct settings *s = settings;
    struct means *means = means_create(session->arena);
    const cJSON *job = NULL, *rounds = NULL;
    struct object_ref ref;
    int r = object_open(session, TAKES_FEDERATED, &s->objects, &ref, &job, err);

    if (r == 0)
        r = object_list(session, &KIND_TRAININGROUND, ref.name.ns, NULL, &rounds, err);
    if (r == 0)
        r = object_each(session, &KIND_TASK, ref.name.ns, take_task, means, err);
    if (r < 0)
        return r;

    cJSON *document = output_document(session->arena, "Rounds");
    json_set_string(document, "object", object_ref_text(session->arena, &ref));
    cJSON *rows = json_set_array(document, "rounds");
    add_rows(session, means, job, rounds, rows);
    output_rows(&session->output, document, rows, COLUMNS, ARRAY_LEN(COLUMNS));
    return EXIT_DONE;
}

const struct command COMMAND_ROUNDS = COMMAND(
    "rounds", run, struct settings, OPTIONS, TAKES_FEDERATED, "Shows the rounds of a FederatedJob.",
    ARGUMENTS(struct settings, objects, "FEDERATEDJOB"),
    EXAMPLES("rounds mnist", "rounds mnist -o wide -n training"));
