#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/kube/config.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

/* Fabricated: "not a key" and "not a certificate" between the marks. */
#define CERT "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----\n"
#define CERT_DATA                                                                                  \
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmJtOTBJR0VnWTJWeWRHbG1hV05oZEdVPQotLS0tLUVORCBDRVJUSUZJ" \
    "Q0FURS0tLS0tCg=="
#define KEY_DATA                                                                                   \
    "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCmJtOTBJR0VnYTJWNQotLS0tLUVORCBQUklWQVRFIEtFWS0tLS0tCg=="

static struct arena *arena;
static const char *dir;
static struct kube_config *config;
static struct error err;
static int64_t now_ms;

static int64_t fake_now(void *ctx UNUSED)
{
    return now_ms;
}
static const struct clock CLOCK = { .monotonic_ms = fake_now, .boot_ms = fake_now };

static void setup(void)
{
    json_init();
    arena = arena_create();
    dir = temp_dir(arena);
    config = NULL;
    err = (struct error){ 0 };
    now_ms = 0;
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    setenv("HOME", dir, 1);
}

static void teardown(void)
{
    kube_config_destroy(config);
    arena_destroy(arena);
}

static int load(const char *path)
{
    struct kube_config_options options = { .path = path,
                                           .service_account_dir = dir,
                                           .clock = &CLOCK };
    return kube_config_load_with(&options, &config, &err);
}

/* A kubeconfig whose cluster and user have these fields, in YAML's flow style. */
static int load_with(const char *cluster, const char *user)
{
    const char *text = arena_printf(arena,
                                    "apiVersion: v1\n"
                                    "kind: Config\n"
                                    "current-context: ctx\n"
                                    "contexts: [{name: ctx, context: {cluster: c, user: u}}]\n"
                                    "clusters: [{name: c, cluster: {%s}}]\n"
                                    "users: [{name: u, user: {%s}}]\n",
                                    cluster, user);
    return load(temp_file(arena, dir, "config", text));
}

#define SERVER "server: 'https://198.51.100.1:6443'"

static void check_token(const char *expected)
{
    char *token = NULL;
    ck_assert_int_eq(kube_config_token(config, &token, &err), 0);
    ck_assert_msg(str_equal(token, expected), "%s", token ? token : "none");
    free(token);
}

START_TEST(everything_in_the_file_is_there)
{
    const char *path = temp_file(arena, dir, "config",
                                 "apiVersion: v1\n"
                                 "current-context: b\n"
                                 "contexts:\n"
                                 "- name: a\n"
                                 "  context: {cluster: other, user: other}\n"
                                 "- name: b\n"
                                 "  context: {cluster: c, user: u, namespace: factory}\n"
                                 "clusters:\n"
                                 "- name: c\n"
                                 "  cluster:\n"
                                 "    server: https://api.example.org:6443/prefix\n"
                                 "    certificate-authority-data: " CERT_DATA "\n"
                                 "    tls-server-name: kubernetes\n"
                                 "    proxy-url: socks5://proxy.example.org:1080\n"
                                 "users:\n"
                                 "- name: u\n"
                                 "  user:\n"
                                 "    client-certificate-data: " CERT_DATA "\n"
                                 "    client-key-data: " KEY_DATA "\n"
                                 "    token: abc.def\n"
                                 "preferences: {}\n");
    ck_assert_msg(load(path) == 0, "%s", err.message);

    ck_assert_str_eq(kube_config_source(config), path);
    ck_assert_str_eq(kube_config_server(config), "https://api.example.org:6443/prefix");
    ck_assert_str_eq(kube_config_namespace(config), "factory");
    ck_assert_str_eq(kube_config_ca(config), CERT);
    ck_assert_str_eq(kube_config_client_cert(config), CERT);
    ck_assert_str_eq(kube_config_client_key(config), KEY);
    ck_assert_str_eq(kube_config_tls_server_name(config), "kubernetes");
    ck_assert_str_eq(kube_config_proxy(config), "socks5://proxy.example.org:1080");
    ck_assert(!kube_config_insecure(config));
    check_token("abc.def");
}
END_TEST

