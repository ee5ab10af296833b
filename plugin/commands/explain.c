/* explain: the table of reasons, without a cluster. */
#include "common/api/reasons.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct option_strings reasons;
};

static const struct option OPTIONS[] = { COMMON_FLAGS };

static const struct {
    unsigned kind;
    const char *name;
} KINDS[] = { { OF_TASK, "Task" },
              { OF_PROPLET, "Proplet" },
              { OF_JOB, "PropellerJob" },
              { OF_FEDERATED, "FederatedJob" },
              { OF_ROUND, "TrainingRound" } };

static void add_row(const struct reason_row *reason, cJSON *rows)
{
    cJSON *row = json_add_object(rows);

    json_set_string(row, "object", reason->text);
    json_set_string(row, "reason", reason->text);
    cJSON *kinds = json_set_array(row, "kinds");
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        if (reason->kinds & KINDS[i].kind)
            json_add_string(kinds, KINDS[i].name);
    }
    json_set_string(row, "severity", reason->severity == SEVERITY_WARNING ? "Warning" : "Normal");
    json_set_string(row, "meaning", reason->meaning);
    json_set_string(row, "remedy", reason->remedy);
}

/* The rows that were asked for, or all. */
static int add_rows(const struct option_strings *reasons, cJSON *rows, struct error *err)
{
    for (size_t i = 0; i < reasons->len; i++) {
        enum reason reason = reason_of(reasons->items[i]);

        if (reason == REASON_NONE || reason == REASON_OTHER)
            return error_set(err, ERROR_INVALID,
                             "'%.60s' is not a reason (without an argument all are listed)",
                             reasons->items[i]);
        add_row(&REASON_TABLE[reason], rows);
    }
    for (enum reason reason = REASON_NONE + 1; !reasons->len && reason < REASON_OTHER; reason++)
        add_row(&REASON_TABLE[reason], rows);
    return 0;
}

static void print_text(const cJSON *rows)
{
    json_for_each (row, rows)
        output_line(stdout, "%s: %s\nWhat to do: %s", json_string(json_get(row, "reason"), ""),
                    json_string(json_get(row, "meaning"), ""),
                    json_string(json_get(row, "remedy"), ""));
}

static int run(struct session *session, const void *settings, struct error *err)
{
    static const struct column COLUMNS[] = {
        { .header = "REASON", .key = "reason" },
        { .header = "KINDS", .key = "kinds" },
        { .header = "SEVERITY", .key = "severity" },
        { .header = "MEANING", .key = "meaning" },
        { .header = "WHAT TO DO", .key = "remedy", .wide = true }
    };
    const struct option_strings *reasons = &((const struct settings *)settings)->reasons;
    cJSON *document = output_document(session->arena, "Explain");
    cJSON *rows = json_set_array(document, "reasons");
    int r = add_rows(reasons, rows, err);

    if (r < 0)
        return r;
    if (reasons->len && session->output.format == OUTPUT_TABLE)
        print_text(rows);
    else
        output_rows(&session->output, document, rows, COLUMNS, ARRAY_LEN(COLUMNS));
    return EXIT_DONE;
}

const struct command COMMAND_EXPLAIN =
    COMMAND("explain", run, struct settings, OPTIONS, 0,
            "Explains the reasons that statuses have, without a cluster.",
            ARGUMENTS(struct settings, reasons, "[REASON...]"),
            EXAMPLES("explain NoCandidates", "explain -o wide"));
