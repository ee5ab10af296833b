/* ui: opens the fleet page; on a cluster through `kubectl port-forward` to the leader. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/net/http_client.h"
#include "plugin/cli/child.h"
#include "plugin/cli/installation.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"
#include "plugin/commands/ui_plan.h"

struct settings {
    struct common_flags common;
    const char *system;
    const char *url;
    int64_t port;
    int64_t timeout_ms;
    bool no_browser;
    bool no_login;
};

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
static const struct option OPTIONS[] = {
    { OPTION("port", OPTION_INT, port), .fallback = "0", .max = 65535,
      .help = "port of 127.0.0.1 for the page of a cluster; 0 is a free one" },
    { OPTION("url", OPTION_STRING, url), .value_name = "URL",
      .help = "address of the page, if this command cannot know it" },
    { OPTION("no-browser", OPTION_BOOL, no_browser), .help = "print the address and open nothing" },
    { OPTION("no-login", OPTION_BOOL, no_login),
      .help = "open the page without the token of the kubeconfig" },
    { OPTION("timeout", OPTION_DURATION, timeout_ms), .fallback = "30s", .min = 1000,
      .max = 3600000, .help = "time in which the page must answer" },
    INSTALLATION_NAMESPACE(struct settings, system),
    COMMON_FLAGS,
};

#define VIEWER "propeller-viewer" /* ServiceAccount whose tokens open the page */
#define VIEWER_LIFE_S 43200       /* a login lasts no longer */
#define MAX_SETTINGS 16           /* ConfigMaps of the controller that are read */
#define MAX_PAGE (64u << 10)      /* bytes of the first answer of the page */
#define TITLE "<title>Propeller</title>"
#define PROBE_MS 2000 /* time-out of one request for the page */
#define PROBE_PAUSE_MS 250
#define BROWSER_MS 3000 /* after this time a browser that could not be opened is not reported */
#define SIGNAL_MS 200   /* a signal reaches all processes of the terminal, one a little later */
#define BROWSER_POLL_MS 100
#define WAIT_ON 1000 /* no exit status, no error */

struct ui {
    struct session *session;
    const struct settings *settings;
    struct ui_forward forward; /* pod NULL: the page is reached without kubectl */
    struct child kubectl;
    unsigned port;   /* that kubectl listens on; 0: not yet */
    bool is_refused; /* nothing listens on the port of the page */
    bool has_answered;
    const char *said; /* the last line of kubectl */
    const char *url;
};

DEFINE_CLEANUP(char *, free_secret)

/* Prints the reason in one line; returns the exit status. */
static int PRINTF_LIKE(2, 3) end_with(int status, const char *format, ...)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    va_list args;

    va_start(args, format);
    const char *text = arena_vprintf(arena, format, args);
    va_end(args);
    output_line(stderr, PLUGIN " ui: %s", text);
    return status;
}

/* --- the leader --- */

static int page_is_off(const struct ui *ui)
{
    return end_with(EXIT_NO,
                    "pod '%s' does not serve the page: start the controller with "
                    "--page-bind-address=127.0.0.1:%d",
                    ui->forward.pod, UI_PAGE_PORT);
}

/* Where the page of the leader is. A ConfigMap that may not be read leaves the usual port. */
static int find_port(struct ui *ui, const cJSON *pod)
{
    struct session *session = ui->session;
    const cJSON *settings[MAX_SETTINGS] = { NULL };
    const char *name;
    size_t len = 0;
    bool is_known = true;

    for (; len < MAX_SETTINGS && (name = ui_settings_name(pod, len)) != NULL; len++) {
        struct object_ref ref = { .kind = &KIND_CONFIGMAP };
        struct error err = { 0 };

        if (!kube_name_set(&ref.name, ui->settings->system, name) ||
            object_get(session, &ref, &settings[len], &err) < 0)
            is_known = is_known && err.code == ERROR_NOT_FOUND; /* as "optional" allows */
    }

    const char *address = ui_page_address(pod, settings, len);
    ui->forward.page_port = address ? ui_page_port(address) : is_known ? 0 : UI_PAGE_PORT;
    return ui->forward.page_port ? WAIT_ON : page_is_off(ui);
}

