/* wait: until an object is as the user wants it. */
#include "common/base/str.h"
#include "common/view/state.h"
#include "plugin/cli/follow.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct str_list objects;
    const char *wanted;
    int64_t timeout_ms;
};

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
static const struct option OPTIONS[] = {
    { OPTION("for", OPTION_STRING, wanted), .fallback = "finished", .value_name = "STATE",
      .help = "complete, failed, finished (either of them), ready, or phase=PHASE" },
    { OPTION("timeout", OPTION_DURATION, timeout_ms), .fallback = "0s", .max = 86400000,
      .help = "time after which it gives up; 0s is never" },
    COMMON_FLAGS,
};

#define PHASE "phase="

struct waiting {
    const struct settings *settings;
    struct session *session;
    struct object_ref ref;
};

static bool is_wanted(const char *wanted, const struct state *state)
{
    if (str_has_prefix(wanted, PHASE))
        return str_equal(wanted + strlen(PHASE), state->phase);
    if (str_equal(wanted, "ready"))
        return state->is_good;
    if (str_equal(wanted, "finished"))
        return state->is_final;
    return state->is_final && state->is_good == str_equal(wanted, "complete");
}

static void print_end(const struct waiting *waiting, const char *name, const struct state *state)
{
    const struct output *output = &waiting->session->output;
    cJSON *document = output_document(waiting->session->arena, "Wait");

    json_set_string(document, "object", name);
    json_set_string(document, "namespace", waiting->ref.name.ns);
    json_set_string(document, "phase", state->phase);
    json_set_string(document, "reason", state->reason);
    json_set_string(document, "message", state->message);
    if (output_is_structured(output))
        output_whole(output, document);
    else if (output->format == OUTPUT_NAME)
        output_line(stdout, "%s", name);
    else
        output_line(stdout, "%s is %s", name, state->phase);
}

static int look(void *ctx, const cJSON *object)
{
    const struct waiting *waiting = ctx;
    const char *name = object_ref_text(waiting->session->arena, &waiting->ref);

    if (!object) {
        output_line(stderr, "%s does not exist", name);
        return EXIT_NO;
    }

    struct state state = state_of(waiting->ref.kind, object);
    if (is_wanted(waiting->settings->wanted, &state)) {
        print_end(waiting, name, &state);
        return EXIT_DONE;
    }
    if (!state.is_final)
        return FOLLOW_ON;
    output_line(stderr, "%s is %s: %s", name, state.phase, state.message);
    return EXIT_NO;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    static const char *const STATES[] = { "complete", "failed", "finished", "ready" };
    struct waiting waiting = { .settings = settings, .session = session };
    const char *wanted = waiting.settings->wanted;
    bool is_known = str_has_prefix(wanted, PHASE) && wanted[strlen(PHASE)];

    for (size_t i = 0; i < ARRAY_LEN(STATES); i++)
        is_known = is_known || str_equal(STATES[i], wanted);
    if (!is_known)
        return error_set(err, ERROR_INVALID,
                         "--for: '%.60s' is not one of complete, failed, finished, ready, "
                         "phase=PHASE",
                         wanted);

    int r = object_ref_only(session, session->command->takes, &waiting.settings->objects,
                            &waiting.ref, err);
    if (r == 0 && str_equal(wanted, "ready") != (waiting.ref.takes == TAKES_PROPLET) &&
        !str_has_prefix(wanted, PHASE))
        r = error_set(err, ERROR_INVALID,
                      "--for: '%s' is not a state of this kind: a Proplet is ready, the others "
                      "finish",
                      wanted);
    if (r < 0)
        return r;
    session_guard(session);
    session_set_limit(session, waiting.settings->timeout_ms);
    return follow(session, &waiting.ref, look, &waiting, err);
}

const struct command COMMAND_WAIT = COMMAND(
    "wait", run, struct settings, OPTIONS, TAKES_ALL,
    "Waits until an object is finished, ready, or in a phase.",
    ARGUMENTS(struct settings, objects, "KIND/NAME"),
    EXAMPLES("wait task/add --for complete --timeout 5m", "wait proplet/device-1 --for ready"));
