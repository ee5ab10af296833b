/* Every request of a creation, a drain and an emergency fails once in every way, and the process dies before and after
 * each: the end is the same, no second Machine is made, and no pod goes against its budget. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/power.h"
#include "controller/tests/machine_stage.h"

#define EVERY ((unsigned)power_count(12, 8, 1))

static void create(void)
{
    machine_stage_put(STAGE_ANYTIME,
                      ",\"nodeTaints\":[{\"key\":\"ours\",\"effect\":\"NoSchedule\"}],"
                      "\"killIfCommands\":[\"steam\"]");
    machine_stage_run();
}

static void drain(void)
{
    create();
    machine_stage_put_pod("a");
    machine_stage_put_pod("b");
    machine_stage_put(STAGE_NEVER, "");
    machine_stage_run();
}

static void reclaim(void)
{
    create();
    machine_stage_put_pod("a");
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    machine_stage_run();
    machine_stage_wait_ms(3600000);
    machine_stage_run();
}

static void kill_and_delete(void)
{
    create();
    machine_stage_put(STAGE_ANYTIME, ",\"killSwitch\":true");
    machine_stage_run();
    machine_stage_delete();
    machine_stage_run();
}

static const struct {
    const char *name;
    void (*play)(void);
    const char *end;
} SCENARIOS[] = {
    { "create", create, "Active B I M N A p0" },
    { "drain", drain, "Inactive p0" },
    { "reclaim", reclaim, "Disabled p0" },
    { "kill and delete", kill_and_delete, "gone p0" },
};

/* Returns the requests that there were. */
static unsigned play(size_t index, unsigned fail_at, enum fault fault)
{
    machine_stage_set_up();
    mstage.fail_at = fail_at;
    mstage.fault = fault;
    SCENARIOS[index].play();
    const char *end =
        arena_printf(mstage.arena, "%s %s", machine_stage_phase(), machine_stage_left());

    ck_assert_msg(str_equal(end, SCENARIOS[index].end) && mstage.machines == 1 && !mstage.broken,
                  "%s, step %u, %s: '%s', %u Machines, %s", SCENARIOS[index].name, fail_at,
                  FAULT_NAMES[fault], end, mstage.machines,
                  mstage.broken ? mstage.broken : "nothing broken");
    unsigned steps = mstage.steps;
    machine_stage_tear_down();
    return steps;
}

TEST_TIMES(no_single_failure_changes_the_end, (ARRAY_LEN(SCENARIOS) * FAULTS))
{
    size_t index = (size_t)_i / FAULTS;
    unsigned steps = play(index, 0, FAULT_REFUSED);

    for (unsigned step = 1 + (unsigned)_i % EVERY; step <= steps; step += EVERY)
        play(index, step, (enum fault)(_i % FAULTS));
}