START_TEST(what_is_not_given_is_nothing)
{
    ck_assert_msg(load_with(SERVER, "") == 0, "%s", err.message);
    ck_assert_str_eq(kube_config_namespace(config), "default");
    ck_assert_ptr_null(kube_config_ca(config));
    ck_assert_ptr_null(kube_config_client_cert(config));
    ck_assert_ptr_null(kube_config_client_key(config));
    ck_assert_ptr_null(kube_config_tls_server_name(config));
    ck_assert_ptr_null(kube_config_proxy(config));
    check_token(NULL);
}
END_TEST

START_TEST(insecure_is_understood)
{
    ck_assert_int_eq(load_with(SERVER ", insecure-skip-tls-verify: true", ""), 0);
    ck_assert(kube_config_insecure(config));
}
END_TEST

START_TEST(relative_files_are_beside_the_kubeconfig)
{
    temp_file(arena, dir, "ca.pem", CERT);
    temp_file(arena, dir, "key.pem", "Some words\n" KEY);
    const char *absolute = temp_file(arena, dir, "cert.pem", CERT CERT);
    temp_file(arena, dir, "token", " tok\n");
    const char *user = arena_printf(
        arena, "client-certificate: %s, client-key: key.pem, tokenFile: token, token: loses",
        absolute);

    ck_assert_msg(load_with(SERVER ", certificate-authority: ca.pem", user) == 0, "%s",
                  err.message);
    ck_assert_str_eq(kube_config_ca(config), CERT);
    ck_assert_str_eq(kube_config_client_cert(config), CERT CERT);
    ck_assert_str_eq(kube_config_client_key(config), "Some words\n" KEY);
    check_token("tok");
}
END_TEST

START_TEST(data_wins_over_files_and_may_have_line_breaks)
{
    const char *cluster = arena_printf(
        arena,
        SERVER ", certificate-authority: /nowhere, certificate-authority-data: \"%.40s\\n%s\"",
        CERT_DATA, &CERT_DATA[40]);
    ck_assert_msg(load_with(cluster, "") == 0, "%s", err.message);
    ck_assert_str_eq(kube_config_ca(config), CERT);
}
END_TEST

static const struct {
    const char *cluster, *user;
    const char *message; /* after "kubeconfig '<file>': " */
} REFUSED[] = {
    { "", "", "cluster 'c': 'server' must be http(s)://host[:port][/path]" },
    { "server: 7", "", "cluster 'c': 'server' must be a string" },
    { "server: ftp://x", "", "cluster 'c': 'server' must be http(s)://host[:port][/path]" },
    { "server: 'https://'", "", "cluster 'c': 'server' must be http(s)://host[:port][/path]" },
    { "server: 'https://u:hunter2@x'", "",
      "cluster 'c': 'server' must be http(s)://host[:port][/path]" },
    { "server: 'https://x y'", "", "cluster 'c': 'server' must be http(s)://host[:port][/path]" },
    { SERVER ", proxy-url: 'http://u:hunter2@x'", "",
      "cluster 'c': 'proxy-url' must be http(s):// or socks5://host[:port], without a password" },
    { SERVER ", insecure-skip-tls-verify: 'true'", "",
      "cluster 'c': 'insecure-skip-tls-verify' must be true or false" },
    { SERVER ", insecure-skip-tls-verify: true, certificate-authority-data: " CERT_DATA, "",
      "cluster 'c': 'certificate-authority' and 'insecure-skip-tls-verify' exclude each other" },
    { SERVER ", certificate-authority-data: 'a$b'", "",
      "cluster 'c': 'certificate-authority-data' is not base64" },
    { SERVER ", certificate-authority-data: " KEY_DATA, "",
      "cluster 'c': 'certificate-authority-data' is not a certificate in PEM" },
    { SERVER ", certificate-authority-data: AAAA", "",
      "cluster 'c': 'certificate-authority-data' is not a certificate in PEM" },
    { SERVER ", certificate-authority: /nowhere/ca", "",
      "cluster 'c': 'certificate-authority': file '/nowhere/ca': No such file or directory" },
    { SERVER ", certificate-authority: /", "",
      "cluster 'c': 'certificate-authority': file '/': Is a directory" },
    { SERVER, "client-certificate-data: " CERT_DATA,
      "user 'u': 'client-certificate' without 'client-key'" },
    { SERVER, "client-key-data: " KEY_DATA, "user 'u': 'client-key' without 'client-certificate'" },
    { SERVER, "client-key-data: " CERT_DATA ", client-certificate-data: " CERT_DATA,
      "user 'u': 'client-key-data' is not a private key in PEM" },
    { SERVER, "exec: {command: x}", "user 'u': 'exec' is not supported" },
    { SERVER, "auth-provider: {name: x}", "user 'u': 'auth-provider' is not supported" },
    { SERVER, "username: x, password: hunter2", "user 'u': 'username' is not supported" },
    { SERVER, "token: x, as: admin", "user 'u': 'as' is not supported" },
    { SERVER, "as-groups: [x]", "user 'u': 'as-groups' is not supported" },
    { SERVER, "token: 'hunter2 x'",
      "user 'u': 'token' has blanks or other characters that no token has" },
    { SERVER, "token: 12", "user 'u': 'token' must be a string" },
    { SERVER, "tokenFile: /nowhere/t",
      "user 'u': 'tokenFile': file '/nowhere/t': No such file or directory" },
    { "server: 'http://api.example.org'", "token: hunter2",
      "user 'u': a token, but the 'server' of cluster 'c' is not https, so that everybody on the "
      "way could read it" },
    { "server: 'http://localhost.example.org'", "token: hunter2",
      "user 'u': a token, but the 'server' of cluster 'c' is not https, so that everybody on the "
      "way could read it" },
};

