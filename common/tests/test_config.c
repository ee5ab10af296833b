#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/str.h"
#include "common/tests/config_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

TEST_GROUP("config", config_setup, config_teardown);

TEST(the_file_is_looked_for_in_order)
{
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert_str_eq(load_error.message, arena_printf(arena,
                                                      "kubeconfig: file '%s/.kube/config': No such "
                                                      "file or directory",
                                                      dir));
    unsetenv("HOME");
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(load_error.message, "KUBECONFIG"));

    setenv("KUBERNETES_SERVICE_HOST", "198.51.100.1", 1);
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert_str_eq(load_error.message,
                     "in-cluster configuration: KUBERNETES_SERVICE_PORT is not a port number");

    const char *text = "current-context: x\ncontexts: [{name: x, context: {cluster: x}}]\n"
                       "clusters: [{name: x, cluster: {" SERVER "}}]\n";
    ck_assert_int_eq(load(temp_file(arena, dir, "config", text)), 0);
    setenv("KUBECONFIG", arena_printf(arena, ":%s:/nowhere", kube_config_source(config)), 1);
    kube_config_destroy(TAKE(config));
    ck_assert_int_eq(kube_config_load(NULL, &config, &load_error), 0);
    ck_assert_str_eq(kube_config_source(config), arena_printf(arena, "%s/config", dir));
}

static void in_cluster(const char *host)
{
    setenv("KUBERNETES_SERVICE_HOST", host, 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    temp_file(arena, dir, "ca.crt", CERT);
    temp_file(arena, dir, "token", "first\n");
}

TEST(a_pod_finds_its_server_and_its_account)
{
    in_cluster("10.0.0.1");
    temp_file(arena, dir, "namespace", "factory\n");
    ck_assert_msg(load(NULL) == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_source(config), "in-cluster");
    ck_assert_str_eq(kube_config_server(config), "https://10.0.0.1:443");
    ck_assert_str_eq(kube_config_namespace(config), "factory");
    ck_assert_str_eq(kube_config_ca(config), CERT);
    check_token("first");
}

TEST(an_ipv6_server_has_brackets_and_the_namespace_may_be_missing)
{
    in_cluster("2001:db8::1");
    ck_assert_msg(load(NULL) == 0, "%s", load_error.message);
    ck_assert_str_eq(kube_config_server(config), "https://[2001:db8::1]:443");
    ck_assert_str_eq(kube_config_namespace(config), "default");
}

static const struct {
    const char *host, *port, *missing, *message;
} BAD_PODS[] = {
    { "10.0.0.1/x", "443", NULL, "KUBERNETES_SERVICE_HOST is not a host" },
    { "10.0.0.1", "70000", NULL, "KUBERNETES_SERVICE_PORT is not a port number" },
    { "10.0.0.1", "443", "ca.crt", "/ca.crt': No such file or directory" },
    { "10.0.0.1", "443", "token", "/token': No such file or directory" },
};

TEST_EACH(a_pod_without_its_account_is_told_what_is_missing, BAD_PODS)
{
    in_cluster(BAD_PODS[_i].host);
    setenv("KUBERNETES_SERVICE_PORT", BAD_PODS[_i].port, 1);
    if (BAD_PODS[_i].missing)
        ck_assert_int_eq(unlink(arena_printf(arena, "%s/%s", dir, BAD_PODS[_i].missing)), 0);
    ck_assert_int_eq(load(NULL), -ERROR_INVALID);
    ck_assert(str_has_prefix(load_error.message, "in-cluster configuration: "));
    ck_assert(str_has_suffix(load_error.message, BAD_PODS[_i].message));
}

TEST(a_token_file_is_read_again_after_a_second)
{
    in_cluster("10.0.0.1");
    ck_assert_int_eq(load(NULL), 0);
    check_token("first");
    temp_file(arena, dir, "token", "second");
    fake_clock_advance(&now, 999);
    check_token("first");
    fake_clock_advance(&now, 1);
    check_token("second");
}

TEST(an_unreadable_token_file_leaves_the_last_token)
{
    static const char *const BAD[] = { "", "  \n", "two words", "bad\001" };
    in_cluster("10.0.0.1");
    ck_assert_int_eq(load(NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        temp_file(arena, dir, "token", BAD[i]);
        fake_clock_advance(&now, 1000);
        check_token("first");
    }
    const char *path = temp_file(arena, dir, "token", "");
    FILE *file = fopen(path, "w");
    ck_assert_uint_eq(fwrite("a\0b", 1, 3, file), 3);
    ck_assert_int_eq(fclose(file), 0);
    fake_clock_advance(&now, 1000);
    check_token("first");

    ck_assert_int_eq(unlink(path), 0);
    fake_clock_advance(&now, 1000);
    check_token("first");
}

TEST(a_refused_token_is_read_again_at_once)
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
    ck_assert_int_eq(kube_config_token(config, &token, &load_error), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(load_error.message,
                     arena_printf(arena, "file '%s/token': No such file or directory", dir));
    temp_file(arena, dir, "token", "third");
    check_token("third");
}

static int get_token(void *ctx, char **ret, struct error *error UNUSED)
{
    *ret = strdup(ctx);
    return 0;
}

static void refuse_token(void *ctx, const char *token)
{
    (void)str_copy(ctx, 8, token);
}

TEST(another_identity_has_the_server_and_none_of_the_credentials)
{
    char theirs[8] = "theirs";
    const struct kube_token_source source = { theirs, get_token, refuse_token };
    struct kube_config *other = NULL;
    char *token = NULL;

    in_cluster("10.0.0.1");
    temp_file(arena, dir, "namespace", "factory");
    ck_assert_msg(load(NULL) == 0, "%s", load_error.message);
    ck_assert_msg(kube_config_create_as(config, &source, &other, &load_error) == 0, "%s",
                  load_error.message);
    ck_assert_str_eq(kube_config_server(other), "https://10.0.0.1:443");
    ck_assert_str_eq(kube_config_namespace(other), "factory");
    ck_assert_str_eq(kube_config_ca(other), CERT);
    ck_assert_ptr_null(kube_config_client_cert(other));
    ck_assert_ptr_null(kube_config_client_key(other));
    ck_assert_int_eq(kube_config_token(other, &token, &load_error), 0);
    ck_assert_str_eq(token, "theirs");
    free(token);
    kube_config_refuse_token(other, "old");
    ck_assert_str_eq(theirs, "old");
    check_token("first");
    kube_config_destroy(other);
}

TEST(tokens_of_another_identity_do_not_leave_the_machine_without_tls)
{
    const struct kube_token_source source = { 0 };
    struct kube_config *other = NULL;
    const char *text = "current-context: x\ncontexts: [{name: x, context: {cluster: x}}]\n"
                       "clusters: [{name: x, cluster: {server: 'http://198.51.100.1'}}]\n";

    ck_assert_int_eq(load(temp_file(arena, dir, "config", text)), 0);
    ck_assert_int_eq(kube_config_create_as(config, &source, &other, &load_error), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(load_error.message, "not https"));
}

TEST(errors_need_not_be_wanted)
{
    struct kube_config *ret = NULL;
    ck_assert_int_eq(kube_config_load("/nowhere/config", &ret, NULL), -ERROR_INVALID);
    ck_assert_ptr_null(ret);
    kube_config_destroy(NULL);
}
