/* run: creates a Task, waits for its end and prints its result. */
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/view/state.h"
#include "plugin/cli/follow.h"
#include "plugin/commands/commands.h"
#include "plugin/commands/run_manifest.h"

static const char *const TYPES[] = { "any", "k8s", "external", NULL };
static const char *const DRY_RUNS[] = { "none", "client", "server", NULL };

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct run_flags, member)
static const struct option OPTIONS[] = {
    { OPTION("wasm", OPTION_STRING, wasm), .value_name = "FILE",
      .help = "module to send with the Task, at most 537600 bytes" },
    { OPTION("image", OPTION_STRING, image), .value_name = "URL",
      .help = "address of the module or image, in place of --wasm" },
    { OPTION("function", OPTION_STRING, function), .value_name = "NAME",
      .help = "export to call; default is NAME, else the name of the module's file" },
    { OPTION("input", OPTION_STRINGS, inputs), .whole = true, .value_name = "VALUE",
      .help = "argument of the function, a number or a text" },
    { OPTION("on", OPTION_STRING, on), .value_name = "PROPLET",
      .help = "only Proplet that may run it" },
    { OPTION("selector", OPTION_STRINGS, labels), .letter = 'l', .value_name = "KEY=VALUE",
      .help = "label that the Proplet must have" },
    { OPTION("capability", OPTION_STRINGS, capabilities), .value_name = "NAME",
      .help = "capability that the Proplet must have" },
    { OPTION("type", OPTION_CHOICE, type), .choices = TYPES, .help = "type of the Proplet" },
    { OPTION("env", OPTION_STRINGS, env), .whole = true, .value_name = "KEY=VALUE",
      .help = "environment variable of the module" },
    { OPTION("retries", OPTION_INT, retries), .fallback = "-1", .min = -1, .max = 100,
      .help = "failed attempts that are repeated; -1 is the default of the kind" },
    { OPTION("deadline", OPTION_DURATION, deadline_ms), .fallback = "0s",
      .max = INT64_C(31536000000), .help = "longest time of one run; 0s is no limit" },
    { OPTION("broadcast", OPTION_BOOL, broadcast), .help = "run it on every Proplet that fits" },
    { OPTION("schedule", OPTION_STRING, schedule), .value_name = "CRON",
      .help = "run it again and again at these times, with --detach" },
    { OPTION("timezone", OPTION_STRING, timezone), .value_name = "ZONE",
      .help = "time zone of the schedule" },
    { OPTION("priority", OPTION_INT, priority), .fallback = "-1", .min = -1, .max = 100,
      .help = "priority among Tasks that wait; -1 is the default of the kind" },
    { OPTION("timeout", OPTION_DURATION, timeout_ms), .fallback = "0s", .max = 86400000,
      .help = "time after which this command gives up; 0s is never" },
    { OPTION("detach", OPTION_BOOL, detach), .help = "create the Task and do not wait for it" },
    { OPTION("rm", OPTION_BOOL, rm), .help = "delete the Task at the end, also after Ctrl-C" },
    { OPTION("dry-run", OPTION_CHOICE, dry_run), .fallback = "none", .choices = DRY_RUNS,
      .help = "print the Task and create nothing; server has it checked first" },
    COMMON_FLAGS,
};

#define MAX_UID 128
struct running {
    struct session *session;
    struct object_ref ref;
    char uid[MAX_UID]; /* another object of the name is not this Task */
    const char *said;  /* the last line about its state */
};

/* A text is printed as it is, so that a script gets its bytes; a terminal gets no control characters. */
static void print_result(const struct session *session, const cJSON *result)
{
    const char *text = json_string(result, NULL);

    if (!text)
        text = json_text(session->arena, result, NULL);
    if (isatty(STDOUT_FILENO))
        output_text(stdout, text);
    else
        (void)fprintf(stdout, "%s%s", text, str_has_suffix(text, "\n") ? "" : "\n");
}

static void print_targets(const struct session *session, const cJSON *targets)
{
    static const struct column COLUMNS[] = { { .header = "PROPLET", .key = "proplet" },
                                             { .header = "PHASE", .key = "phase" },
                                             { .header = "RESULT", .key = "results" },
                                             { .header = "ERROR", .key = "error" } };
    struct output output = session->output;

    output.format = OUTPUT_TABLE;
    output_rows(&output, NULL, targets, COLUMNS, ARRAY_LEN(COLUMNS));
}

static void print_end(const struct session *session, const struct object_ref *ref,
                      const cJSON *object, const struct state *state)
{
    const cJSON *status = json_get(object, "status");
    const cJSON *targets = json_get(status, "broadcastResults");

    if (output_is_structured(&session->output)) {
        cJSON *document = output_document(session->arena, "Run");

        json_set_string(document, "object", object_ref_text(session->arena, ref));
        json_set_copy(document, "status", status);
        output_whole(&session->output, document);
    } else if (json_len(targets)) {
        print_targets(session, targets);
    } else if (state->is_good && json_get(status, "results")) {
        print_result(session, json_get(status, "results"));
    }
    if (!state->is_good)
        output_line(stderr, "%s: %s", *state->reason ? state->reason : state->phase,
                    state->message);
}