START_TEST(a_bad_field_is_refused_by_file_and_name_without_its_content)
{
    ck_assert_int_eq(load_with(REFUSED[_i].cluster, REFUSED[_i].user), -ERROR_INVALID);
    ck_assert_str_eq(err.message,
                     arena_printf(arena, "kubeconfig '%s/config': %s", dir, REFUSED[_i].message));
    ck_assert_ptr_null(strstr(err.message, "hunter2"));
    ck_assert_ptr_null(config);
}
END_TEST

START_TEST(a_key_with_a_passphrase_is_refused)
{
    temp_file(arena, dir, "key.pem",
              "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    ck_assert_int_eq(load_with(SERVER, "client-key: key.pem, client-certificate-data: " CERT_DATA),
                     -ERROR_INVALID);
    ck_assert(str_has_suffix(err.message, "key.pem' is a private key with a passphrase, which is "
                                          "not supported"));
}
END_TEST

START_TEST(http_with_a_token_is_fine_on_this_machine)
{
    ck_assert_int_eq(load_with("server: 'http://127.0.0.1:8001/'", "token: x"), 0);
}
END_TEST

#define HEAD "clusters: [{name: c, cluster: {" SERVER "}}]\n"

static const struct {
    const char *text, *message;
} DOCUMENTS[] = {
    { "{}", "'current-context' is not set" },
    { "[]", "'current-context' is not set" },
    { HEAD, "'current-context' is not set" },
    { "current-context: [x]", "top level: 'current-context' must be a string" },
    { "current-context: x", "no context 'x' in 'contexts'" },
    { "current-context: x\ncontexts: {}\n", "no context 'x' in 'contexts'" },
    { "current-context: x\ncontexts: x\n", "'contexts' must be a list" },
    { "current-context: x\ncontexts: [7, {name: x, context: 7}]",
      "'context' of context 'x' must be an object" },
    { "current-context: x\ncontexts: [{name: x}]", "context 'x': 'cluster' is not set" },
    { "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]",
      "no cluster 'c' in 'clusters'" },
    { HEAD "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]",
      "no user 'u' in 'users'" },
    { HEAD "current-context: x\ncontexts: [{name: x, context: {cluster: c, namespace: A/b}}]",
      "context 'x': 'namespace' is not a namespace's name" },
};

START_TEST(a_document_that_leads_nowhere_is_refused)
{
    ck_assert_int_eq(load(temp_file(arena, dir, "config", DOCUMENTS[_i].text)), -ERROR_INVALID);
    ck_assert_str_eq(err.message,
                     arena_printf(arena, "kubeconfig '%s/config': %s", dir, DOCUMENTS[_i].message));
}
END_TEST

START_TEST(what_is_not_yaml_is_refused)
{
    ck_assert_int_eq(load(temp_file(arena, dir, "config", "a: [b\nc: }")), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "config': not YAML: "));
}
END_TEST

