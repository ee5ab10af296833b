/* Who is woken by what, and how circles are told and healed. */
#include "common/base/str.h"
#include "controller/tests/graph_stage.h"

static char begun[256];

static void note_begin(const char *name)
{
    size_t len = strlen(begun);

    ck_assert(str_copy(begun + len, sizeof(begun) - len, arena_printf(graph.arena, "%s ", name)));
}

static void set_up(void)
{
    graph_set_up();
    begun[0] = '\0';
}

TEST_GROUP("wakes", set_up, graph_tear_down);

/* Everything comes to rest; the counts start over. */
static void rest(void)
{
    graph_run(note_begin);
    graph.turns = 0;
    graph.wakes = 0;
}

static void finish(const char *name, enum task_phase phase)
{
    graph_set(name, &(struct graph_status){ .phase = phase, .observed_generation = 1 });
}

#define NEEDS(name) "\"dependsOn\":[\"" name "\"]"

static void put_fan(const char *source, size_t len)
{
    const char *spec = arena_printf(graph.arena, NEEDS("%s"), source);

    for (size_t i = 0; i < len; i++)
        graph_put(arena_printf(graph.arena, "%s-%zu", source, i), spec);
}

TEST(finished_task_wakes_exactly_its_dependents)
{
    static const struct kube_name A = { "default", "a" };

    graph_put("a", "");
    graph_put("b", "");
    put_fan("a", 7);
    put_fan("b", 20);
    rest();
    ck_assert_str_eq(begun, "a b ");

    finish("a", TASK_COMPLETED);
    ck_assert_uint_eq(graph.wakes, 7);
    ck_assert(dependencies_awaited(graph.tasks, &A));
    rest();
    ck_assert(!dependencies_awaited(graph.tasks, &A));
    ck_assert_str_eq(begun, "a b a-0 a-1 a-2 a-3 a-4 a-5 a-6 ");
    ck_assert_int_eq(graph_phase("b-0"), TASK_PENDING);

    finish("a", TASK_PENDING); /* restarted by hand: nobody waits for it any more */
    finish("a", TASK_COMPLETED);
    ck_assert_uint_eq(graph.wakes, 0);
}

TEST(what_changes_no_outcome_wakes_nobody)
{
    static const enum task_phase WAY[] = { TASK_SCHEDULED, TASK_RUNNING, TASK_RUNNING };

    graph_put("a", "\"suspend\":true");
    put_fan("a", 5);
    rest();
    for (size_t i = 0; i < ARRAY_LEN(WAY); i++) {
        finish("a", WAY[i]);
        ck_assert_uint_eq(graph.wakes, 0);
        rest();
    }
    graph_set("a", &(struct graph_status){ TASK_FAILED, "BackingOff", true, 1 });
    ck_assert_uint_eq(graph.wakes, 0);
    ck_assert_str_eq(graph_reason("a-0"), "WaitingForDependencies");

    finish("a", TASK_FAILED);
    ck_assert_uint_eq(graph.wakes, 5);
    rest();
    ck_assert_int_eq(graph_phase("a-0"), TASK_SKIPPED);
    ck_assert_str_eq(graph_message("a-0"), "runIf is success, and Task 'a' failed");
}

TEST(missing_task_is_said_and_healed_when_it_appears)
{
    graph_put("late", NEEDS("a"));
    rest();
    ck_assert_str_eq(graph_reason("late"), "DependencyMissing");
    ck_assert_str_eq(graph_message("late"), "there is no Task 'a'");

    graph_put("a", "");
    ck_assert_uint_eq(graph.wakes, 1);
    rest();
    ck_assert_str_eq(graph_reason("late"), "WaitingForDependencies");
    finish("a", TASK_COMPLETED);
    rest();
    ck_assert_str_eq(begun, "a late ");
}

TEST(deleted_task_is_missing_until_it_is_made_again)
{
    graph_put("a", "");
    graph_put("late", NEEDS("a"));
    rest();

    graph_remove("a");
    ck_assert_uint_eq(graph.wakes, 1);
    rest();
    ck_assert_str_eq(graph_reason("late"), "DependencyMissing");

    graph_put("a", "");
    rest();
    finish("a", TASK_COMPLETED);
    rest();
    ck_assert_str_eq(begun, "a a late ");
}

