/* References to modules: the grammar of the distribution specification. */
#include "common/api/module_reference.h"

#include <string.h>

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST_GROUP("module reference", arena_set_up, arena_tear_down);

static const struct {
    const char *text, *host, *path, *tag, *digest;
} GOOD[] = {
    { "registry.example/add", "registry.example", "add", "latest", NULL },
    { "registry.example/acme/add:1", "registry.example", "acme/add", "1", NULL },
    { "registry.example:5000/a/b/c:v1.2_3-x", "registry.example:5000", "a/b/c", "v1.2_3-x", NULL },
    { "localhost/a", "localhost", "a", "latest", NULL },
    { "localhost:5000/a", "localhost:5000", "a", "latest", NULL },
    { "registry:5000/a", "registry:5000", "a", "latest", NULL },
    { "Registry.Example/a:B", "registry.example", "a", "B", NULL },
    { "[::1]:5000/a", "[::1]:5000", "a", "latest", NULL },
    { "r.example/a@sha256:" HEX, "r.example", "a", NULL, "sha256:" HEX },
    { "r.example/a:1@sha256:" HEX, "r.example", "a", NULL, "sha256:" HEX },
    { "r.example/a.b_c__d-e---f/g", "r.example", "a.b_c__d-e---f/g", "latest", NULL },
};

TEST_EACH(reference_has_a_host_a_path_and_a_tag_or_digest, GOOD)
{
    struct module_reference reference;
    struct error err = { 0 };

    ck_assert_msg(module_reference_parse(arena, GOOD[_i].text, &reference, &err) == 0, "%s",
                  err.message);
    ck_assert_str_eq(reference.host, GOOD[_i].host);
    ck_assert_str_eq(reference.path, GOOD[_i].path);
    ck_assert_pstr_eq(reference.tag, GOOD[_i].tag);
    ck_assert_pstr_eq(reference.digest, GOOD[_i].digest);
    ck_assert_str_eq(reference.repository,
                     arena_printf(arena, "%s/%s", GOOD[_i].host, GOOD[_i].path));
}

static const struct {
    const char *text, *message;
} BAD[] = {
    { "", "must name its registry, such as" },
    { "add:1", "must name its registry, such as" },
    { "acme/add:1", "must name its registry, such as" },
    { "registry.example", "must name its registry, such as" },
    { "http://registry.example/add", "without a scheme" },
    { "oci://registry.example/add", "without a scheme" },
    { "/add", "must name its registry, such as" },
    { ".example/add", "must begin with HOST/" },
    { "registry..example/add", "must begin with HOST/" },
    { "registry-.example/add", "must begin with HOST/" },
    { "registry.example-/add", "must begin with HOST/" },
    { "registry_1.example/add", "must begin with HOST/" },
    { "registry.example:/add", "must begin with HOST/" },
    { "registry.example:a/add", "must begin with HOST/" },
    { "registry.example:500000/add", "must begin with HOST/" },
    { "[::1/add", "must begin with HOST/" },
    { "[::g]/add", "must begin with HOST/" },
    { "user@registry.example/add", "must name its registry, such as" },
    { "registry.example/", "must name a repository" },
    { "registry.example/Add", "must name a repository" },
    { "registry.example//add", "must name a repository" },
    { "registry.example/add/", "must name a repository" },
    { "registry.example/../add", "must name a repository" },
    { "registry.example/a..b", "must name a repository" },
    { "registry.example/a___b", "must name a repository" },
    { "registry.example/-a", "must name a repository" },
    { "registry.example/a-", "must name a repository" },
    { "registry.example/a b", "must name a repository" },
    { "registry.example/a%2f", "must name a repository" },
    { "registry.example/a?b=c", "must name a repository" },
    { "registry.example/a:", "must have a tag" },
    { "registry.example/a:-1", "must have a tag" },
    { "registry.example/a:1:2", "must name a repository" },
    { "registry.example/a:" HEX HEX "0", "must have a tag" },
    { "registry.example/a@", "must end in '@sha256:'" },
    { "registry.example/a@sha256:0" HEX, "must end in '@sha256:'" },
    { "registry.example/a@sha256:ABCDEF" HEX, "must end in '@sha256:'" },
    { "registry.example/a@sha512:" HEX HEX, "must end in '@sha256:'" },
    { "registry.example/a@sha256:" HEX "@sha256:" HEX, "must end in '@sha256:'" },
};

TEST_EACH(text_that_is_no_reference_is_refused_with_what_it_must_be, BAD)
{
    struct module_reference reference = { 0 };
    struct error err = { 0 };

    ck_assert_int_eq(module_reference_parse(arena, BAD[_i].text, &reference, &err), -ERROR_INVALID);
    ck_assert_msg(strstr(err.message, BAD[_i].message) != NULL, "%s", err.message);
    ck_assert_ptr_null(reference.host);
}

TEST(digest_of_63_digits_is_none)
{
    ck_assert(module_digest_is_valid("sha256:" HEX));
    ck_assert(!module_digest_is_valid(&("sha256:" HEX)[1]));
    ck_assert(
        !module_digest_is_valid(arena_strndup(arena, "sha256:" HEX, strlen("sha256:" HEX) - 1)));
    ck_assert(!module_digest_is_valid(NULL));
}

TEST(reference_of_2000_characters_is_refused)
{
    struct module_reference reference;
    struct error err = { 0 };
    char text[2001];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text, "r.example/", strlen("r.example/"));
    ck_assert_int_eq(module_reference_parse(arena, text, &reference, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "must have at most 1024 characters");
    text[MODULE_REFERENCE_MAX] = '\0';
    ck_assert_int_eq(module_reference_parse(arena, text, &reference, &err), 0);
}