/* A line when the state is another one than before. */
static void say(struct running *running, const struct state *state)
{
    struct arena *arena = running->session->arena;
    const char *text = arena_printf(arena, "%s %s%s%s%s%s", object_ref_text(arena, &running->ref),
                                    state->phase, *state->reason ? ": " : "", state->reason,
                                    *state->message ? ": " : "", state->message);

    if (*state->phase && !str_equal(text, running->said))
        output_line(stderr, "%s", text);
    running->said = text;
}

static int look(void *ctx, const cJSON *object)
{
    struct running *running = ctx;
    struct state state;

    if (!object || !str_equal(kube_uid(object), running->uid)) {
        output_line(stderr, "%s was deleted",
                    object_ref_text(running->session->arena, &running->ref));
        return EXIT_NO;
    }
    state = state_of(&KIND_TASK, object);
    if (state.is_final) {
        print_end(running->session, &running->ref, object, &state);
        return state.is_good ? EXIT_DONE : EXIT_NO;
    }
    say(running, &state);
    bool is_daemon = json_bool(json_path(object, "spec", "daemon", NULL), false);
    return is_daemon && str_equal(state.phase, "running") ? EXIT_DONE : FOLLOW_ON;
}

static int print_manifest(struct session *session, const struct run_flags *flags, cJSON *task,
                          struct error *err)
{
    struct output output = session->output;
    cJSON *checked = task;
    int r = 0;

    if (str_equal(flags->dry_run, "server"))
        r = kube_create_dry(session->client, session->arena, &KIND_TASK, task, &checked, err);
    if (r < 0)
        return r;
    if (!output_is_structured(&output))
        output.format = OUTPUT_YAML;
    output_whole(&output, checked);
    return EXIT_DONE;
}

/* Also after Ctrl-C and at the end of its time. */
static void remove_task(struct session *session, const struct running *running)
{
    const char *name = object_ref_text(session->arena, &running->ref);
    struct error problem;

    if (session_ended(session))
        session_go_on(session);
    int r =
        kube_delete(session->client, &KIND_TASK, &running->ref.name, running->uid, NULL, &problem);
    if (r < 0 && r != -ERROR_NOT_FOUND && r != -ERROR_CONFLICT) /* another one has its name */
        output_line(stderr, "%s was not deleted: %s", name, problem.message);
}

/* A create without an answer may have made the Task. A random name says then whose it is. Returns 0, an exit status, or
 * an error. */
static int create(struct session *session, const struct run_flags *flags, const cJSON *task,
                  struct running *running, struct error *err)
{
    cJSON *created = NULL;
    const cJSON *found = NULL;
    int r = kube_create(session->client, session->arena, &KIND_TASK, task, &created, err);
    int status = r < 0 ? session_ended(session) : 0;

    if (r == -ERROR_TIMEOUT || r == -ERROR_CANCELED) {
        struct error problem;

        if (status)
            session_go_on(session);
        if (flags->names.len || object_get(session, &running->ref, &found, &problem) < 0) {
            output_line(stderr, "%s may have been created",
                        object_ref_text(session->arena, &running->ref));
            return status ? status : r;
        }
        r = status;
    }
    if (r < 0)
        return r;
    if (!str_copy(running->uid, sizeof(running->uid), kube_uid(created ? created : found)))
        return error_set(err, ERROR_INTERNAL, "the uid of the Task is too long");
    return r;
}

/* A user who waits gets the result on standard output, and nothing else. */
static void print_created(const struct session *session, const struct object_ref *ref,
                          bool is_waited_for)
{
    const struct output *output = &session->output;
    const char *name = object_ref_text(session->arena, ref);

    if (is_waited_for) {
        output_line(stderr, "%s created", name);
    } else if (output_is_structured(output)) {
        cJSON *document = output_document(session->arena, "Run");

        json_set_string(document, "object", name);
        output_whole(output, document);
    } else {
        output_line(stdout, output->format == OUTPUT_NAME ? "%s" : "%s created", name);
    }
}

static int run(struct session *session, const void *settings, struct error *err)
{
    const struct run_flags *flags = settings;
    struct running running = { .session = session,
                               .ref = { .kind = &KIND_TASK, .takes = TAKES_TASK },
                               .said = "" };
    bool is_waited_for = !flags->detach && !flags->schedule;
    cJSON *task = NULL;

    int r = session_connect(session, err);
    if (r == 0)
        r = run_manifest(session->arena, flags, session->ns, &task, err);
    if (r < 0)
        return r;
    if (!str_equal(flags->dry_run, "none"))
        return print_manifest(session, flags, task, err);

    (void)kube_name_of(task, &running.ref.name);
    if (is_waited_for)
        session_guard(session);
    if (flags->timeout_ms && is_waited_for)
        session_set_limit(session, flags->timeout_ms);
    r = create(session, flags, task, &running, err);
    if (r == 0)
        print_created(session, &running.ref, is_waited_for);
    if (r == 0 && is_waited_for)
        r = follow(session, &running.ref, look, &running, err);
    if (flags->rm && is_waited_for && *running.uid)
        remove_task(session, &running);
    return r;
}

const struct command COMMAND_RUN = COMMAND(
    "run", run, struct run_flags, OPTIONS, 0, "Runs a module as a Task and prints its result.",
    ARGUMENTS(struct run_flags, names, "[NAME]"),
    EXAMPLES("run --wasm add.wasm --input 10 --input 32",
             "run nightly --image http://files.example/report.wasm --schedule '@daily'"));