TEST(each_member_of_a_circle_says_so_and_nobody_else)
{
    graph_put("a", NEEDS("b"));
    rest();
    graph_put("b", NEEDS("c"));
    rest();
    graph_put("outside", NEEDS("a"));
    rest();
    graph_put("c", NEEDS("a"));
    rest();
    ck_assert_str_eq(graph_message("a"), "Tasks wait for each other in a circle: a -> b -> c -> a");
    ck_assert_str_eq(graph_message("b"), "Tasks wait for each other in a circle: b -> c -> a -> b");
    ck_assert_str_eq(graph_message("c"), "Tasks wait for each other in a circle: c -> a -> b -> c");
    ck_assert_str_eq(graph_reason("outside"), "WaitingForDependencies");
    ck_assert_str_eq(begun, "");
}

TEST(circle_is_healed_by_an_edit_of_one_member)
{
    graph_put("a", NEEDS("b"));
    graph_put("b", NEEDS("c"));
    graph_put("c", NEEDS("a"));
    rest();
    ck_assert_str_eq(graph_reason("a"), "DependencyCycle");

    graph_put("b", "");
    graph_run(note_begin);
    ck_assert_str_eq(begun, "b ");
    ck_assert_str_eq(graph_reason("a"), "WaitingForDependencies");
    ck_assert_str_eq(graph_reason("c"), "WaitingForDependencies");
    finish("b", TASK_COMPLETED);
    graph_run(note_begin);
    finish("a", TASK_COMPLETED);
    graph_run(note_begin);
    ck_assert_str_eq(begun, "b a c ");
}

TEST(circle_is_healed_by_a_deletion)
{
    graph_put("a", NEEDS("b"));
    graph_put("b", NEEDS("a"));
    rest();
    ck_assert_str_eq(graph_message("b"), "Tasks wait for each other in a circle: b -> a -> b");

    graph_remove("a");
    rest();
    ck_assert_str_eq(graph_reason("b"), "DependencyMissing");
    graph_put("a", "");
    rest();
    finish("a", TASK_COMPLETED);
    rest();
    ck_assert_str_eq(begun, "a b ");
}

TEST(task_that_waits_for_itself_is_a_circle)
{
    graph_put("a", NEEDS("a"));
    rest();
    ck_assert_str_eq(graph_message("a"), "Tasks wait for each other in a circle: a -> a");
    graph_put("a", "");
    rest();
    ck_assert_str_eq(begun, "a ");
}

TEST(fan_in_says_few_things_while_its_dependencies_end_in_order)
{
    unsigned version;

    graph_put("a", "");
    graph_put("b", "");
    graph_put("c", "");
    graph_put("join", "\"dependsOn\":[\"a\",\"b\",\"c\"]");
    rest();
    version = graph.version;
    finish("a", TASK_COMPLETED);
    finish("b", TASK_COMPLETED);
    rest();
    ck_assert_uint_eq(graph.version, version + 2); /* it wrote nothing */
    ck_assert_str_eq(graph_message("join"), "Task 'c' has not finished");
    finish("c", TASK_COMPLETED);
    rest();
    ck_assert_str_eq(begun, "a b c join ");
}

/* Names in the queue. */
static const char *woken(void)
{
    struct kube_name name;
    const char *text = "";

    while (workqueue_len(graph.queue)) {
        ck_assert(workqueue_get(graph.queue, &name));
        workqueue_done(graph.queue, &name);
        text = arena_printf(graph.arena, "%s %s", text, name.name);
    }
    return text;
}

static void begin_c(void)
{
    graph_set("c", &(struct graph_status){ .phase = TASK_RUNNING, .observed_generation = 1 });
}

static void skip_c(void)
{
    graph_set("c", &(struct graph_status){ .phase = TASK_SKIPPED, .observed_generation = 1 });
}

static void delete_c(void)
{
    graph_remove("c");
}

static void edit_dependencies_of_c(void)
{
    graph_put("c", NEEDS("b"));
}

static void edit_c(void)
{
    graph_put("c", "\"dependsOn\":[\"mortal\",\"b\"],\"priority\":7");
}

static void begin_and_end_c(void)
{
    begin_c();
    woken();
    finish("c", TASK_COMPLETED);
}

static const struct {
    void (*change)(void);
    const char *woken;
} RELEASES[] = {
    { begin_c, " mortal c" },  { skip_c, " mortal c" },
    { delete_c, " mortal c" }, { edit_dependencies_of_c, " mortal c" },
    { edit_c, " c" },          { begin_and_end_c, " c" },
};

TEST_EACH(task_with_a_time_to_live_is_woken_when_somebody_waits_for_it_no_more, RELEASES)
{
    graph_put("mortal", "\"ttlSecondsAfterFinished\":1");
    graph_put("b", "");
    graph_put("c", "\"dependsOn\":[\"mortal\",\"b\"]");
    finish("mortal", TASK_COMPLETED);
    woken();
    RELEASES[_i].change();
    ck_assert_str_eq(woken(), RELEASES[_i].woken);
}
