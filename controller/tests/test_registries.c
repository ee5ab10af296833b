/* Which registries may be asked, and at which address. */
#include "controller/registry/registries.h"

#include <string.h>

#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

TEST_GROUP("registries", arena_set_up, arena_tear_down);

static const char *ENTRIES[] = {
    "registry.example",           "registry.example/acme=https://mirror.example:8443",
    "registry.example/acme/more", "http://localhost:5000",
    "other.example/only",         "plain.example=http://127.0.0.1:5001",
};

static const struct {
    const char *reference, *url; /* NULL: not listed */
} FOUND[] = {
    { "registry.example/add", "https://registry.example" },
    { "registry.example/acme/add", "https://mirror.example:8443" },
    { "registry.example/acme", "https://mirror.example:8443" },
    { "registry.example/acmex/add", "https://registry.example" },
    { "registry.example/acme/more/add", "https://registry.example" },
    { "REGISTRY.example/acme/add", "https://mirror.example:8443" },
    { "registry.example:443/add", NULL },
    { "localhost:5000/add", "http://localhost:5000" },
    { "localhost/add", NULL },
    { "other.example/only/add", "https://other.example" },
    { "other.example/add", NULL },
    { "mirror.example:8443/acme/add", NULL },
    { "plain.example/add", "http://127.0.0.1:5001" },
    { "evil-registry.example/add", NULL },
    { "registry.example.evil.example/add", NULL },
};

TEST_EACH(longest_entry_that_holds_the_reference_says_the_address, FOUND)
{
    const struct str_list list = { ENTRIES, ARRAY_LEN(ENTRIES) };
    struct module_registries registries;
    struct module_reference reference;

    ck_assert_int_eq(module_registries_parse(arena, &list, &registries, NULL), 0);
    ck_assert_int_eq(module_reference_parse(arena, FOUND[_i].reference, &reference, NULL), 0);

    const struct module_registry *registry = module_registry_find(&registries, &reference);

    ck_assert_pstr_eq(registry ? registry->url : NULL, FOUND[_i].url);
    if (!registry)
        return;
    ck_assert_str_eq(registry->asked, strstr(registry->url, "://") + 3);
    ck_assert_int_eq(registry->is_plain, str_has_prefix(registry->url, "http:"));
}

static const char *BAD[] = {
    "",
    "registry",
    "registry.example/",
    "registry.example/Acme",
    "registry.example:1x",
    "https://registry.example",
    "http://",
    "ftp://registry.example",
    "a.example=b.example",
    "a.example=https://b.example/path",
    "a.example=https://",
    "=https://b.example",
    "https://a.example=https://b.example",
    "a.example=https://user@b.example",
    "a.example ",
};

TEST_EACH(entry_that_cannot_be_read_names_the_flag, BAD)
{
    const struct str_list list = { &BAD[_i], 1 };
    struct module_registries registries;
    struct error err = { 0 };

    ck_assert_int_eq(module_registries_parse(arena, &list, &registries, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "--module-registries: '"));
}
