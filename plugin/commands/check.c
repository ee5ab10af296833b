/* check: whether Propeller is installed and works, as far as the caller may look. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/view/state.h"
#include "plugin/cli/installation.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    const char *system;
};

static const struct option OPTIONS[] = {
    INSTALLATION_NAMESPACE(struct settings, system),
    COMMON_FLAGS,
};

#define OURS "app.kubernetes.io/part-of=propeller"
#define LONG_WAIT_US (INT64_C(15) * 60 * 1000000)
#define MAX_NAMED 3

struct checking {
    struct session *session;
    const struct settings *settings;
    cJSON *rows;
    bool has_findings;
    bool is_silent; /* the API server does not answer any more: nothing else is asked */
};

enum result { RESULT_OK, RESULT_FINDING, RESULT_NOT_CHECKED };

static void say(struct checking *checking, const char *what, enum result result,
                const char *message)
{
    static const char *const NAMES[] = { "ok", "finding", "not checked" };
    cJSON *row = json_add_object(checking->rows);

    json_set_string(row, "object", what);
    json_set_string(row, "result", NAMES[result]);
    json_set_string(row, "message", message);
    checking->has_findings |= result == RESULT_FINDING;
}

/* A thing that the API server did not let us see is not known to be wrong. */
static void say_error(struct checking *checking, const char *what, const struct error *err)
{
    bool is_unseen = err->code == ERROR_FORBIDDEN || err->code == ERROR_CANCELED;

    checking->is_silent = checking->is_silent || err->code == ERROR_TIMEOUT ||
                          err->code == ERROR_UNAVAILABLE || err->code == ERROR_CANCELED;
    say(checking, what, is_unseen ? RESULT_NOT_CHECKED : RESULT_FINDING, err->message);
}

/* false: it was said why there is no list. */
static bool list(struct checking *checking, const char *what, const struct kube_kind *kind,
                 const char *ns, const char *selector, const cJSON **ret)
{
    struct error err = { 0 };
    int r = checking->is_silent ? error_set(&err, ERROR_CANCELED, "the API server does not answer")
                                : object_list(checking->session, kind, ns, selector, ret, &err);

    if (r < 0)
        say_error(checking, what, &err);
    return r == 0;
}

/* The first names of a list that grows, and how many there are. */
struct names {
    struct arena *arena;
    const char *text;
    size_t len;
};

static void add_name(struct names *names, const cJSON *object)
{
    const char *ns = json_string(json_path(object, "metadata", "namespace", NULL), "");
    const char *name = json_string(json_path(object, "metadata", "name", NULL), "");

    if (names->len < MAX_NAMED)
        names->text =
            arena_printf(names->arena, "%s%s%s/%s", names->text, names->len ? ", " : "", ns, name);
    names->len++;
}

static const char *names_text(const struct names *names)
{
    return names->len > MAX_NAMED
               ? arena_printf(names->arena, "%s and %zu more", names->text, names->len - MAX_NAMED)
               : names->text;
}

static void check_kinds(struct checking *checking)
{
    static const struct kube_kind *const KINDS[] = { &KIND_PROPELLERJOB, &KIND_FEDERATEDJOB,
                                                     &KIND_TRAININGROUND };
    struct session *session = checking->session;

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        const cJSON *objects = NULL;

        if (list(checking, KINDS[i]->plural, KINDS[i], object_list_scope(session), NULL, &objects))
            say(checking, KINDS[i]->plural, RESULT_OK,
                arena_printf(session->arena, "%zu", json_len(objects)));
    }
}

static void check_proplets(struct checking *checking)
{
    struct session *session = checking->session;
    struct names away = { session->arena, "", 0 };
    const cJSON *objects = NULL;

    if (!list(checking, "proplets", &KIND_PROPLET, object_list_scope(session), NULL, &objects))
        return;
    json_for_each (object, objects) {
        if (!state_of(&KIND_PROPLET, object).is_good)
            add_name(&away, object);
    }
    if (!json_len(objects))
        say(checking, "proplets", RESULT_FINDING, "there is no Proplet, so no Task can run");
    else if (away.len)
        say(checking, "proplets", RESULT_FINDING,
            arena_printf(session->arena, "%zu of %zu are not ready: %s", away.len,
                         json_len(objects), names_text(&away)));
    else
        say(checking, "proplets", RESULT_OK,
            arena_printf(session->arena, "%zu, all ready", json_len(objects)));
}

