/* Taints with ownership: the table, the annotation, and what a spec may not say. */
#include <string.h>

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/machine/taint_plan.h"

TEST_GROUP("taints", arena_set_up, arena_tear_down);

#define OTHER "{\"key\":\"other\",\"effect\":\"NoExecute\",\"timeAdded\":\"2026-11-21T10:00:00Z\"}"
#define LIVE(value) "{\"key\":\"k\",\"value\":\"" value "\",\"effect\":\"NoSchedule\"}"

/* wanted, live and applied: the value of the taint k; NULL: it is not there. */
static const struct {
    const char *wanted, *live, *applied;
    const char *becomes; /* value on the Node; NULL: not there */
    bool ours, conflict, changes;
} ROWS[] = {
    { "a", NULL, NULL, "a", true, false, true },     { "a", NULL, "a", "a", true, false, true },
    { "a", NULL, "b", "a", true, false, true },      { "a", "a", NULL, "a", false, false, false },
    { "a", "a", "a", "a", true, false, false },      { "a", "a", "b", "a", true, false, false },
    { "a", "b", "b", "a", true, false, true },       { "a", "b", NULL, "b", false, true, false },
    { "a", "b", "c", "b", true, true, false },       { "a", "b", "a", "b", true, true, false },
    { NULL, "a", "a", NULL, false, false, true },    { NULL, "b", "a", "b", true, true, false },
    { NULL, "a", NULL, "a", false, false, false },   { NULL, NULL, "a", NULL, false, false, false },
    { NULL, NULL, NULL, NULL, false, false, false },
};

static struct machine_taints list(const char *value)
{
    struct machine_taint *taint = arena_new(arena, struct machine_taint);

    *taint = (struct machine_taint){ "k", value, "NoSchedule" };
    return (struct machine_taints){ taint, value ? 1 : 0 };
}

/* The value of k; NULL: not there. */
static const char *value_of(const cJSON *taints)
{
    json_for_each (taint, taints) {
        if (str_equal(json_string(json_get(taint, "key"), ""), "k"))
            return json_string(json_get(taint, "value"), "");
    }
    return NULL;
}

TEST_EACH(each_row_of_the_table_holds, ROWS)
{
    const char *text =
        arena_printf(arena, "[" OTHER "%s%s%s]",
                     ROWS[_i].live ? ",{\"key\":\"k\",\"effect\":\"NoSchedule\",\"value\":\"" : "",
                     ROWS[_i].live ? ROWS[_i].live : "", ROWS[_i].live ? "\"}" : "");
    const cJSON *live = parsed(arena, text);
    const struct machine_taints wanted = list(ROWS[_i].wanted), applied = list(ROWS[_i].applied);
    const struct taint_plan plan = taint_plan(arena, live, &wanted, &applied);
    const cJSON *after = plan.taints ? plan.taints : live;

    ck_assert_int_eq(plan.conflicts != NULL, ROWS[_i].conflict);
    ck_assert_int_eq(plan.taints != NULL, ROWS[_i].changes);
    ck_assert_int_eq(plan.applied.len == 1, ROWS[_i].ours);
    ck_assert(str_equal(value_of(after), ROWS[_i].becomes));
    ck_assert(
        json_equal(json_first(after), parsed(arena, OTHER))); /* with its timeAdded, in its place */
}

TEST(one_conflict_changes_nothing_and_names_its_key)
{
    const struct machine_taint wanted[] = { { "new", "", "NoSchedule" },
                                            { "k", "a", "NoSchedule" } };
    const struct machine_taints all = { wanted, 2 }, none = { NULL, 0 };
    const struct taint_plan plan =
        taint_plan(arena, parsed(arena, "[" LIVE("theirs") "]"), &all, &none);

    ck_assert_str_eq(plan.conflicts, "k:NoSchedule");
    ck_assert_ptr_null(plan.taints);
    ck_assert(!plan.annotation_changes && !plan.applied.len);
}

TEST(another_effect_is_another_taint)
{
    const struct machine_taint wanted = { "k", "a", "NoExecute" };
    const struct machine_taints one = { &wanted, 1 }, none = { NULL, 0 };
    const struct taint_plan plan = taint_plan(arena, parsed(arena, "[" LIVE("b") "]"), &one, &none);

    ck_assert_uint_eq(json_len(plan.taints), 2);
    ck_assert_ptr_null(plan.conflicts);
}

TEST(second_look_finds_nothing_to_do)
{
    const struct machine_taint wanted[] = { { "k", NULL, "NoSchedule" },
                                            { "l", "x", "NoExecute" } };
    const struct machine_taints all = { wanted, 2 }, none = { NULL, 0 };
    const struct taint_plan first = taint_plan(arena, NULL, &all, &none);
    const struct machine_taints applied = taints_read(arena, taints_text(arena, &first.applied));

    ck_assert(first.annotation_changes);
    ck_assert_uint_eq(applied.len, 2);
    const struct taint_plan second = taint_plan(arena, first.taints, &all, &applied);
    ck_assert(!second.taints && !second.annotation_changes && !second.conflicts);
}

static const char *const UNREADABLE[] = {
    NULL, "", "null", "{}", "[1]", "[{\"key\":1}]", "[", "true",
};

TEST_EACH(unreadable_annotation_owns_nothing, UNREADABLE)
{
    ck_assert_uint_eq(taints_read(arena, UNREADABLE[_i]).len, 0);
}

static const struct {
    struct machine_taint taints[2];
    size_t len;
    const char *problem; /* NULL: none */
} SPECS[] = {
    { { { "k", "v", "NoSchedule" }, { "k", "v", "NoExecute" } }, 2, NULL },
    { { { "example.com/k", NULL, "PreferNoSchedule" } }, 1, NULL },
    { { { "k", "v", "NoSchedule" }, { "k", "w", "NoSchedule" } },
      2,
      "spec.nodeTaints[1]: another item has this key and effect" },
    { { { "node.kubernetes.io/k", "v", "NoSchedule" } },
      1,
      "spec.nodeTaints[0]: the prefix of the key is reserved" },
    { { { "5spot.finos.org/k", "v", "NoSchedule" } },
      1,
      "spec.nodeTaints[0]: the prefix of the key is reserved" },
    { { { "k", "v", "Never" } },
      1,
      "spec.nodeTaints[0]: the effect must be NoSchedule, PreferNoSchedule or NoExecute" },
    { { { "k", "v", NULL } },
      1,
      "spec.nodeTaints[0]: the effect must be NoSchedule, PreferNoSchedule or NoExecute" },
    { { { "", "v", "NoSchedule" } }, 1, "spec.nodeTaints[0]: the key is empty" },
};

TEST_EACH(taints_of_a_spec_are_checked, SPECS)
{
    const struct machine_taints wanted = { SPECS[_i].taints, SPECS[_i].len };
    const char *problem = taints_problem(arena, &wanted);

    ck_assert_msg(str_equal(problem, SPECS[_i].problem), "%s", problem ? problem : "none");
}