START_TEST(a_file_over_the_limit_is_refused)
{
    char *text = arena_alloc(arena, (1 << 20) + 2, 1);
    memset(text, '#', (1 << 20) + 1);
    const char *path = temp_file(arena, dir, "config", text);
    ck_assert_int_eq(load(path), -ERROR_INVALID);
    ck_assert_str_eq(err.message, arena_printf(arena,
                                               "kubeconfig: file '%s' is larger than "
                                               "1048576 bytes",
                                               path));
}
END_TEST

START_TEST(a_context_without_a_user_is_nobody)
{
    const char *text =
        HEAD "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: ''}}]";
    ck_assert_msg(load(temp_file(arena, dir, "config", text)) == 0, "%s", err.message);
    check_token(NULL);
}
END_TEST

START_TEST(the_file_is_looked_for_in_order)
{
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert_str_eq(err.message, arena_printf(arena,
                                               "kubeconfig: file '%s/.kube/config': No such "
                                               "file or directory",
                                               dir));
    unsetenv("HOME");
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "KUBECONFIG"));

    setenv("KUBERNETES_SERVICE_HOST", "198.51.100.1", 1);
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert_str_eq(err.message,
                     "in-cluster configuration: KUBERNETES_SERVICE_PORT is not a port number");

    ck_assert_int_eq(load_with(SERVER, ""), 0);
    setenv("KUBECONFIG", arena_printf(arena, ":%s:/nowhere", kube_config_source(config)), 1);
    kube_config_destroy(TAKE(config));
    ck_assert_int_eq(kube_config_load(NULL, &config, &err), 0);
    ck_assert_str_eq(kube_config_source(config), arena_printf(arena, "%s/config", dir));
}
END_TEST