static void check_tasks(struct checking *checking)
{
    struct session *session = checking->session;
    struct names late = { session->arena, "", 0 };
    const cJSON *objects = NULL;

    if (!list(checking, "tasks", &KIND_TASK, object_list_scope(session), NULL, &objects))
        return;
    json_for_each (object, objects) {
        struct state state = state_of(&KIND_TASK, object);

        if (str_equal(state.phase, "pending") && state.since_us &&
            !str_equal(state.reason, "WaitingForSchedule") &&
            !str_equal(state.reason, "Suspended") &&
            session->output.now_us - state.since_us > LONG_WAIT_US)
            add_name(&late, object);
    }
    if (late.len)
        say(checking, "tasks", RESULT_FINDING,
            arena_printf(session->arena,
                         "%zu of %zu have waited for more than 15 minutes: %s ('" PLUGIN
                         " why' says for what)",
                         late.len, json_len(objects), names_text(&late)));
    else
        say(checking, "tasks", RESULT_OK,
            arena_printf(session->arena, "%zu, none waits long", json_len(objects)));
}

/* The pod that holds the Lease; NULL: there is none. */
static const char *check_lease(struct checking *checking)
{
    struct session *session = checking->session;
    struct leader leader;
    struct error err = { 0 };

    if (leader_find(session, checking->settings->system, &leader, &err) < 0) {
        say_error(checking, "leader", &err);
        return NULL;
    }
    if (!leader.pod) {
        say(checking, "leader", RESULT_FINDING,
            "no controller renews the Lease: look at the pods of the controller");
        return NULL;
    }
    say(checking, "leader", RESULT_OK, leader.pod);
    if (!leader.looks_alive)
        say(checking, "clock", RESULT_FINDING,
            arena_printf(
                session->arena, "the clock of this machine is about %lld s %s that of %s",
                (long long)((leader.age_us < 0 ? -leader.age_us : leader.age_us) / 1000000),
                leader.age_us < 0 ? "behind" : "ahead of", leader.pod));
    return leader.pod;
}

/* The leader's own view of the broker and of its caches, through the API server. */
static void check_leader(struct checking *checking, const char *pod)
{
    struct session *session = checking->session;
    struct error err = { 0 };
    const char *path =
        arena_printf(session->arena, "/api/v1/namespaces/%s/pods/%s:8081/proxy/readyz",
                     checking->settings->system, pod);

    if (kube_get_text(session->client, session->arena, path, NULL, &err) == 0)
        say(checking, "controller", RESULT_OK, "ready, with its broker");
    else if (err.code == ERROR_NOT_FOUND)
        say(checking, "controller", RESULT_NOT_CHECKED, "the leader is no pod of this cluster");
    else
        say_error(checking, "controller", &err);
}

static void check_deployments(struct checking *checking)
{
    struct session *session = checking->session;
    const cJSON *objects = NULL;

    if (!list(checking, "deployments", &KIND_DEPLOYMENT, checking->settings->system, OURS,
              &objects))
        return;
    json_for_each (object, objects) {
        int64_t wanted = json_int(json_path(object, "spec", "replicas", NULL), 1);
        int64_t there = json_int(json_path(object, "status", "availableReplicas", NULL), 0);

        say(checking, json_string(json_path(object, "metadata", "name", NULL), ""),
            there < wanted ? RESULT_FINDING : RESULT_OK,
            arena_printf(session->arena, "%lld of %lld replicas are available", (long long)there,
                         (long long)wanted));
    }
}

static void check_installation(struct checking *checking)
{
    const char *leader = check_lease(checking);

    if (leader)
        check_leader(checking, leader);
    check_deployments(checking);
}

static int run(struct session *session, const void *settings, struct error *err)
{
    static const struct column COLUMNS[] = { { .header = "CHECK", .key = "object" },
                                             { .header = "RESULT", .key = "result" },
                                             { .header = "MESSAGE", .key = "message" } };
    struct checking checking = { .session = session, .settings = settings };
    bool is_standalone = false;
    int r = installation_is_standalone(session, &is_standalone, err);

    if (r < 0) /* without an answer there is nothing to check */
        return r;

    cJSON *document = output_document(session->arena, "Check");
    checking.rows = json_set_array(document, "checks");
    if (is_standalone)
        say(&checking, "controller", RESULT_OK, "in the standalone server, which answers");
    else
        check_installation(&checking);
    check_proplets(&checking);
    check_tasks(&checking);
    check_kinds(&checking);
    output_rows(&session->output, document, checking.rows, COLUMNS, ARRAY_LEN(COLUMNS));
    return checking.has_findings ? EXIT_NO : EXIT_DONE;
}

const struct command COMMAND_CHECK = COMMAND(
    "check", run, struct settings, OPTIONS, 0, "Checks whether Propeller is installed and works.",
    EXAMPLES("check -A", "check -A --system-namespace propeller-system -o json"));
