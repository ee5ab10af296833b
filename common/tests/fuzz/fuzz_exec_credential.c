/* exec_reply_parse: a credential that is accepted ends no header and is whole. */
#include "common/base/str.h"
#include "common/kube/exec_credential.h"
#include "common/tests/fuzz/target.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct exec_reply reply;
    struct error err = { 0 };

    json_init();
    if (exec_reply_parse(arena, (const char *)bytes, len, "client.authentication.k8s.io/v1", &reply,
                         &err) < 0) {
        REQUIRE(err.code == ERROR_INVALID && *err.message);
        return;
    }
    REQUIRE(reply.token || reply.certificate);
    REQUIRE(!reply.certificate == !reply.key);
    REQUIRE(!reply.token || !reply.token[strcspn(reply.token, " \t\r\n")]);
}
