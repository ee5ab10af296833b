/* Kubeconfigs of a person at a command line: several files, exec plug-ins, other identities. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/str.h"
#include "common/json/json.h"
#include "common/kube/exec_credential.h"
#include "common/tests/config_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

static struct kube_config_person person;

static void set_up(void)
{
    config_setup();
    person = (struct kube_config_person){ .context = NULL };
}

static int load_person(const char *path)
{
    const struct kube_config_options options = {
        .path = path, .service_account_dir = dir, .clock = &now.clock, .person = &person
    };

    kube_config_destroy(config);
    config = NULL;
    return kube_config_load_with(&options, &config, &load_error);
}

static const char *headers(void)
{
    size_t len;
    char *const *lines = kube_config_headers(config, &len);
    const char *text = "";

    for (size_t i = 0; i < len; i++)
        text = arena_printf(arena, "%s%s;", text, lines[i]);
    return text;
}

TEST_GROUP("files", set_up, config_teardown);

#define FIRST                                                                                      \
    "current-context: one\n"                                                                       \
    "contexts: [{name: one, context: {cluster: c, user: u, namespace: lab}}]\n"                    \
    "users: [{name: u, user: {token: first}}]\n"
#define SECOND                                                                                     \
    "current-context: two\n"                                                                       \
    "contexts: [{name: one, context: {cluster: d}}, {name: two, context: {cluster: c, user: "      \
    "v}}]\n"                                                                                       \
    "clusters: [{name: c, cluster: {" SERVER ", certificate-authority: ca.pem}}]\n"                \
    "users: [{name: u, user: {token: second}}, {name: v, user: {token: other}}]\n"

static void two_files(void)
{
    const char *inner = arena_printf(arena, "%s/inner", dir);
    const char *first = temp_file(arena, dir, "first", FIRST);

    ck_assert_int_eq(mkdir(inner, 0700), 0);
    temp_file(arena, inner, "ca.pem", CERT);
    const char *second = temp_file(arena, inner, "second", SECOND);
    const char *empty = temp_file(arena, dir, "empty", "\n");
    setenv("KUBECONFIG", arena_printf(arena, ":%s/absent:%s:%s:%s", dir, empty, first, second), 1);
}

TEST(the_first_file_wins_and_missing_ones_are_skipped)
{
    two_files();
    ck_assert_msg(load_person(NULL) == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_server(config), "https://198.51.100.1:6443");
    ck_assert_str_eq(kube_config_namespace(config), "lab");
    ck_assert_str_eq(kube_config_ca(config), CERT); /* beside the file that has the cluster */
    ck_assert_str_eq(kube_config_source(config),
                     arena_printf(arena, "%s/empty:%s/first:%s/inner/second", dir, dir, dir));
    check_token("first");
}

TEST(a_server_reads_the_first_file_alone)
{
    setenv("KUBECONFIG",
           arena_printf(arena, "%s/absent:%s", dir, temp_file(arena, dir, "a", FIRST)), 1);
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(load_error.message, "absent"));
}

TEST(the_command_line_replaces_what_the_files_say)
{
    static const char *const GROUPS[] = { "edge", "lab" };

    two_files();
    person = (struct kube_config_person){ .context = "two",
                                          .user = "u",
                                          .server = "https://127.0.0.1:1",
                                          .ns = "other",
                                          .as = "eve",
                                          .as_uid = "7",
                                          .as_groups = GROUPS,
                                          .as_group_count = 2,
                                          .insecure = true };
    ck_assert_msg(load_person(NULL) == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_server(config), "https://127.0.0.1:1");
    ck_assert_str_eq(kube_config_namespace(config), "other");
    ck_assert_ptr_null(kube_config_ca(config));
    ck_assert(kube_config_insecure(config));
    check_token("first");
    ck_assert_str_eq(headers(), "Impersonate-User: eve;Impersonate-Uid: 7;"
                                "Impersonate-Group: edge;Impersonate-Group: lab;");
}

TEST(server_and_token_need_no_file)
{
    person = (struct kube_config_person){ .server = "https://127.0.0.1:1", .token = "mine" };
    ck_assert_msg(load_person(NULL) == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_namespace(config), "default");
    check_token("mine");
}

