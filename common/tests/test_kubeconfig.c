#include <string.h>

#include "common/base/arena.h"
#include "common/base/str.h"
#include "common/tests/config_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

/* Fabricated: "not a key" between the marks. */
#define KEY "-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----\n"
#define CERT_DATA                                                                                  \
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmJtOTBJR0VnWTJWeWRHbG1hV05oZEdVPQotLS0tLUVORCBDRVJUSUZJ" \
    "Q0FURS0tLS0tCg=="
#define KEY_DATA                                                                                   \
    "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCmJtOTBJR0VnYTJWNQotLS0tLUVORCBQUklWQVRFIEtFWS0tLS0tCg=="

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

TEST_GROUP("kubeconfig", config_setup, config_teardown);

TEST(everything_in_the_file_is_there)
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
    ck_assert_msg(load(path) == 0, "%s", load_error.message);

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

TEST(what_is_not_given_is_nothing)
{
    ck_assert_msg(load_with(SERVER, "") == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_namespace(config), "default");
    ck_assert_ptr_null(kube_config_ca(config));
    ck_assert_ptr_null(kube_config_client_cert(config));
    ck_assert_ptr_null(kube_config_client_key(config));
    ck_assert_ptr_null(kube_config_tls_server_name(config));
    ck_assert_ptr_null(kube_config_proxy(config));
    check_token(NULL);
}

TEST(insecure_is_understood)
{
    ck_assert_int_eq(load_with(SERVER ", insecure-skip-tls-verify: true", ""), 0);
    ck_assert(kube_config_insecure(config));
}

TEST(relative_files_are_beside_the_kubeconfig)
{
    temp_file(arena, dir, "ca.pem", CERT);
    temp_file(arena, dir, "key.pem", "Some words\n" KEY);
    const char *absolute = temp_file(arena, dir, "cert.pem", CERT CERT);
    temp_file(arena, dir, "token", " tok\n");
    const char *user = arena_printf(
        arena, "client-certificate: %s, client-key: key.pem, tokenFile: token, token: loses",
        absolute);

    ck_assert_msg(load_with(SERVER ", certificate-authority: ca.pem", user) == 0, "%s",
                  load_error.message);
    ck_assert_str_eq(kube_config_ca(config), CERT);
    ck_assert_str_eq(kube_config_client_cert(config), CERT CERT);
    ck_assert_str_eq(kube_config_client_key(config), "Some words\n" KEY);
    check_token("tok");
}

TEST(data_wins_over_files_and_may_have_line_breaks)
{
    const char *cluster = arena_printf(
        arena,
        SERVER ", certificate-authority: /nowhere, certificate-authority-data: \"%.40s\\n%s\"",
        CERT_DATA, &CERT_DATA[40]);
    ck_assert_msg(load_with(cluster, "") == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_ca(config), CERT);
}

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

TEST_EACH(a_bad_field_is_refused_by_file_and_name_without_its_content, REFUSED)
{
    ck_assert_int_eq(load_with(REFUSED[_i].cluster, REFUSED[_i].user), -ERROR_INVALID);
    ck_assert_str_eq(load_error.message,
                     arena_printf(arena, "kubeconfig '%s/config': %s", dir, REFUSED[_i].message));
    ck_assert_ptr_null(strstr(load_error.message, "hunter2"));
    ck_assert_ptr_null(config);
}

TEST(a_key_with_a_passphrase_is_refused)
{
    temp_file(arena, dir, "key.pem",
              "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    ck_assert_int_eq(load_with(SERVER, "client-key: key.pem, client-certificate-data: " CERT_DATA),
                     -ERROR_INVALID);
    ck_assert(str_has_suffix(load_error.message,
                             "key.pem' is a private key with a passphrase, which is "
                             "not supported"));
}

TEST(http_with_a_token_is_fine_on_this_machine)
{
    ck_assert_int_eq(load_with("server: 'http://127.0.0.1:8001/'", "token: x"), 0);
}

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

TEST_EACH(a_document_that_leads_nowhere_is_refused, DOCUMENTS)
{
    ck_assert_int_eq(load(temp_file(arena, dir, "config", DOCUMENTS[_i].text)), -ERROR_INVALID);
    ck_assert_str_eq(load_error.message,
                     arena_printf(arena, "kubeconfig '%s/config': %s", dir, DOCUMENTS[_i].message));
}

TEST(what_is_not_yaml_is_refused)
{
    ck_assert_int_eq(load(temp_file(arena, dir, "config", "a: [b\nc: }")), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(load_error.message, "config': not YAML: "));
}

TEST(a_file_over_the_limit_is_refused)
{
    char *text = arena_alloc(arena, (1 << 20) + 2, 1);
    memset(text, '#', (1 << 20) + 1);
    const char *path = temp_file(arena, dir, "config", text);
    ck_assert_int_eq(load(path), -ERROR_INVALID);
    ck_assert_str_eq(load_error.message, arena_printf(arena,
                                                      "kubeconfig: file '%s' is larger than "
                                                      "1048576 bytes",
                                                      path));
}

TEST(a_context_without_a_user_is_nobody)
{
    const char *text =
        HEAD "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: ''}}]";
    ck_assert_msg(load(temp_file(arena, dir, "config", text)) == 0, "%s", load_error.message);
    check_token(NULL);
}

TEST(a_token_of_the_kubeconfig_itself_stays)
{
    ck_assert_int_eq(load_with(SERVER, "token: fixed"), 0);
    kube_config_refuse_token(config, "fixed");
    check_token("fixed");
}