static void in_cluster(const char *host)
{
    setenv("KUBERNETES_SERVICE_HOST", host, 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    temp_file(arena, dir, "ca.crt", CERT);
    temp_file(arena, dir, "token", "first\n");
}

START_TEST(a_pod_finds_its_server_and_its_account)
{
    in_cluster("10.0.0.1");
    temp_file(arena, dir, "namespace", "factory\n");
    ck_assert_msg(load(NULL) == 0, "%s", err.message);
    ck_assert_str_eq(kube_config_source(config), "in-cluster");
    ck_assert_str_eq(kube_config_server(config), "https://10.0.0.1:443");
    ck_assert_str_eq(kube_config_namespace(config), "factory");
    ck_assert_str_eq(kube_config_ca(config), CERT);
    check_token("first");
}
END_TEST

START_TEST(an_ipv6_server_has_brackets_and_the_namespace_may_be_missing)
{
    in_cluster("2001:db8::1");
    ck_assert_msg(load(NULL) == 0, "%s", err.message);
    ck_assert_str_eq(kube_config_server(config), "https://[2001:db8::1]:443");
    ck_assert_str_eq(kube_config_namespace(config), "default");
}
END_TEST

static const struct {
    const char *host, *port, *missing, *message;
} BAD_PODS[] = {
    { "10.0.0.1/x", "443", NULL, "KUBERNETES_SERVICE_HOST is not a host" },
    { "10.0.0.1", "70000", NULL, "KUBERNETES_SERVICE_PORT is not a port number" },
    { "10.0.0.1", "443", "ca.crt", "/ca.crt': No such file or directory" },
    { "10.0.0.1", "443", "token", "/token': No such file or directory" },
};

START_TEST(a_pod_without_its_account_is_told_what_is_missing)
{
    in_cluster(BAD_PODS[_i].host);
    setenv("KUBERNETES_SERVICE_PORT", BAD_PODS[_i].port, 1);
    if (BAD_PODS[_i].missing)
        ck_assert_int_eq(unlink(arena_printf(arena, "%s/%s", dir, BAD_PODS[_i].missing)), 0);
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert(str_has_prefix(err.message, "in-cluster configuration: "));
    ck_assert(str_has_suffix(err.message, BAD_PODS[_i].message));
}
END_TEST

START_TEST(a_token_file_is_read_again_after_a_second)
{
    in_cluster("10.0.0.1");
    now_ms = 5000;
    ck_assert_int_eq(load(NULL), 0);
    check_token("first");
    temp_file(arena, dir, "token", "second");
    now_ms = 5999;
    check_token("first");
    now_ms = 6000;
    check_token("second");
}
END_TEST

START_TEST(an_unreadable_token_file_leaves_the_last_token)
{
    static const char *const BAD[] = { "", "  \n", "two words", "bad\001" };
    in_cluster("10.0.0.1");
    ck_assert_int_eq(load(NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        temp_file(arena, dir, "token", BAD[i]);
        now_ms += 1000;
        check_token("first");
    }
    ck_assert_int_eq(unlink(arena_printf(arena, "%s/token", dir)), 0);
    now_ms += 1000;
    check_token("first");
}
END_TEST

START_TEST(a_refused_token_is_read_again_at_once)
{
    in_cluster("10.0.0.1");
    ck_assert_int_eq(load(NULL), 0);
    temp_file(arena, dir, "token", "second");
    check_token("first");
    kube_config_refuse_token(config, "somebody else's");
    check_token("first");
    kube_config_refuse_token(config, "first");
    check_token("second");

    char *token;
    ck_assert_int_eq(unlink(arena_printf(arena, "%s/token", dir)), 0);
    kube_config_refuse_token(config, "second");
    ck_assert_int_eq(kube_config_token(config, &token, &err), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(err.message,
                     arena_printf(arena, "file '%s/token': No such file or directory", dir));
    temp_file(arena, dir, "token", "third");
    check_token("third");
}
END_TEST

START_TEST(a_token_of_the_kubeconfig_itself_stays)
{
    ck_assert_int_eq(load_with(SERVER, "token: fixed"), 0);
    kube_config_refuse_token(config, "fixed");
    check_token("fixed");
}
END_TEST

START_TEST(errors_need_not_be_wanted)
{
    struct kube_config *ret = NULL;
    ck_assert_int_eq(kube_config_load("/nowhere/config", &ret, NULL), -ERROR_INVALID);
    ck_assert_ptr_null(ret);
    kube_config_destroy(NULL);
}
END_TEST

static void add_kubeconfig_tests(Suite *suite)
{
    TCase *c = tcase_create("kubeconfig");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, everything_in_the_file_is_there);
    tcase_add_test(c, what_is_not_given_is_nothing);
    tcase_add_test(c, insecure_is_understood);
    tcase_add_test(c, relative_files_are_beside_the_kubeconfig);
    tcase_add_test(c, data_wins_over_files_and_may_have_line_breaks);
    tcase_add_loop_test(c, a_bad_field_is_refused_by_file_and_name_without_its_content, 0,
                        ARRAY_LEN(REFUSED));
    tcase_add_test(c, a_key_with_a_passphrase_is_refused);
    tcase_add_test(c, http_with_a_token_is_fine_on_this_machine);
    tcase_add_loop_test(c, a_document_that_leads_nowhere_is_refused, 0, ARRAY_LEN(DOCUMENTS));
    tcase_add_test(c, what_is_not_yaml_is_refused);
    tcase_add_test(c, a_file_over_the_limit_is_refused);
    tcase_add_test(c, a_context_without_a_user_is_nobody);
    tcase_add_test(c, the_file_is_looked_for_in_order);
    tcase_add_test(c, errors_need_not_be_wanted);
    suite_add_tcase(suite, c);
}

static void add_pod_tests(Suite *suite)
{
    TCase *c = tcase_create("pod");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_pod_finds_its_server_and_its_account);
    tcase_add_test(c, an_ipv6_server_has_brackets_and_the_namespace_may_be_missing);
    tcase_add_loop_test(c, a_pod_without_its_account_is_told_what_is_missing, 0,
                        ARRAY_LEN(BAD_PODS));
    tcase_add_test(c, a_token_file_is_read_again_after_a_second);
    tcase_add_test(c, an_unreadable_token_file_leaves_the_last_token);
    tcase_add_test(c, a_refused_token_is_read_again_at_once);
    tcase_add_test(c, a_token_of_the_kubeconfig_itself_stays);
    suite_add_tcase(suite, c);
}

int main(void)
{
    Suite *suite = suite_create("config");
    add_kubeconfig_tests(suite);
    add_pod_tests(suite);
    return suite_run(suite);
}
