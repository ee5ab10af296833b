#include "common/tests/config_fixture.h"

#include <check.h>
#include <stdlib.h>

#include "common/base/str.h"
#include "common/tests/temp_dir.h"

const char *dir;
struct kube_config *config;
struct error load_error;
struct fake_clock now;

void config_setup(void)
{
    arena_set_up();
    dir = temp_dir(arena);
    config = NULL;
    load_error = (struct error){ 0 };
    fake_clock_init(&now);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    setenv("HOME", dir, 1);
}

void config_teardown(void)
{
    kube_config_destroy(config);
    arena_tear_down();
}

int load(const char *path)
{
    struct kube_config_options options = { .path = path,
                                           .service_account_dir = dir,
                                           .clock = &now.clock };
    return kube_config_load_with(&options, &config, &load_error);
}

void check_token(const char *expected)
{
    char *token = NULL;
    ck_assert_int_eq(kube_config_token(config, &token, &load_error), 0);
    ck_assert_msg(str_equal(token, expected), "%s", token ? token : "none");
    free(token);
}
