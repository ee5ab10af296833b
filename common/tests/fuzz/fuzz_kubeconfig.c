/* kube_config_load: what it accepts is usable, what it refuses is explained. */
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/json/json.h"
#include "common/kube/config.h"
#include "common/tests/fuzz/target.h"

static void check(struct kube_config *config)
{
    char *token = NULL;
    struct error err = { 0 };

    REQUIRE(str_has_prefix(kube_config_server(config), "http"));
    REQUIRE(!str_is_empty(kube_config_namespace(config)));
    REQUIRE(!kube_config_client_cert(config) == !kube_config_client_key(config));
    REQUIRE(!(kube_config_insecure(config) && kube_config_ca(config)));
    REQUIRE(kube_config_token(config, &token, &err) == 0);
    REQUIRE(!token || !token[strcspn(token, " \t\r\n")]); /* nothing that would end a header */
    free(token);
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(kube_config_destroyp) struct kube_config *config = NULL;
    struct error err = { 0 };
    char path[64];

    json_init();
    int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (kube_config_load(path, &config, &err) == 0)
        check(config);
    else
        REQUIRE((err.code == ERROR_INVALID || err.code == ERROR_TOO_LARGE) &&
                str_has_prefix(err.message, "kubeconfig"));
    (void)close(fd);
}