static void in_a_pod(void)
{
    setenv("KUBERNETES_SERVICE_HOST", "198.51.100.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
    temp_file(arena, dir, "ca.crt", CERT);
    temp_file(arena, dir, "token", "of-the-pod");
    temp_file(arena, dir, "namespace", "lab");
}

TEST(the_command_line_replaces_what_the_pod_says)
{
    in_a_pod();
    ck_assert_msg(load_person(NULL) == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_namespace(config), "lab");
    check_token("of-the-pod");

    person = (struct kube_config_person){
        .ns = "other", .token = "mine", .as = "eve", .insecure = true
    };
    ck_assert_msg(load_person(NULL) == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_namespace(config), "other");
    ck_assert_ptr_null(kube_config_ca(config));
    ck_assert(kube_config_insecure(config));
    check_token("mine");
    ck_assert_str_eq(headers(), "Impersonate-User: eve;");
}

TEST(entries_of_a_kubeconfig_are_refused_where_there_is_none)
{
    in_a_pod();
    person.context = "two";
    ck_assert_int_eq(load_person(NULL), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(load_error.message, "there is no kubeconfig"));
    person = (struct kube_config_person){ .ns = "Not a name" };
    ck_assert_int_eq(load_person(NULL), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(load_error.message, "--namespace"));
}

TEST(without_any_file_the_message_says_how_to_name_one)
{
    ck_assert_int_eq(load_person(NULL), -ERROR_INVALID);
    ck_assert_str_eq(load_error.message, "no kubeconfig: no file of KUBECONFIG exists, nor "
                                         "~/.kube/config (--kubeconfig names one)");
}

static const struct {
    struct kube_config_person person;
    const char *message; /* its end */
} REFUSED[] = {
    { { .context = "three" }, "no context 'three' in 'contexts'" },
    { { .cluster = "e" }, "no cluster 'e' in 'clusters'" },
    { { .user = "w" }, "no user 'w' in 'users'" },
    { { .server = "ftp://x" }, "'server' must be http(s)://host[:port][/path]" },
    { { .token = "a b" }, "--token has blanks or other characters that no token has" },
    { { .server = "http://example.org", .token = "t" },
      "is not https, so that everybody on the way could read it" },
    { { .as_uid = "7" }, "groups or a uid without a user to act as (--as)" },
    { { .as = "eve\r\nX: y" }, "Impersonate-User: only printable ASCII may be sent" },
    { { .ns = "A/b" }, "'namespace' is not a namespace's name" },
};

TEST_EACH(what_the_command_line_cannot_ask_for_is_refused, REFUSED)
{
    two_files();
    person = REFUSED[_i].person;
    ck_assert_int_eq(load_person(NULL), -ERROR_INVALID);
    ck_assert_msg(str_has_suffix(load_error.message, REFUSED[_i].message), "%s",
                  load_error.message);
}

/* A file whose user has these fields. */
static const char *file_with(const char *user)
{
    return temp_file(arena, dir, "config",
                     arena_printf(arena,
                                  "current-context: x\n"
                                  "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                  "clusters: [{name: c, cluster: {" SERVER "}}]\n"
                                  "users: [{name: u, user: {%s}}]\n",
                                  user));
}

TEST(a_file_may_name_whom_to_act_as)
{
    ck_assert_msg(load_person(file_with("as: eve, as-groups: [lab]")) == 0, "%s",
                  load_error.message);
    ck_assert_str_eq(headers(), "Impersonate-User: eve;Impersonate-Group: lab;");
}

static const struct {
    const char *file, *as, *as_uid;
} EMPTY[] = {
    { "as: eve", "", NULL },
    { "as: eve", "  ", NULL },
    { "as: ' '", NULL, NULL },
    { "as: eve", NULL, "" },
    { "as: eve, as-groups: [' ']", NULL, NULL },
};

TEST_EACH(an_empty_name_to_act_as_is_no_way_to_act_as_oneself, EMPTY)
{
    person.as = EMPTY[_i].as;
    person.as_uid = EMPTY[_i].as_uid;
    ck_assert_int_eq(load_person(file_with(EMPTY[_i].file)), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(load_error.message, "the name to act as is empty"));
}

TEST_GROUP("exec", set_up, config_teardown);

#define EXEC(mode)                                                                                 \
    "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, " mode ", args: "
#define NEVER "interactiveMode: Never"

/* A plug-in that prints a token which counts its runs, and leaves what it was told. */
static const char *counting(const char *status)
{
    const char *script =
        temp_file(arena, dir, "login",
                  arena_printf(arena,
                               "echo x >>%s/runs; printf %%s \"$KUBERNETES_EXEC_INFO\" >%s/info\n"
                               "printf '{\"apiVersion\": \"client.authentication.k8s.io/v1\", "
                               "\"kind\": \"ExecCredential\", \"status\": {%s}}' \"$PREFIX\" "
                               "$(wc -l <%s/runs)\n",
                               dir, dir, status, dir));
    return file_with(
        arena_printf(arena,
                     EXEC(NEVER ", provideClusterInfo: true") "[%s], "
                                                              "env: [{name: PREFIX, value: run}]}",
                     script));
}

TEST(the_token_of_a_plugin_is_used_until_it_is_refused)
{
    ck_assert_msg(load_person(counting("\"token\": \"%s-%s\"")) == 0, "%s", load_error.message);
    check_token("run-1");
    kube_config_refuse_token(config, "another");
    check_token("run-1");
    kube_config_refuse_token(config, "run-1");
    check_token("run-2");
}

/* This one gives as its token whether it ignores signal 13, SIGPIPE. */
TEST(a_plugin_has_the_signals_of_a_program_that_a_shell_starts)
{
    const char *script =
        temp_file(arena, dir, "signals",
                  "printf '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": "
                  "\"ExecCredential\", \"status\": {\"token\": \"%s\"}}' "
                  "$((0x$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status) >> 12 & 1))\n");

    (void)signal(SIGPIPE, SIG_IGN); /* as main does */
    ck_assert_msg(load_person(file_with(arena_printf(arena, EXEC(NEVER) "[%s]}", script))) == 0,
                  "%s", load_error.message);
    check_token("0");
}

TEST(a_token_that_has_expired_is_renewed)
{
    ck_assert_int_eq(load_person(counting("\"expirationTimestamp\": \"2020-01-01T00:00:00Z\", "
                                          "\"token\": \"%s-%s\"")),
                     0);
    check_token("run-2");
}

#define CERTIFICATE                                                                                \
    "\"clientCertificateData\": \"-----BEGIN CERTIFICATE-----\\\\nYQ==\\\\n"                       \
    "-----END CERTIFICATE-----\", \"clientKeyData\": \"-----BEGIN PRIVATE KEY-----\\\\nYQ==\\\\n"  \
    "-----END PRIVATE KEY-----\""

TEST(a_refused_token_beside_a_certificate_is_renewed)
{
    ck_assert_msg(load_person(counting(CERTIFICATE ", \"token\": \"%s-%s\"")) == 0, "%s",
                  load_error.message);
    check_token("run-1");
    kube_config_refuse_token(config, "run-1");
    check_token("run-2");
}

TEST(a_plugin_is_told_for_which_server)
{
    const char *text = NULL;
    char info[512] = "";

    ck_assert_int_eq(load_person(counting("\"token\": \"%s-%s\"")), 0);
    FILE *file = fopen(arena_printf(arena, "%s/info", dir), "r");
    ck_assert_ptr_nonnull(file);
    text = fgets(info, sizeof(info), file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_str_eq(text, "{\"apiVersion\":\"client.authentication.k8s.io/v1\","
                           "\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false,"
                           "\"cluster\":{\"server\":\"https://198.51.100.1:6443\"}}}");
}

TEST(a_plugin_does_not_run_for_a_server_without_tls)
{
    person.server = "http://example.org";
    ck_assert_int_eq(load_person(counting("\"token\": \"%s-%s\"")), -ERROR_INVALID);
    ck_assert(str_has_suffix(load_error.message, "everybody on the way could read its token"));
    ck_assert_ptr_null(fopen(arena_printf(arena, "%s/runs", dir), "r"));
}

TEST(a_token_of_the_command_line_needs_no_plugin)
{
    person.token = "mine";
    ck_assert_int_eq(load_person(file_with(EXEC(NEVER) "[-c, 'exit 1']}")), 0);
    check_token("mine");
}

TEST(a_relative_command_stands_beside_its_kubeconfig)
{
    const char *path = file_with("exec: {apiVersion: client.authentication.k8s.io/v1beta1, "
                                 "command: ./absent, installHint: get it there}");

    ck_assert_int_eq(load_person(path), -ERROR_INVALID);
    ck_assert_str_eq(load_error.message,
                     arena_printf(arena,
                                  "kubeconfig '%s': user 'u': command '%s/./absent' of 'exec': No "
                                  "such file or directory: get it there",
                                  path, dir));
}

static const struct {
    const char *exec, *message; /* "kubeconfig '…': user 'u': " is before it */
} UNUSABLE[] = {
    { "exec: {command: sh}", "'exec.apiVersion' must be client.authentication.k8s.io/v1 or "
                             "client.authentication.k8s.io/v1beta1" },
    { EXEC("interactiveMode: Sometimes") "[]}",
      "'exec.interactiveMode' must be Never, IfAvailable or Always" },
    { EXEC("interactiveMode: Always") "[]}",
      "'exec.interactiveMode' is Always, but standard input is not a terminal" },
    { EXEC(NEVER) "[7]}", "'exec.args' must be strings" },
    { EXEC(NEVER) "[], env: [{name: A=B, value: c}]}",
      "'exec.env' must have a name and a value each" },
    { EXEC(NEVER) "[-c, 'exit 3']}", "command 'sh' of 'exec': it ended with status 3" },
    { EXEC(NEVER) "[-c, 'kill -9 $$']}", "command 'sh' of 'exec': it was ended by a signal" },
    { EXEC(NEVER) "[-c, 'echo secret']}", "command 'sh' of 'exec': its output is not JSON" },
    { EXEC(NEVER) "[-c, 'head -c 2000000 /dev/zero']}",
      "command 'sh' of 'exec': it printed more than 1 MiB" },
};

TEST_EACH(an_unusable_plugin_is_refused_by_field_or_by_what_it_did, UNUSABLE)
{
    ck_assert_int_eq(load_person(file_with(UNUSABLE[_i].exec)), -ERROR_INVALID);
    ck_assert_msg(str_has_suffix(load_error.message,
                                 arena_printf(arena, "user 'u': %s", UNUSABLE[_i].message)),
                  "%s", load_error.message);
}

#define V1 "client.authentication.k8s.io/v1"
#define REPLY(status)                                                                              \
    "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":{" status "}}"
static const struct {
    const char *text, *message; /* NULL: it is accepted */
} REPLIES[] = {
    { REPLY("\"token\":\"t\""), NULL },
    { REPLY("\"token\":\"t\",\"expirationTimestamp\":\"2030-01-01T00:00:00+01:00\""), NULL },
    { "[]", "its output is not an ExecCredential" },
    { "{\"apiVersion\":\"" V1 "beta1\",\"kind\":\"ExecCredential\"}",
      "its output is not of apiVersion " V1 },
    { REPLY(""), "its output has neither a token nor a certificate" },
    { REPLY("\"token\":\"a\\nb\""), "status.token has characters that no token has" },
    { REPLY("\"token\":\"t\",\"expirationTimestamp\":\"soon\""),
      "status.expirationTimestamp is not RFC 3339" },
    { REPLY("\"clientKeyData\":\"x\",\"token\":\"t\""),
      "its output has only one of clientCertificateData and clientKeyData" },
    { REPLY("\"clientKeyData\":\"x\",\"clientCertificateData\":\"y\""),
      "status.clientCertificateData: it is not a certificate in PEM" },
};

TEST_EACH(a_reply_is_checked, REPLIES)
{
    struct exec_reply reply;
    int r = exec_reply_parse(arena, REPLIES[_i].text, strlen(REPLIES[_i].text), V1, &reply,
                             &load_error);

    ck_assert_int_eq(r, REPLIES[_i].message ? -ERROR_INVALID : 0);
    if (REPLIES[_i].message)
        ck_assert_str_eq(load_error.message, REPLIES[_i].message);
    else
        ck_assert_str_eq(reply.token, "t");
}

TEST(a_certificate_of_a_plugin_replaces_that_of_the_file)
{
    const char *text = temp_file(
        arena, dir, "reply",
        "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":"
        "{\"clientCertificateData\":\"-----BEGIN CERTIFICATE-----\\nYQ==\\n"
        "-----END CERTIFICATE-----\\n\",\"clientKeyData\":\"-----BEGIN PRIVATE KEY-----\\nYQ==\\n"
        "-----END PRIVATE KEY-----\\n\"}}");

    ck_assert_msg(
        load_person(file_with(arena_printf(arena, EXEC(NEVER) "[-c, 'cat %s']}", text))) == 0, "%s",
        load_error.message);
    ck_assert(str_has_prefix(kube_config_client_cert(config), "-----BEGIN CERT"));
    ck_assert(str_has_prefix(kube_config_client_key(config), "-----BEGIN PRIV"));
    check_token(NULL);
}
