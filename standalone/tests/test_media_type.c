/* Content types as a kube-apiserver 1.34 reads them: each was sent to one. */
#include <check.h>

#include "common/base/str.h"
#include "common/tests/suite.h"
#include "standalone/api/media_type.h"
#include "standalone/tests/resources_fixture.h"

#define JSON "application/json"
#define MERGE "application/merge-patch+json"

static const struct {
    const char *header, *type; /* NULL: none */
} TYPES[] = {
    { JSON, JSON },
    { "Application/JSON", JSON },
    { "APPLICATION/yaml", "application/yaml" },
    { " application/json", JSON },
    { JSON " ", JSON },
    { JSON ";", JSON },
    { JSON " ;", JSON },
    { JSON "; ", JSON },
    { JSON ";charset=utf-8;", JSON },
    { JSON " ; charset=utf-8", JSON },
    { JSON "\t;a=b", JSON },
    { JSON ";a =b", JSON },
    { JSON ";a= b", JSON },
    { JSON ";a=b;A=b", JSON },
    { JSON ";a=b;A=c", NULL },
    { JSON ";a=\"b\\\"c\";d=e", JSON },
    { JSON ";a=\"b;c\"", JSON },
    { JSON ";a=\"\";", JSON },
    { JSON ";a=\"\xc3\xa9\"", JSON },
    { JSON ";a=\xc3\xa9", NULL },
    { JSON ";\xc3\xa9=a", NULL },
    { JSON ";;;", NULL },
    { JSON "; ;", NULL },
    { JSON ";;a=b", NULL },
    { JSON "; charset", NULL },
    { JSON "; charset=\"x", NULL },
    { JSON ";a=\"b", NULL },
    { JSON ";a=\"b\\", NULL },
    { JSON ";q=", NULL },
    { JSON ";=b", NULL },
    { JSON ";a=b c", NULL },
    { JSON ";a=\"b\"c=d", NULL },
    { JSON ";a=\"b\";c", NULL },
    { JSON " x", NULL },
    { JSON ",text/plain", NULL },
    { "application/", NULL },
    { "/json", NULL },
    { "application", "application" },
    { "", NULL },
    { ";", NULL },
};

TEST_GROUP("types", resources_setup, resources_teardown);

TEST_EACH(a_type_is_read_as_go_reads_it, TYPES)
{
    const char *type = media_type_of(test_arena, TYPES[_i].header);

    ck_assert_msg(type == TYPES[_i].type || (type && str_equal(type, TYPES[_i].type)), "%s: %s",
                  TYPES[_i].header, type ? type : "none");
}

TEST(parameters_are_not_without_end)
{
    const char *header = JSON;

    for (int i = 0; i < MEDIA_TYPE_MAX_PARAMETERS; i++)
        header = arena_printf(test_arena, "%s;p%d=v", header, i);
    ck_assert_str_eq(media_type_of(test_arena, header), JSON);
    ck_assert_ptr_null(media_type_of(test_arena, arena_printf(test_arena, "%s;q=v", header)));
}

static const struct {
    const char *header;
    bool is;
} PATCHES[] = {
    { MERGE, true },          { MERGE ";;;", true }, { MERGE ";a", true },
    { MERGE " ", true },      { MERGE "x", false },  { MERGE " ;a", false },
    { MERGE " x", false },    { " " MERGE, false },  { "Application/merge-patch+json", false },
    { "application", false }, { "", false },
};

TEST_EACH(of_a_patch_it_is_what_is_before_the_first_semicolon, PATCHES)
{
    ck_assert_msg(media_type_is_patch(PATCHES[_i].header, MERGE) == PATCHES[_i].is, "%s",
                  PATCHES[_i].header);
}
