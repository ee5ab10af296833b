/* explain: what a reason, a condition, an alert or a metric means, without a cluster. */
#include <assert.h>

#include "common/api/reasons.h"
#include "common/base/str.h"
#include "common/schema/embedded.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct str_list names;
};

static const struct option OPTIONS[] = { COMMON_FLAGS };

static const struct {
    unsigned kind;
    const char *name;
} KINDS[] = { { OF_TASK, "Task" },
              { OF_PROPLET, "Proplet" },
              { OF_JOB, "PropellerJob" },
              { OF_FEDERATED, "FederatedJob" },
              { OF_ROUND, "TrainingRound" },
              { OF_MACHINE, "ScheduledMachine" },
              { OF_ENROLLMENT, "Enrollment" } };

/* An array of entries: conditions, alerts and metrics (plugin/explain/tables.py). */
EMBED(explain_bytes, "build/explain.json");
static const struct embedded OTHERS = { "build/explain.json", explain_bytes, explain_bytes_end };

static void add_reason(const struct reason_row *reason, cJSON *entries)
{
    cJSON *entry = json_add_object(entries);

    json_set_string(entry, "object", reason->text);
    json_set_string(entry, "type", "reason");
    cJSON *kinds = json_set_array(entry, "kinds");
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        if (reason->kinds & KINDS[i].kind)
            json_add_string(kinds, KINDS[i].name);
    }
    json_set_string(entry, "severity", reason->severity == SEVERITY_WARNING ? "warning" : "normal");
    json_set_string(entry, "meaning", reason->meaning);
    json_set_string(entry, "remedy", reason->remedy);
}

/* All entries there are. */
static const cJSON *entries_of(struct arena *arena)
{
    const cJSON *others = NULL;
    cJSON *ret = json_array(arena);
    int r = json_parse(arena, OTHERS.text, (size_t)(OTHERS.end - OTHERS.text), &others, NULL);

    assert(r == 0); /* this repository's own file */
    for (enum reason reason = REASON_NONE + 1; reason < REASON_OTHER; reason++)
        add_reason(&REASON_TABLE[reason], ret);
    json_for_each (other, others)
        json_add(ret, json_copy(other));
    return ret;
}

/* Adds the entries of one name: several, where a reason and a condition have the same. */
static int add_named(const cJSON *all, const char *name, cJSON *entries, struct error *err)
{
    size_t before = json_len(entries);

    json_for_each (entry, all) {
        if (str_equal(json_string(json_get(entry, "object"), ""), name))
            json_add(entries, json_copy(entry));
    }
    if (json_len(entries) == before)
        return error_set(err, ERROR_INVALID,
                         "'%.60s' is not a reason, a condition, an alert or a metric (without an "
                         "argument all are listed)",
                         name);
    return 0;
}

static void print_text(const cJSON *entries)
{
    json_for_each (entry, entries) {
        const char *remedy = json_string(json_get(entry, "remedy"), "");

        output_line(stdout, "%s (%s): %s", json_string(json_get(entry, "object"), ""),
                    json_string(json_get(entry, "type"), ""),
                    json_string(json_get(entry, "meaning"), ""));
        if (*remedy)
            output_line(stdout, "What to do: %s", remedy);
    }
}

static int run(struct session *session, const void *settings, struct error *err)
{
    static const struct column COLUMNS[] = {
        { .header = "NAME", .key = "object" },
        { .header = "TYPE", .key = "type" },
        { .header = "KINDS", .key = "kinds" },
        { .header = "SEVERITY", .key = "severity" },
        { .header = "MEANING", .key = "meaning" },
        { .header = "WHAT TO DO", .key = "remedy", .wide = true }
    };
    const struct str_list *names = &((const struct settings *)settings)->names;
    const cJSON *all = entries_of(session->arena);
    cJSON *document = output_document(session->arena, "Explain");
    cJSON *entries = json_set_array(document, "entries");
    int r = 0;

    for (size_t i = 0; i < names->len && r == 0; i++)
        r = add_named(all, names->items[i], entries, err);
    if (r < 0)
        return r;
    if (!names->len) {
        json_for_each (entry, all)
            json_add(entries, json_copy(entry));
    }
    if (names->len && session->output.format == OUTPUT_TABLE)
        print_text(entries);
    else
        output_rows(&session->output, document, entries, COLUMNS, ARRAY_LEN(COLUMNS));
    return EXIT_DONE;
}

const struct command COMMAND_EXPLAIN =
    COMMAND("explain", run, struct settings, OPTIONS, 0,
            "Explains reasons, conditions, alerts and metrics, without a cluster.",
            ARGUMENTS(struct settings, names, "[NAME...]"),
            EXAMPLES("explain NoCandidates", "explain PropellerFleetBrake"));
