/* why: what an object waits for, or why it failed, and what a user can do. */
#include "plugin/why/why.h"

#include "common/api/kinds.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"
#include "plugin/commands/snapshot_read.h"

struct settings {
    struct common_flags common;
    struct str_list objects;
};

static const struct option OPTIONS[] = { COMMON_FLAGS };

/* More rows are shown with -o wide alone. */
#define MAX_SHOWN 20

static void print_table(const struct session *session, const char *title, const cJSON *rows,
                        const struct column *columns, size_t len)
{
    struct output output = session->output;
    cJSON *shown = json_array(session->arena);
    size_t all = json_len(rows), count = 0;

    if (!all)
        return;
    json_for_each (row, rows) {
        if (count == MAX_SHOWN && output.format != OUTPUT_WIDE)
            break;
        json_add(shown, json_copy(row));
        count++;
    }
    output.format = OUTPUT_TABLE;
    output_paragraph(stdout, "%s", title);
    output_rows(&output, NULL, shown, columns, len);
    if (count < all)
        output_line(stdout, "and %zu more (-o wide shows all)", all - count);
}

static void print_dependencies(const cJSON *rows)
{
    if (json_len(rows))
        output_paragraph(stdout, "Depends on:");
    json_for_each (row, rows) {
        const char *reason = json_string(json_get(row, "reason"), "");

        output_line(stdout, "%*s%s %s%s%s", (int)(2 + 2 * json_int(json_get(row, "depth"), 0)), "",
                    json_string(json_get(row, "task"), ""), json_string(json_get(row, "phase"), ""),
                    *reason ? ": " : "", reason);
    }
}

static void print_head(const struct session *session, const cJSON *document)
{
    const char *phase = json_string(json_get(document, "phase"), "");
    const char *reason = json_string(json_get(document, "reason"), "");
    const char *message = json_string(json_get(document, "message"), "");
    const char *since = json_string(json_get(document, "since"), NULL);
    int64_t since_us = 0;

    output_line(stdout, "%s is %s%s%s%s%s", json_string(json_get(document, "object"), ""),
                *phase ? phase : "new: the controller has not seen it yet", *reason ? ": " : "",
                reason, since ? " for " : "",
                since && rfc3339_parse(since, &since_us)
                    ? duration_text(session->arena, session->output.now_us - since_us)
                    : "");
    if (*message)
        output_line(stdout, "%s", message);
}

static void print_checkpoint(const struct session *session, const cJSON *checkpoint)
{
    const char *remedy = json_string(json_get(checkpoint, "remedy"), NULL);
    int64_t time_us = 0;

    if (!checkpoint)
        return;
    output_paragraph(stdout, "Checkpoints: %s", json_string(json_get(checkpoint, "message"), ""));
    if (rfc3339_parse(json_string(json_get(checkpoint, "time"), ""), &time_us))
        output_line(stdout, "The last one is step %lld of %s, %s ago.",
                    (long long)json_int(json_get(checkpoint, "step"), 0),
                    json_string(json_get(checkpoint, "proplet"), ""),
                    duration_text(session->arena, session->output.now_us - time_us));
    if (remedy)
        output_line(stdout, "To have them: %s", remedy);
}

static void print_text(const struct session *session, const cJSON *document)
{
    static const struct column PROPLETS[] = { { .header = "PROPLET", .key = "proplet" },
                                              { .header = "ACTIVE", .key = "active" },
                                              { .header = "VERDICT", .key = "verdict" } };
    static const struct column PARTS[] = { { .header = "NAME", .key = "object" },
                                           { .header = "PHASE", .key = "phase" },
                                           { .header = "REASON", .key = "reason" },
                                           { .header = "MESSAGE", .key = "message" } };
    const cJSON *rank = json_get(document, "rank");
    const char *remedy = json_string(json_get(document, "remedy"), NULL);
    const char *now = json_string(json_path(document, "scheduler", "message", NULL), NULL);

    print_head(session, document);
    print_table(session, "Proplets:", json_get(document, "proplets"), PROPLETS,
                ARRAY_LEN(PROPLETS));
    if (now && !str_equal(now, json_string(json_get(document, "message"), "")))
        output_paragraph(stdout, "The scheduler says now: %s", now);
    print_dependencies(json_get(document, "dependencies"));
    print_checkpoint(session, json_get(document, "checkpoint"));
    print_table(session, "Parts that have not succeeded:", json_get(document, "parts"), PARTS,
                ARRAY_LEN(PARTS));
    if (rank)
        output_paragraph(stdout, "It is number %lld of %lld Tasks that wait for room.",
                         (long long)json_int(json_get(rank, "position"), 0),
                         (long long)json_int(json_get(rank, "waiting"), 0));
    if (remedy && !str_equal(remedy, "Nothing."))
        output_paragraph(stdout, "What to do: %s", remedy);
}

/* Reads the objects that the answer needs beside the object itself. */
static int gather(struct session *session, const struct object_ref *ref, struct snapshot *snapshot,
                  struct error *err)
{
    static const struct {
        const struct kube_kind *kind;
        unsigned of; /* kinds whose answer needs it */
    } NEEDED[] = {
        { &KIND_TASK, TAKES_ALL & ~(unsigned)TAKES_PROPLET },
        { &KIND_PROPLET, TAKES_TASK },
        { &KIND_TRAININGROUND, TAKES_FEDERATED },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(NEEDED); i++) {
        if (NEEDED[i].of & ref->takes)
            r = snapshot_read(session, snapshot, NEEDED[i].kind, ref->name.ns, err);
    }
    return r;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    const struct settings *s = settings;
    struct object_ref ref = { .kind = NULL };
    int r = object_ref_only(session, TAKES_ALL, &s->objects, &ref, err);
    if (r < 0)
        return r;

    struct snapshot *snapshot = snapshot_create(session->arena);
    struct why_input input = { .kind = ref.kind,
                               .snapshot = snapshot,
                               .now_us = session->output.now_us };
    r = object_get(session, &ref, &input.object, err);
    if (r == 0)
        r = gather(session, &ref, snapshot, err);
    if (r < 0)
        return r;

    cJSON *document = output_document(session->arena, "Why");
    json_set_string(document, "object", object_ref_text(session->arena, &ref));
    json_set_string(document, "namespace", ref.name.ns);
    why_explain(session->arena, &input, document);
    if (output_is_structured(&session->output))
        output_whole(&session->output, document);
    else
        print_text(session, document);
    return EXIT_DONE;
}

const struct command COMMAND_WHY =
    COMMAND("why", run, struct settings, OPTIONS, TAKES_ALL,
            "Says why an object waits, failed or is not ready, and what to do.",
            ARGUMENTS(struct settings, objects, "KIND/NAME"),
            EXAMPLES("why task/add", "why proplet/device-1 -o json"));
