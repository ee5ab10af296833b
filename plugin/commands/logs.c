/* logs: the logs of pods; for a device its history, as its log is on the device. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/kube/path.h"
#include "common/view/state.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"
#include "plugin/commands/log_tail.h"

struct settings {
    struct common_flags common;
    struct str_list objects;
    int64_t tail;
    int64_t since_ms;
    int64_t attempt;
    bool follow;
};

#define FOLLOW_INTERVAL_MS 1000

#define MAX_PATH 1024

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
static const struct option OPTIONS[] = {
    { OPTION("tail", OPTION_INT, tail), .fallback = "0", .min = 0, .max = 1000000,
      .help = "last lines of each pod; 0 is all" },
    { OPTION("since", OPTION_DURATION, since_ms), .fallback = "0s", .max = INT64_C(31536000000),
      .help = "only lines of this last time; 0s is all" },
    { OPTION("attempt", OPTION_INT, attempt), .fallback = "0", .min = 0, .max = 1000000000,
      .help = "attempt of the Task; 0 is all that are there" },
    { OPTION("follow", OPTION_BOOL, follow), .letter = 'f',
      .help = "print new lines as they come: of a Task until it ends, of a Proplet until Ctrl-C" },
    COMMON_FLAGS,
};

static const char *selector_of(struct session *session, const struct settings *settings,
                               const struct object_ref *ref, const cJSON *object)
{
    if (ref->takes == TAKES_PROPLET)
        return arena_printf(session->arena, LABEL_PROPLET_SELECTOR "=%s",
                            label_value(session->arena, ref->name.name));
    const char *task = arena_printf(session->arena, LABEL_TASK_UID "=%s", kube_uid(object));
    return settings->attempt ? arena_printf(session->arena, "%s," LABEL_ATTEMPT "=%lld", task,
                                            (long long)settings->attempt)
                             : task;
}

/* tail: NULL without --follow. */
static int log_path(struct session *session, const struct settings *settings,
                    const struct kube_name *pod, const struct log_tail *tail, const char **ret,
                    struct error *err)
{
    struct buf path = BUF_INIT(MAX_PATH);
    const char *since = tail ? log_tail_since(tail, session->arena) : NULL;
    bool fits = kube_path_object(&path, &KIND_POD, pod) && buf_append_string(&path, "/log");

    if (tail)
        fits = fits && kube_path_query(&path, "timestamps", "true");
    if (since)
        fits = fits && kube_path_query(&path, "sinceTime", since);
    if (settings->tail && !since)
        fits = fits &&
               kube_path_query(&path, "tailLines",
                               arena_printf(session->arena, "%lld", (long long)settings->tail));
    if (settings->since_ms && !since)
        fits =
            fits && kube_path_query(&path, "sinceSeconds",
                                    arena_printf(session->arena, "%lld",
                                                 (long long)((settings->since_ms + 999) / 1000)));
    *ret = arena_strdup(session->arena, buf_string(&path));
    buf_release(&path);
    return fits ? 0 : error_set(err, ERROR_TOO_LARGE, "the name of the pod is too long");
}

/* A pod whose container has not started has no log, which is said and does not end the others. Returns whether there was
 * one. */
static bool add_log(struct session *session, const struct settings *settings, const cJSON *pod,
                    bool with_name, cJSON *rows)
{
    struct kube_name name;
    const char *path = "", *text = "";
    struct error err = { 0 };

    if (!kube_name_of(pod, &name))
        return false;
    int r = log_path(session, settings, &name, NULL, &path, &err);
    if (r == 0)
        r = kube_get_text(session->client, session->arena, path, &text, &err);
    cJSON *row = json_add_object(rows);
    json_set_string(row, "object", arena_printf(session->arena, "pod/%s", name.name));
    json_set_string(row, "log", r < 0 ? NULL : text);
    json_set_string(row, "error", r < 0 ? err.message : NULL);
    if (r < 0)
        output_line(stderr, "%s: %s", name.name, err.message);
    if (output_is_structured(&session->output))
        return r == 0;
    if (with_name)
        output_line(stdout, "==> %s <==", name.name);
    if (r == 0 && *text)
        output_text(stdout, text);
    return r == 0;
}

/* EXIT_API: the API server gave no log at all. */
static int print_logs(struct session *session, const struct settings *settings, const cJSON *pods)
{
    cJSON *document = output_document(session->arena, "Logs");
    cJSON *rows = json_set_array(document, "pods");
    bool has_any = false;

    json_for_each (pod, pods)
        has_any = add_log(session, settings, pod, json_len(pods) > 1, rows) || has_any;
    if (output_is_structured(&session->output))
        output_whole(&session->output, document);
    return has_any ? EXIT_DONE : EXIT_API;
}

/* --- following --- */

