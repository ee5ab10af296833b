#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/json.h"
#include "common/kube/client.h"
#include "common/net/http_server.h"
#include "common/tests/certs.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

static struct arena *arena;
static const char *dir;
static struct http_server *server;
static struct error err;

static void answer(void *ctx UNUSED, struct arena *request_arena UNUSED,
                   const struct http_server_request *request UNUSED, struct http_server_reply *ret)
{
    *ret = (struct http_server_reply){ .status = 200, .body = "ok", .body_len = 2 };
}

/* Once for all tests: certificates take a while to make. */
static void make_certificates(void)
{
    arena = arena_create();
    dir = temp_dir(arena);
    certs_make_ca(dir, "ca");
    certs_make_ca(dir, "other");
    certs_make(dir, "ca", "server", "DNS:localhost,DNS:kubernetes");
    temp_file(arena, dir, "bad.crt",
              "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
}

static void remove_certificates(void)
{
    arena_destroy(arena);
}

static void setup(void)
{
    static const char *const PROXIES[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                                           "no_proxy" };
    for (size_t i = 0; i < ARRAY_LEN(PROXIES); i++)
        unsetenv(PROXIES[i]);
    json_init();
    (void)signal(SIGPIPE, SIG_IGN);

    char *cert = temp_file_read(dir, "server.crt"), *key = temp_file_read(dir, "server.key");
    struct http_server_options options = {
        .address = "127.0.0.1:0", .handler = answer, .cert_pem = cert, .key_pem = key
    };
    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
    free(cert);
    free(key);
}

static void teardown(void)
{
    http_server_stop(server);
}

TEST_GROUP_ONCE("transport_tls", make_certificates, remove_certificates, setup, teardown);

/* Asks the server with these fields of cluster and user in the kubeconfig. */
static int probe(const char *host, const char *cluster, const char *user)
{
    CLEANUP(kube_config_destroyp) struct kube_config *config = NULL;
    const char *text =
        arena_printf(arena,
                     "current-context: x\n"
                     "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
                     "clusters: [{name: x, cluster: {server: 'https://%s:%u'%s%s}}]\n"
                     "users: [{name: x, user: {%s}}]\n",
                     host, http_server_port(server), *cluster ? ", " : "", cluster, user);
    ck_assert_msg(kube_config_load(temp_file(arena, dir, "config", text), &config, &err) == 0, "%s",
                  err.message);

    struct kube_client *client = kube_client_create(config, 10000);
    int r = kube_get_text(client, arena, "/readyz", NULL, &err);
    kube_client_destroy(client);
    return r;
}

static const struct {
    const char *host, *cluster, *user;
} ACCEPTED[] = {
    { "localhost", "certificate-authority: ca.crt", "" },
    { "localhost", "certificate-authority: ca.crt", "token: abc" },
    { "localhost", "certificate-authority: ca.crt",
      "client-certificate: server.crt, client-key: server.key" },
    { "127.0.0.1", "certificate-authority: ca.crt, tls-server-name: kubernetes", "" },
    { "127.0.0.1", "insecure-skip-tls-verify: true", "" },
};

TEST_EACH(a_server_that_proves_its_name_is_asked, ACCEPTED)
{
    ck_assert_msg(probe(ACCEPTED[_i].host, ACCEPTED[_i].cluster, ACCEPTED[_i].user) == 0, "%s",
                  err.message);
}

static const struct {
    const char *host, *cluster, *user;
    enum error_code code;
    const char *message;
} REFUSED[] = {
    { "localhost", "certificate-authority: other.crt", "", ERROR_UNAVAILABLE,
      "server certificate not trusted by the authorities of '" },
    { "127.0.0.1", "certificate-authority: ca.crt", "", ERROR_UNAVAILABLE,
      "server certificate not trusted by the authorities of '" },
    { "localhost", "certificate-authority: ca.crt, tls-server-name: somebody", "",
      ERROR_UNAVAILABLE, "server certificate not trusted by the authorities of '" },
    { "localhost", "certificate-authority: bad.crt", "", ERROR_INVALID,
      "unusable certificate authority in '" },
    { "localhost", "certificate-authority: ca.crt",
      "client-certificate: server.crt, client-key: other.key", ERROR_INVALID,
      "unusable client certificate or key in '" },
    { "localhost", "certificate-authority: ca.crt",
      "client-certificate: bad.crt, client-key: other.key", ERROR_INVALID,
      "unusable client certificate or key in '" },
    { "localhost", "certificate-authority: ca.crt, proxy-url: 'http://127.0.0.1:1'", "",
      ERROR_UNAVAILABLE, "Connection refused (proxy 'http://127.0.0.1:1')" },
};

TEST_EACH(what_does_not_fit_is_one_line_and_nothing_is_sent, REFUSED)
{
    ck_assert_int_eq(probe(REFUSED[_i].host, REFUSED[_i].cluster, REFUSED[_i].user),
                     -(int)REFUSED[_i].code);
    ck_assert_msg(strstr(err.message, REFUSED[_i].message), "%s", err.message);
    ck_assert(str_has_prefix(err.message, "GET /readyz: connect to 'https://"));
    ck_assert_ptr_null(strchr(err.message, '\n'));
}

/* As in client-go. */
TEST(a_proxy_of_the_environment_is_not_for_this_machine_and_one_of_the_kubeconfig_is_for_all)
{
    setenv("https_proxy", "http://127.0.0.1:1", true);
    ck_assert_msg(probe("localhost", "certificate-authority: ca.crt", "") == 0, "%s", err.message);
    setenv("no_proxy", "*", true);
    ck_assert_int_eq(
        probe("localhost", "certificate-authority: ca.crt, proxy-url: 'http://127.0.0.1:1'", ""),
        -ERROR_UNAVAILABLE);
}