static int find_leader(struct ui *ui, struct error *err)
{
    struct session *session = ui->session;
    const char *system = ui->settings->system;
    struct object_ref ref = { .kind = &KIND_POD };
    const cJSON *pod = NULL;
    struct leader leader;
    int r = leader_find(session, system, &leader, err);

    if (r == -ERROR_NOT_FOUND)
        return end_with(EXIT_NO,
                        "namespace '%s' has no Lease '" INSTALLATION_LEASE
                        "': no controller runs there (--system-namespace)",
                        system);
    if (r < 0 || session_ended(session))
        return r < 0 ? r : session_ended(session);
    if (!leader.pod)
        return end_with(EXIT_NO, "there is no leader: no controller renews its Lease ('" PLUGIN
                                 " check' looks further)");

    r = kube_name_set(&ref.name, system, leader.pod) ? object_get(session, &ref, &pod, err)
                                                     : -ERROR_NOT_FOUND;
    if (r == -ERROR_NOT_FOUND)
        return end_with(EXIT_NO,
                        "the leader '%s' is no pod of namespace '%s': open the page on its machine "
                        "(--url)",
                        leader.pod, system);
    if (r < 0)
        return r;
    ui->forward.ns = system;
    ui->forward.pod = leader.pod;
    return find_port(ui, pod);
}

/* --- kubectl --- */

static void take_line(void *ctx, const char *line)
{
    struct ui *ui = ctx;
    unsigned port = ui_forwarded_port(line);

    if (port)
        ui->port = port;
    else if (!str_has_prefix(line, "Handling connection"))
        ui->said = arena_strdup(ui->session->arena, line);
    ui->is_refused = ui->is_refused || strstr(line, "connection refused") != NULL;
}

/* Waits for ms (-1: without end) or until kubectl says something. */
static int listen_to_kubectl(struct ui *ui, int ms)
{
    struct pollfd fds[] = { { .fd = session_ended_fd(ui->session), .events = POLLIN },
                            { .fd = ui->kubectl.output, .events = POLLIN } };

    if (poll(fds, ARRAY_LEN(fds), ms) <= 0)
        return WAIT_ON;
    if (fds[0].revents)
        return session_ended(ui->session);
    if (!fds[1].revents || child_read(&ui->kubectl, take_line, ui))
        return WAIT_ON;
    if (session_sleep(ui->session, SIGNAL_MS)) /* Ctrl-C ends kubectl, too */
        return session_ended(ui->session);
    if (ui->is_refused && !ui->has_answered)
        return page_is_off(ui);
    return end_with(EXIT_API, "kubectl port-forward has ended%s%s", ui->said ? ": " : "",
                    ui->said ? ui->said : "");
}

/* --- the page --- */

/* WAIT_ON: the page answers. */
static int ask_page(struct ui *ui, struct error *err)
{
    const struct http_client_request request = { .method = "GET",
                                                 .url = ui->url,
                                                 .max_reply = MAX_PAGE,
                                                 .timeout_ms = PROBE_MS,
                                                 .is_direct = ui_url_is_loopback(ui->url) };
    struct http_client_reply reply;
    int r = http_client_send(ui->session->arena, &request, &reply, err);

    if (r < 0)
        return r;
    if (reply.status == 403)
        return end_with(EXIT_API, "the page at %s refuses this name: start it with --page-host",
                        ui->url);
    if (reply.status != 200 || !strstr(reply.body, TITLE))
        return end_with(EXIT_API, "%s is not the fleet page (status %d)", ui->url, reply.status);
    return WAIT_ON;
}