struct followed {
    struct kube_name pod;
    struct log_tail tail;
    bool is_over;
    struct followed *next;
};

struct following {
    struct session *session;
    struct arena *arena; /* of the whole run: the session's is that of one look */
    const struct settings *settings;
    const struct object_ref *ref;
    const char *selector;
    struct followed *first;
    const struct followed *shown; /* whose lines came last */
};

static struct followed *find(struct following *following, const struct kube_name *pod)
{
    struct followed **at = &following->first;

    while (*at && !str_equal((*at)->pod.name, pod->name))
        at = &(*at)->next;
    if (!*at) {
        *at = arena_new(following->arena, struct followed);
        (*at)->pod = *pod;
    }
    return *at;
}

/* A container that has not started has no log yet, which is no news. */
static void print_news(struct following *following, struct followed *followed)
{
    struct session *session = following->session;
    const char *path = "", *text = "";
    struct error err;

    if (log_path(session, following->settings, &followed->pod, &followed->tail, &path, &err) < 0 ||
        kube_get_text(session->client, session->arena, path, &text, &err) < 0)
        return;
    const char *news = log_tail_take(&followed->tail, session->arena, text);
    if (!*news)
        return;
    if (following->shown != followed && following->first->next)
        output_line(stdout, "==> %s <==", followed->pod.name);
    following->shown = followed;
    output_text(stdout, news);
    (void)fflush(stdout);
}

static bool has_ended(const cJSON *pod)
{
    const char *phase = json_string(json_path(pod, "status", "phase", NULL), "");

    return str_equal(phase, "Succeeded") || str_equal(phase, "Failed");
}

/* One look at all pods. *ret_is_over: nothing comes any more. */
static int look(struct following *following, bool *ret_is_over, struct error *err)
{
    struct session *session = following->session;
    const cJSON *object = NULL, *pods = NULL;
    int r = object_get(session, following->ref, &object, err);

    if (r == 0)
        r = object_list(session, &KIND_POD, following->ref->name.ns, following->selector, &pods,
                        err);
    if (r < 0)
        return r;
    *ret_is_over = state_of(following->ref->kind, object).is_final;
    json_for_each (pod, pods) {
        struct kube_name name;

        if (!kube_name_of(pod, &name))
            continue;
        struct followed *followed = find(following, &name);
        bool is_over = has_ended(pod); /* before the log is read, so that its end is in it */
        if (!followed->is_over)
            print_news(following, followed);
        followed->is_over = is_over;
        *ret_is_over = *ret_is_over && is_over;
    }
    return 0;
}

static int look_again(struct following *following, bool *ret_is_over, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    following->session->arena = arena;
    int r = look(following, ret_is_over, err);
    following->session->arena = following->arena;
    return r;
}

static int follow_logs(struct following *following, struct error *err)
{
    struct session *session = following->session;
    bool is_over = false;
    int r = 0;

    session_guard(session);
    while (r == 0 && !is_over && !ferror(stdout)) {
        r = look_again(following, &is_over, err);
        if (r == 0 && !is_over)
            r = session_sleep(session, FOLLOW_INTERVAL_MS);
    }
    return r;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    const struct settings *s = settings;
    const cJSON *object = NULL, *pods = NULL;
    struct object_ref ref = { .kind = NULL };

    if (s->follow && output_is_structured(&session->output))
        return error_set(err, ERROR_INVALID, "--follow: only with -o table, wide or name");
    int r = object_open(session, TAKES_TASK | TAKES_PROPLET, &s->objects, &ref, &object, err);
    if (r == 0)
        r = object_list(session, &KIND_POD, ref.name.ns, selector_of(session, s, &ref, object),
                        &pods, err);
    if (r < 0 && err->code != ERROR_NOT_FOUND) /* a server without pods has devices only */
        return r;
    if (r == -ERROR_NOT_FOUND && !object)
        return r;
    if (json_len(pods) && s->follow) {
        struct following following = { .session = session,
                                       .arena = session->arena,
                                       .settings = s,
                                       .ref = &ref,
                                       .selector = selector_of(session, s, &ref, object) };

        return follow_logs(&following, err);
    }
    if (json_len(pods))
        return print_logs(session, s, pods);
    output_line(stderr,
                "%s has no pods: the log of a device is on the device (journalctl -u proplet on "
                "Linux); '" PLUGIN " timeline %s' shows its history here",
                object_ref_text(session->arena, &ref), object_ref_text(session->arena, &ref));
    return EXIT_NO;
}

const struct command COMMAND_LOGS =
    COMMAND("logs", run, struct settings, OPTIONS, TAKES_TASK | TAKES_PROPLET,
            "Prints the logs of the pods of a Task or a Proplet.",
            ARGUMENTS(struct settings, objects, "KIND/NAME"),
            EXAMPLES("logs task/report --follow", "logs proplet/workers --since 10m"));
