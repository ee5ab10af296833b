/* The conditions that kstatus reads, and where their reasons and messages come from. */
#include "common/kube/kstatus.h"

#include "common/base/arena.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define NOW_US INT64_C(1795255200000000) /* 2026-11-21T10:00:00Z */
#define LATER_US (NOW_US + INT64_C(60000000))

static struct arena *arena;

static void set_up(void)
{
    json_init();
    arena = arena_create();
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("kstatus", set_up, tear_down);

static const cJSON *with(const cJSON *conditions, enum kstatus kstatus, const char *cause)
{
    return kstatus_conditions(arena, conditions, kstatus, cause, 3, NOW_US);
}

#define WAITING                                                                                    \
    "{\"type\":\"Scheduled\",\"status\":\"False\",\"reason\":\"NoProplet\",\"message\":\"there "   \
    "is none\"}"
#define SHOWN(type, reason, message)                                                               \
    "{\"type\":\"" type "\",\"status\":\"True\",\"observedGeneration\":3,"                         \
    "\"lastTransitionTime\":\"2026-11-21T10:00:00Z\",\"reason\":\"" reason                         \
    "\",\"message\":\"" message "\"}"

static const struct {
    const char *conditions; /* NULL: none */
    enum kstatus kstatus;
    const char *cause;
    const char *expected;
} CASES[] = {
    { NULL, KSTATUS_IN_PROGRESS, "Scheduled", "[" SHOWN("Reconciling", "InProgress", "") "]" },
    { NULL, KSTATUS_CURRENT, "Scheduled", "[]" },
    { NULL, KSTATUS_FAILED, "Failed", "[" SHOWN("Stalled", "Failed", "") "]" },
    { "[" WAITING "]", KSTATUS_IN_PROGRESS, "Scheduled",
      "[" WAITING "," SHOWN("Reconciling", "NoProplet", "there is none") "]" },
    { "[" WAITING "]", KSTATUS_FAILED, "Failed",
      "[" WAITING "," SHOWN("Stalled", "Failed", "") "]" },
    { "[" SHOWN("Reconciling", "Old", "") "," WAITING "]", KSTATUS_CURRENT, "Scheduled",
      "[" WAITING "]" },
    { "[" SHOWN("Stalled", "Old", "") "," WAITING "]", KSTATUS_CURRENT, "Scheduled",
      "[" WAITING "]" },
    { "[" SHOWN("Reconciling", "Old", "") "," WAITING "]", KSTATUS_FAILED, "Scheduled",
      "[" WAITING "," SHOWN("Stalled", "NoProplet", "there is none") "]" },
    { "[" SHOWN("Stalled", "Old", "") "," WAITING "]", KSTATUS_IN_PROGRESS, "Scheduled",
      "[" WAITING "," SHOWN("Reconciling", "NoProplet", "there is none") "]" },
};

TEST_EACH(one_of_the_two_conditions_is_there_or_none, CASES)
{
    const cJSON *before = CASES[_i].conditions ? parsed(arena, CASES[_i].conditions) : NULL;
    const cJSON *after = with(before, CASES[_i].kstatus, CASES[_i].cause);

    ck_assert_str_eq(json_text(arena, after, NULL), CASES[_i].expected);
    if (before) /* it is a copy that was changed */
        ck_assert_str_eq(json_text(arena, before, NULL), CASES[_i].conditions);
}

TEST(object_is_in_progress_since_it_began)
{
    const cJSON *first = with(NULL, KSTATUS_IN_PROGRESS, "Scheduled");
    const cJSON *then =
        kstatus_conditions(arena, first, KSTATUS_IN_PROGRESS, "Scheduled", 3, LATER_US);

    ck_assert_str_eq(json_text(arena, then, NULL), json_text(arena, first, NULL));
}