/* WAIT_ON: the page answers through kubectl. */
static int wait_for_page(struct ui *ui)
{
    struct error err = { 0 };
    int r = WAIT_ON;

    while (r == WAIT_ON) {
        if (ui->is_refused)
            return page_is_off(ui);
        if (ui->port) {
            ui->url = arena_printf(ui->session->arena, "http://127.0.0.1:%u", ui->port);
            r = ask_page(ui, &err);
            if (r >= 0)
                return r;
        }
        r = listen_to_kubectl(ui, PROBE_PAUSE_MS);
    }
    if (r == EXIT_TIME_OUT)
        (void)end_with(r, "%s", *err.message ? err.message : "kubectl port-forward is not ready");
    return r;
}

static int start_kubectl(struct ui *ui, struct error *err)
{
    struct session *session = ui->session;

    ui->forward.local_port = (unsigned)ui->settings->port;
    int r = child_start(ui_forward_arguments(session->arena, session->flags, &ui->forward),
                        &ui->kubectl, err);
    if (r < 0)
        return end_with(EXIT_NO, "%s; the page of a cluster is reached by 'kubectl port-forward'",
                        err->message);
    return wait_for_page(ui);
}

static int reach_without_kubectl(struct ui *ui)
{
    struct error err = { 0 };
    int r = ask_page(ui, &err);

    if (r >= 0)
        return r;
    if (ui_url_is_loopback(ui->url) || ui->settings->url)
        return end_with(EXIT_API, "the page does not answer: %s%s", err.message,
                        ui->settings->url ? "" : " (--url names another address)");
    return end_with(EXIT_API,
                    "the page does not answer: %s (it listens on the loopback address of its "
                    "machine: forward port %d by ssh, and use --url)",
                    err.message, UI_PAGE_PORT);
}

/* --- the browser --- */

static bool has_display(void)
{
    return !str_is_empty(getenv("DISPLAY")) || !str_is_empty(getenv("WAYLAND_DISPLAY"));
}

/* By a flag or by the kubeconfig. */
static bool acts_as_another(const struct session *session)
{
    size_t len = 0;

    (void)kube_config_headers(session->config, &len);
    return len > 0;
}

/* The token with which the page shall log in, freed by the caller; NULL: the viewer logs in. Another identity (--as) has
 * no token, and pages of other machines get none. */
static char *find_token(struct ui *ui)
{
    struct session *session = ui->session;
    struct kube_name viewer;
    char *token = NULL;
    uint32_t life_s;

    if (ui->settings->no_login || acts_as_another(session) || !ui_url_is_loopback(ui->url))
        return NULL;
    if (kube_config_token(session->config, &token, NULL) < 0)
        return NULL;
    if (!token && ui->forward.pod && kube_name_set(&viewer, ui->settings->system, VIEWER) &&
        kube_request_token(session->client, &viewer, VIEWER_LIFE_S, &token, &life_s, NULL) < 0)
        return NULL;
    return token;
}

/* Returns whether a browser may be there, with the token or without it. */
static bool open_browser(struct ui *ui, const char *token, struct child *browser)
{
    static const char *const PROGRAMS[] = { "xdg-open", "open" };
    const char *url = token ? ui_login_url(ui->session->arena, ui->url, token) : ui->url;

    for (size_t i = 0; i < ARRAY_LEN(PROGRAMS); i++) {
        const char *const argv[] = { PROGRAMS[i], url, NULL };

        if (child_start_apart(argv, browser, NULL) == 0)
            return true;
    }
    output_line(stderr, "No browser was opened: neither xdg-open nor open is in $PATH.");
    return false;
}

/* A browser may run on for hours; a failure comes soon. Returns false if it failed. */
static bool browser_works(struct ui *ui, struct child *browser)
{
    int status = 0;

    for (int ms = 0; ms < BROWSER_MS; ms += BROWSER_POLL_MS) {
        if (child_has_ended(browser, &status)) {
            if (status)
                output_line(stderr, "No browser was opened: its program has failed.");
            return status == 0;
        }
        if (session_sleep(ui->session, BROWSER_POLL_MS)) /* the caller sees it, too */
            return true;
    }
    return true;
}

