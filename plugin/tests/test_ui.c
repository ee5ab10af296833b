/* How `ui` finds the page, what it runs, and which addresses it opens. */
#include "plugin/commands/ui_plan.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "plugin/cli/child.h"
#include "plugin/cli/installation.h"

static struct error err;

TEST_GROUP("leader", arena_set_up, arena_tear_down);

#define NOW_US INT64_C(1795773600000000) /* 2026-11-27T10:00:00Z */
#define LEASE(holder, renewed)                                                                     \
    "{\"spec\":{\"holderIdentity\":\"" holder "\",\"leaseDurationSeconds\":15,"                    \
    "\"renewTime\":\"2026-11-27T" renewed "\"}}"

static const struct {
    const char *lease, *pod;
    bool looks_alive;
} LEASES[] = {
    { LEASE("controller-a_1f", "09:59:58.000000Z"), "controller-a", true },
    { LEASE("controller-a", "09:59:31.000000Z"), "controller-a", true },
    { LEASE("controller-a_1f", "09:59:29.000000Z"), "controller-a", false },
    { LEASE("controller-a_1f", "10:00:31.000000Z"), "controller-a", false },
    { LEASE("", "09:59:58.000000Z"), NULL, true }, /* given up */
    { "{\"spec\":{\"holderIdentity\":\"a\"}}", "a", false },
    { "{}", NULL, false },
};

TEST_EACH(leader_holds_the_lease_and_looks_alive_near_its_last_renewal, LEASES)
{
    struct leader leader = leader_of(arena, parsed(arena, LEASES[_i].lease), NOW_US);

    ck_assert_pstr_eq(leader.pod, LEASES[_i].pod);
    ck_assert_int_eq(leader.looks_alive, LEASES[_i].looks_alive);
}

TEST_GROUP("page of a pod", arena_set_up, arena_tear_down);

#define POD(members)                                                                               \
    "{\"spec\":{\"containers\":[{\"name\":\"side\"},{\"name\":\"controller\"" members "}]}}"
#define FLAG "--page-bind-address"
#define VARIABLE "PROPELLER_PAGE_BIND_ADDRESS"
#define SETTINGS(value) "{\"data\":{\"" VARIABLE "\":\"" value "\"}}"

static const struct {
    const char *pod, *settings, *address;
} PODS[] = {
    { POD(""), NULL, NULL },
    { POD(",\"args\":[\"--log-level=info\",\"" FLAG "=127.0.0.1:8082\"]"), NULL, "127.0.0.1:8082" },
    { POD(",\"args\":[\"" FLAG "\",\":9\",\"--other\"]"), NULL, ":9" },
    { POD(",\"args\":[\"" FLAG "=:8\",\"" FLAG "=:9\"]"), NULL, ":9" },
    { POD(",\"command\":[\"propeller-controller\",\"" FLAG "=:9\"]"), NULL, ":9" },
    { POD(",\"command\":[\"x\",\"" FLAG "=:9\"],\"args\":[\"" FLAG "=0\"]"), NULL, "0" },
    { POD(",\"env\":[{\"name\":\"" VARIABLE "\",\"value\":\":7\"}]"), SETTINGS(":6"), ":7" },
    { POD(",\"args\":[\"" FLAG "=:9\"],\"env\":[{\"name\":\"" VARIABLE "\",\"value\":\":7\"}]"),
      NULL, ":9" },
    { POD(",\"envFrom\":[{\"configMapRef\":{\"name\":\"s\"}}]"), SETTINGS(":6"), ":6" },
    { POD(",\"envFrom\":[{\"configMapRef\":{\"name\":\"s\"}}]"), "{\"data\":{\"OTHER\":\":6\"}}",
      NULL },
    { "{\"spec\":{\"containers\":[{\"name\":\"other\",\"args\":[\"" FLAG "=:9\"]}]}}", NULL, ":9" },
    { "{}", NULL, NULL },
};

TEST_EACH(address_is_that_of_the_command_line_then_of_the_variables, PODS)
{
    const cJSON *settings = PODS[_i].settings ? parsed(arena, PODS[_i].settings) : NULL;

    ck_assert_pstr_eq(ui_page_address(parsed(arena, PODS[_i].pod), &settings, 1), PODS[_i].address);
}

