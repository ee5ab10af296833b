/* Credentials, challenges and replies of token servers: all that comes out can stand in one line of a header. */
#include <ctype.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "controller/registry/authorization.h"

static void require_line(const char *text)
{
    for (const char *c = text; c && *c; c++)
        REQUIRE(isprint((unsigned char)*c));
}

static void try_config(struct arena *arena, const char *text, size_t len, bool is_legacy)
{
    struct registry_logins logins = { 0 };
    struct error err = { 0 };

    if (registry_logins_add(arena, text, len, is_legacy, "r.example", "acme/add", &logins, &err) <
        0)
        REQUIRE(err.code == ERROR_INVALID);
    REQUIRE(logins.len <= REGISTRY_MAX_LOGINS);
    for (size_t i = 0; i < logins.len; i++)
        require_line(logins.items[i]);
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = arena_strndup(arena, (const char *)bytes, len);
    struct authorization authorization = { .logins = { { "eDp5" }, 1 } };

    try_config(arena, (const char *)bytes, len, false);
    try_config(arena, (const char *)bytes, len, true);
    if (authorization_refused(&authorization, arena,
                              arena_printf(arena, "WWW-Authenticate: Bearer %s\n", text), "s") &&
        authorization.scheme == AUTHORIZATION_BEARER)
        REQUIRE(str_has_prefix(authorization.realm, "https://"));
    (void)authorization_refused(&authorization, arena, text, "s");
    if (authorization_take_token(&authorization, arena, (const char *)bytes, len, 0, NULL) == 0) {
        REQUIRE(authorization.expires_ms > 0 && authorization.expires_ms <= 86400 * 900);
        require_line(authorization.token);
    }
}