static void print_hint(const struct ui *ui)
{
    const struct kube_config *config = ui->session->config;
    CLEANUP(free_secretp) char *token = NULL;

    if (!acts_as_another(ui->session) &&
        kube_config_token(ui->session->config, &token, NULL) == 0 && token)
        output_line(stderr, "Log in with the bearer token %s.",
                    ui->session->flags->token
                        ? "of --token"
                        : arena_printf(ui->session->arena, "of your kubeconfig (%s)",
                                       kube_config_source(config)));
    else
        output_line(stderr,
                    "Log in with a token, for example of 'kubectl create token NAME', for a "
                    "ServiceAccount that may list Proplets and Tasks.");
}

static void show(struct ui *ui)
{
    struct child browser = CHILD_NONE;
    bool wants_browser = !ui->settings->no_browser && has_display();
    CLEANUP(free_secretp) char *token = wants_browser ? find_token(ui) : NULL;

    bool is_open =
        wants_browser && open_browser(ui, token, &browser) && browser_works(ui, &browser);
    child_release(&browser);
    if (!is_open || !token)
        print_hint(ui);
}

/* --- all of it --- */

static void print_address(const struct ui *ui)
{
    const struct output *output = &ui->session->output;
    cJSON *document = output_document(ui->session->arena, "Page");

    json_set_string(document, "url", ui->url);
    json_set_string(document, "namespace", ui->forward.ns);
    json_set_string(document, "pod", ui->forward.pod);
    if (output_is_structured(output))
        output_whole(output, document);
    else if (output->format == OUTPUT_NAME)
        output_line(stdout, "%s", ui->url);
    else if (ui->forward.pod)
        output_line(stdout, "The fleet page of pod %s is at %s until Ctrl-C.", ui->forward.pod,
                    ui->url);
    else
        output_line(stdout, "The fleet page is at %s", ui->url);
    (void)fflush(stdout); /* a program that reads it does not wait for the end */
}

/* Stays until Ctrl-C, which is how a person ends it, or until kubectl ends. */
static int stay(struct ui *ui)
{
    int r = WAIT_ON;

    while (r == WAIT_ON)
        r = listen_to_kubectl(ui, -1);
    return r > 128 ? EXIT_DONE : r;
}

static int reach(struct ui *ui, struct error *err)
{
    bool is_standalone = false;
    int r = session_connect(ui->session, err);

    if (r < 0)
        return r;
    session_guard(ui->session);
    session_set_limit(ui->session, ui->settings->timeout_ms);
    if (!ui->settings->url)
        r = installation_is_standalone(ui->session, &is_standalone, err);
    if (r < 0)
        return r;
    ui->url = ui->settings->url;
    if (is_standalone)
        ui->url = ui_standalone_url(ui->session->arena, kube_config_server(ui->session->config));
    if (ui->url)
        return reach_without_kubectl(ui);
    r = find_leader(ui, err);
    return r == WAIT_ON ? start_kubectl(ui, err) : r;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    struct ui ui = { .session = session, .settings = settings, .kubectl = CHILD_NONE };

    if (ui.settings->url && !ui_url_is_usable(ui.settings->url))
        return error_set(err, ERROR_INVALID,
                         "--url: '%.60s' is not an address such as http://127.0.0.1:8082",
                         ui.settings->url);

    int r = reach(&ui, err);
    if (r == WAIT_ON) {
        ui.has_answered = true;
        session_set_limit(session, 0);
        print_address(&ui);
        show(&ui);
        r = ui.forward.pod ? stay(&ui) : EXIT_DONE;
    }
    child_end(&ui.kubectl);
    return r;
}

const struct command COMMAND_UI =
    COMMAND("ui", run, struct settings, OPTIONS, 0, "Opens the fleet page in a browser.",
            EXAMPLES("ui", "ui --no-browser --port 8082"));