TEST(settings_are_the_config_maps_of_the_controller)
{
    const cJSON *pod = parsed(arena, POD(",\"envFrom\":[{\"secretRef\":{\"name\":\"x\"}},"
                                         "{\"configMapRef\":{\"name\":\"a\"}},"
                                         "{\"configMapRef\":{\"name\":\"b\"}}]"));

    ck_assert_str_eq(ui_settings_name(pod, 0), "a");
    ck_assert_str_eq(ui_settings_name(pod, 1), "b");
    ck_assert_ptr_null(ui_settings_name(pod, 2));
    ck_assert_ptr_null(ui_settings_name(parsed(arena, "{}"), 0));
}

static const struct {
    const char *address;
    unsigned port;
} ADDRESSES[] = {
    { "127.0.0.1:8082", 8082 },
    { ":9", 9 },
    { "[::1]:65535", 65535 },
    { "0", 0 },
    { "", 0 },
    { "127.0.0.1", 0 },
    { "127.0.0.1:65536", 0 },
    { "127.0.0.1:99999999999", 0 },
};

TEST_EACH(port_stands_at_the_end_of_an_address, ADDRESSES)
{
    ck_assert_uint_eq(ui_page_port(ADDRESSES[_i].address), ADDRESSES[_i].port);
}

TEST_GROUP("kubectl", arena_set_up, arena_tear_down);

static const char *command_line(const struct common_flags *flags, const struct ui_forward *forward)
{
    const char *const *argv = ui_forward_arguments(arena, flags, forward);
    const char *line = argv[0];

    for (size_t i = 1; argv[i]; i++)
        line = arena_printf(arena, "%s|%s", line, argv[i]);
    return line;
}

TEST(kubectl_chooses_a_free_port)
{
    const struct common_flags flags = { .ns = "lab" }; /* of the user's objects */
    const struct ui_forward forward = { .ns = "sys", .pod = "c-a", .page_port = 8082 };

    ck_assert_str_eq(command_line(&flags, &forward),
                     "kubectl|port-forward|--namespace=sys|--address=127.0.0.1|pod/c-a|:8082");
}

TEST(kubectl_gets_all_flags_that_choose_cluster_and_user)
{
    const char *groups[] = { "g,1", "--g2" };
    const struct common_flags flags = { .kubeconfig = "-f",
                                        .context = "c d",
                                        .cluster = "cl",
                                        .user = "u",
                                        .server = "https://s",
                                        .token = "t",
                                        .as = "eve",
                                        .as_uid = "7",
                                        .as_groups = { groups, 2 },
                                        .insecure = true };
    const struct ui_forward forward = {
        .ns = "sys", .pod = "c-a", .page_port = 9, .local_port = 8000
    };

    ck_assert_str_eq(command_line(&flags, &forward),
                     "kubectl|port-forward|--kubeconfig=-f|--context=c d|--cluster=cl|--user=u|"
                     "--server=https://s|--token=t|--as=eve|--as-uid=7|"
                     "--insecure-skip-tls-verify=true|--namespace=sys|--address=127.0.0.1|"
                     "--as-group=g,1|--as-group=--g2|pod/c-a|8000:9");
}

static const struct {
    const char *line;
    unsigned port;
} LINES[] = {
    { "Forwarding from 127.0.0.1:40123 -> 8082", 40123 },
    { "Forwarding from [::1]:40123 -> 8082", 0 },
    { "Handling connection for 40123", 0 },
    { "Forwarding from 127.0.0.1:x", 0 },
    { "", 0 },
};

TEST_EACH(port_of_kubectl_is_in_one_line_of_its_output, LINES)
{
    ck_assert_uint_eq(ui_forwarded_port(LINES[_i].line), LINES[_i].port);
}

TEST_GROUP("addresses", arena_set_up, arena_tear_down);

static const struct {
    const char *url;
    bool is_usable, is_loopback;
} URLS[] = {
    { "http://127.0.0.1:8082", true, true },
    { "http://localhost", true, true },
    { "https://[::1]:8082/fleet", true, true },
    { "https://fleet.example/propeller/", true, false },
    { "http://127.0.0.1.example:8082", true, false },
    { "http://localhost.example", true, false },
    { "http://[::1", true, false },
    { "http://127.0.0.1:8082@evil.example", false, true },
    { "http://evil.example/#token=x", false, false },
    { "http://evil.example/?a", false, false },
    { "http://a b", false, false },
    { "http://a\n", false, false },
    { "http://", false, false },
    { "http:///x", false, false },
    { "file:///etc/passwd", false, false },
    { "127.0.0.1:8082", false, true },
    { "", false, false },
};

