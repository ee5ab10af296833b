#include "standalone/tests/resources_fixture.h"

#include "common/base/str.h"

struct arena *test_arena;
struct resources *test_resources;

void resources_setup(void)
{
    struct error err = { 0 };

    json_init();
    test_arena = arena_create();
    ck_assert_msg(resources_create(&test_resources, &err) == 0, "%s", err.message);
}

void resources_teardown(void)
{
    resources_destroy(test_resources);
    arena_destroy(test_arena);
}

const struct resource *resource_of(const char *plural)
{
    for (size_t i = 0; i < resources_len(test_resources); i++) {
        if (str_equal(resources_at(test_resources, i)->kind.plural, plural))
            return resources_at(test_resources, i);
    }
    ck_abort_msg("no resource '%s'", plural);
}

cJSON *tree(const char *text)
{
    return arena_own(test_arena, json_copy(parsed(test_arena, text)), json_free);
}

const char *text_of(const cJSON *json)
{
    return json_text(test_arena, json, NULL);
}
