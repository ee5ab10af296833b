/* The path of a kind, by the list of the API server. */
#include "common/kube/discovery.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

TEST_GROUP("discovery", arena_set_up, arena_tear_down);

#define LIST                                                                                       \
    "{\"kind\":\"APIResourceList\",\"resources\":["                                                \
    "{\"name\":\"machines/status\",\"kind\":\"Machine\",\"namespaced\":true},"                     \
    "{\"name\":\"\",\"kind\":\"Empty\"},{\"kind\":\"Empty\"},"                                     \
    "{\"name\":\"machines\",\"kind\":\"Machine\",\"namespaced\":true},"                            \
    "{\"name\":\"proxies\",\"kind\":\"Proxy\",\"namespaced\":false},"                              \
    "{\"name\":\"oxen\",\"kind\":\"Ox\",\"namespaced\":true}]}"

static const struct {
    const char *kind, *plural; /* NULL: not found */
    bool namespaced;
} KINDS[] = {
    { "Machine", "machines", true }, { "Proxy", "proxies", false }, { "Ox", "oxen", true },
    { "machine", NULL, false },      { "Empty", NULL, false },      { "", NULL, false },
};

TEST_EACH(plural_and_scope_are_those_of_the_list, KINDS)
{
    struct discovery_answer answer = { NULL, false };
    bool found = discovery_find(parsed(arena, LIST), KINDS[_i].kind, &answer);

    ck_assert_int_eq(found, KINDS[_i].plural != NULL);
    if (!found)
        return;
    ck_assert_str_eq(answer.plural, KINDS[_i].plural);
    ck_assert_int_eq(answer.namespaced, KINDS[_i].namespaced);
}

static const char *const NO_LISTS[] = { "{}", "[]", "null", "{\"resources\":{}}",
                                        "{\"resources\":[1]}" };

TEST_EACH(another_answer_has_no_kinds, NO_LISTS)
{
    struct discovery_answer answer;

    ck_assert(!discovery_find(parsed(arena, NO_LISTS[_i]), "Machine", &answer));
}