TEST_EACH(only_plain_urls_are_opened_and_only_those_of_this_machine_get_tokens, URLS)
{
    ck_assert_int_eq(ui_url_is_usable(URLS[_i].url), URLS[_i].is_usable);
    ck_assert_int_eq(ui_url_is_loopback(URLS[_i].url), URLS[_i].is_loopback);
}

TEST(url_that_is_too_long_is_not_usable)
{
    char url[UI_MAX_URL + 2];

    memset(url, 'a', sizeof(url));
    memcpy(url, "http://", 7);
    url[UI_MAX_URL + 1] = '\0';
    ck_assert(!ui_url_is_usable(url));
    url[UI_MAX_URL] = '\0';
    ck_assert(ui_url_is_usable(url));
}

TEST(page_of_a_standalone_server_is_on_its_host)
{
    ck_assert_str_eq(ui_standalone_url(arena, "https://127.0.0.1:6443"), "http://127.0.0.1:8082");
    ck_assert_str_eq(ui_standalone_url(arena, "https://[::1]:6443/"), "http://[::1]:8082");
    ck_assert_str_eq(ui_standalone_url(arena, "https://gateway"), "http://gateway:8082");
}

TEST(token_is_encoded_in_the_fragment)
{
    ck_assert_str_eq(ui_login_url(arena, "http://127.0.0.1:1", "aZ9-._~+/=&#%\x7f"),
                     "http://127.0.0.1:1/#token=aZ9-._~%2B%2F%3D%26%23%25%7F");
    ck_assert_str_eq(ui_login_url(arena, "http://127.0.0.1:1/x/", "t"),
                     "http://127.0.0.1:1/x/#token=t");
}

static struct child child;
static const char *lines;

static void child_set_up(void)
{
    arena_set_up();
    child = (struct child)CHILD_NONE;
    lines = "";
}

TEST_GROUP("child", child_set_up, arena_tear_down);

static void take(void *ctx, const char *line)
{
    ck_assert_ptr_eq(ctx, &child);
    lines = arena_printf(arena, "%s[%s]", lines, line);
}

static void start(const char *script)
{
    const char *const argv[] = { "sh", "-c", script, NULL };

    ck_assert_msg(child_start(argv, &child, &err) == 0, "%s", err.message);
}

TEST(output_and_errors_come_as_lines)
{
    start("printf 'a\\n\\nb'; printf 'c\\nd' >&2");
    while (child_read(&child, take, &child))
        continue;
    ck_assert_str_eq(lines, "[a][bc][d]");
    child_end(&child);
}

TEST(line_that_is_too_long_is_cut)
{
    start("head -c 5000 /dev/zero | tr '\\0' x");
    while (child_read(&child, take, &child))
        continue;
    ck_assert_uint_lt(strlen(lines), 5000 + 5);
    ck_assert_ptr_nonnull(strstr(lines, "x][x"));
    child_end(&child);
}

TEST(signals_of_a_child_are_those_of_a_new_program)
{
    sigset_t set;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    start("grep ^SigBlk /proc/self/status; kill -s PIPE $$; echo alive");
    while (child_read(&child, take, &child))
        continue;
    ck_assert_str_eq(lines, "[SigBlk:\t0000000000000000]");
    child_end(&child);
}

TEST(child_that_ignores_the_request_to_end_is_killed)
{
    int status;

    start("trap '' TERM; echo ready; while :; do sleep 0.1; done");
    ck_assert(child_read(&child, take, &child));
    ck_assert_str_eq(lines, "[ready]");
    ck_assert(!child_has_ended(&child, &status));
    pid_t pid = child.pid;
    child_end(&child);
    ck_assert_int_eq(kill(pid, 0), -1);
    child_end(&child); /* nothing is left */
}

TEST(program_that_is_not_in_the_path_is_named)
{
    const char *const argv[] = { "no-such-program-here", NULL };

    ck_assert_int_eq(child_start(argv, &child, &err), -ERROR_NOT_FOUND);
    ck_assert_str_eq(err.message, "program 'no-such-program-here' is not in $PATH");
    ck_assert_int_eq(child_start_apart(argv, &child, &err), -ERROR_NOT_FOUND);
    child_end(&child);
}
