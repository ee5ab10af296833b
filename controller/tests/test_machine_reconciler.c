/* Turns of a ScheduledMachine: phases, other owners, another cluster, drain, emergency and deletion. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/finalizer.h"
#include "common/kube/kinds.h"
#include "controller/tests/machine_stage.h"

static void expect(const char *phase, const char *left)
{
    ck_assert_str_eq(machine_stage_phase(), phase);
    ck_assert_str_eq(machine_stage_left(), left);
    ck_assert_msg(!mstage.broken, "%s", mstage.broken);
}

static const char *meta_of(const cJSON *object, const char *map, const char *key)
{
    return json_string(json_path(object, "metadata", map, key, NULL), "");
}

static void open_it(void)
{
    machine_stage_put(STAGE_ANYTIME, "");
    machine_stage_run();
    expect("Active", "B I M N p0");
}

TEST_GROUP("reconciler", machine_stage_set_up, machine_stage_tear_down);

TEST(open_schedule_makes_three_objects_and_a_closed_one_removes_them)
{
    open_it();
    ck_assert_str_eq(machine_stage_condition("Ready", "status"), "True");
    ck_assert_str_eq(machine_stage_condition("NodeReachable", "reason"), "NodeFound");
    ck_assert_str_ne(machine_stage_text("lastScheduledTime"), "");
    machine_stage_put(STAGE_NEVER, "");
    machine_stage_run();
    expect("Inactive", "p0");
    ck_assert_str_eq(machine_stage_condition("Ready", "status"), "False");
    ck_assert_uint_eq(mstage.machines, 1);
}

TEST(machine_at_rest_sends_no_write)
{
    open_it();
    for (int i = 0; i < 5; i++) {
        struct fake_request *requests;
        size_t before = fake_api_requests(mstage.api, mstage.arena, &requests);

        ck_assert_int_eq(machine_stage_turn(), 0);
        size_t after = fake_api_requests(mstage.api, mstage.arena, &requests);
        for (size_t k = before; k < after; k++)
            ck_assert_str_eq(requests[k].method, "GET");
    }
}

TEST(drain_evicts_and_waits_for_budgets_until_its_timeout)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.eviction = 429;
    machine_stage_put(STAGE_NEVER, "");
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(machine_stage_turn(), 0);
    machine_stage_wait_ms(6000);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(machine_stage_turn(), 0);
        machine_stage_wait_ms(6000);
    }
    expect("ShuttingDown", "B I M N p1");
    ck_assert_str_eq(machine_stage_condition("Draining", "status"), "True");
    mstage.eviction = 201;
    machine_stage_run();
    expect("Inactive", "p0");
    ck_assert_uint_eq(mstage.evictions, 1);
}

/* M2 */
TEST(drain_that_cannot_list_its_pods_ends_by_its_timeout)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.hides_pods = true;
    machine_stage_put(STAGE_NEVER, "");
    for (int i = 0; i < 40; i++) {
        (void)!machine_stage_turn();
        machine_stage_wait_ms(2000);
    }
    ck_assert(kube_is_deleting(machine_stage_get(&KIND_MACHINE, "one")));
    machine_stage_run();
    expect("Inactive", "p1");
}

TEST(emergency_that_cannot_list_its_pods_goes_on)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.hides_pods = true;
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    machine_stage_run();
    expect("Disabled", "p1");
}

TEST(budget_that_allows_nothing_does_not_keep_the_machine)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.eviction = 429;
    machine_stage_put(STAGE_NEVER, "");
    machine_stage_run();
    expect("Inactive", "p1");
    ck_assert_uint_eq(mstage.evictions, 0);
}

TEST(window_that_opens_again_before_the_drain_uncordons)
{
    open_it();
    machine_stage_put(STAGE_NEVER, "");
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(machine_stage_turn(), 0);
    ck_assert(json_bool(
        json_path(machine_stage_get(&KIND_NODE, "node-1"), "spec", "unschedulable", NULL), false));
    machine_stage_put(STAGE_ANYTIME, "");
    machine_stage_run();
    expect("Active", "B I M N p0");
    ck_assert_ptr_null(
        json_path(machine_stage_get(&KIND_NODE, "node-1"), "spec", "unschedulable", NULL));
    ck_assert_uint_eq(mstage.machines, 1);
}

static const struct kube_kind *const TAKEN[] = { &STAGE_BOOTSTRAP, &STAGE_INFRASTRUCTURE,
                                                 &KIND_MACHINE };

/* M1: the object has our name and our label, and an owner of our name with another uid. */
TEST_EACH(object_of_another_owner_is_never_touched, TAKEN)
{
    machine_stage_put_foreign(TAKEN[_i]);
    const cJSON *was = machine_stage_get(TAKEN[_i], "one");

    machine_stage_put(STAGE_ANYTIME, "");
    for (int i = 0; i < 30; i++) {
        (void)!machine_stage_turn();
        machine_stage_wait_ms(40000);
    }
    ck_assert_str_eq(machine_stage_phase(), "Error");
    ck_assert_msg(strstr(machine_stage_text("message"), "NameTaken"), "%s",
                  machine_stage_text("message"));
    machine_stage_delete();
    machine_stage_run();
    ck_assert_str_eq(machine_stage_phase(), "gone");
    ck_assert(json_equal(was, machine_stage_get(TAKEN[_i], "one")));
}

/* M1: it came between the look and the creation. */
TEST_EACH(object_of_another_owner_that_comes_in_between_is_never_touched, TAKEN)
{
    mstage.intruder = TAKEN[_i];
    machine_stage_put(STAGE_ANYTIME, "");
    for (int i = 0; i < 10; i++)
        (void)!machine_stage_turn();
    ck_assert_str_eq(machine_stage_phase(), "Error");
    const cJSON *was = machine_stage_get(TAKEN[_i], "one");
    machine_stage_delete();
    machine_stage_run();
    ck_assert_str_eq(machine_stage_phase(), "gone");
    ck_assert(was && json_equal(was, machine_stage_get(TAKEN[_i], "one")));
    ck_assert_uint_eq(mstage.machines, TAKEN[_i] == &KIND_MACHINE); /* that of the other owner */
}

/* M1: another object has the name by the time of the deletion. */
TEST_EACH(object_that_took_the_place_of_ours_is_not_deleted, TAKEN)
{
    if (TAKEN[_i] == &KIND_MACHINE) /* its finalizer keeps the name */
        return;
    open_it();
    mstage.usurper = TAKEN[_i];
    machine_stage_put(STAGE_NEVER, "");
    machine_stage_run();
    ck_assert_str_eq(machine_stage_phase(), "Inactive");
    ck_assert_ptr_nonnull(machine_stage_get(TAKEN[_i], "one"));
}

/* M5 */
TEST(node_of_another_cluster_is_never_touched)
{
    mstage.provider_id = "kind://another";
    machine_stage_put(STAGE_ANYTIME,
                      ",\"nodeTaints\":[{\"key\":\"ours\",\"effect\":\"NoSchedule\"}]");
    machine_stage_run();
    const cJSON *was = machine_stage_get(&KIND_NODE, "node-1");
    ck_assert_str_eq(machine_stage_condition("NodeReachable", "reason"), "NodeElsewhere");
    ck_assert_str_eq(machine_stage_condition("NodeTainted", "reason"), "NodeElsewhere");
    machine_stage_put_pod("a");
    mstage.still = true;
    machine_stage_put(STAGE_NEVER, "");
    for (int i = 0; i < 10; i++) {
        (void)!machine_stage_turn();
        machine_stage_wait_ms(2000);
    }
    ck_assert(json_equal(was, machine_stage_get(&KIND_NODE, "node-1")));
    ck_assert_uint_eq(mstage.evictions, 0);
    ck_assert(kube_is_deleting(machine_stage_get(&KIND_MACHINE, "one")));
}

/* Of a Node of this cluster, whose providerID is known: Cluster API says that it belongs to another Machine. */
TEST(node_of_another_machine_is_never_touched)
{
    open_it();
    machine_stage_annotate_node(NODE_ANNOTATION_MACHINE, "theirs");
    machine_stage_put_pod("a");
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    const cJSON *was = machine_stage_get(&KIND_NODE, "node-1");
    ck_assert_int_eq(machine_stage_turn(), 0);
    ck_assert_str_eq(machine_stage_condition("NodeReachable", "reason"), "NodeElsewhere");
    ck_assert_str_eq(machine_stage_phase(), "Active");
    mstage.still = true;
    machine_stage_put(STAGE_NEVER, "");
    for (int i = 0; i < 10; i++) {
        (void)!machine_stage_turn();
        machine_stage_wait_ms(2000);
    }
    ck_assert(json_equal(was, machine_stage_get(&KIND_NODE, "node-1")));
    ck_assert_uint_eq(mstage.evictions, 0);
    ck_assert(kube_is_deleting(machine_stage_get(&KIND_MACHINE, "one")));
}

TEST(taints_are_applied_and_others_stay)
{
    machine_stage_put(STAGE_ANYTIME,
                      ",\"nodeTaints\":[{\"key\":\"ours\",\"effect\":\"NoSchedule\"}]");
    machine_stage_run();
    const cJSON *node = machine_stage_get(&KIND_NODE, "node-1");
    ck_assert_uint_eq(json_len(json_path(node, "spec", "taints", NULL)), 2);
    ck_assert_str_eq(machine_stage_condition("NodeTainted", "reason"), "Applied");
    machine_stage_put(STAGE_ANYTIME, "");
    machine_stage_run();
    node = machine_stage_get(&KIND_NODE, "node-1");
    ck_assert_uint_eq(json_len(json_path(node, "spec", "taints", NULL)), 1);
    ck_assert_str_eq(meta_of(node, "labels", "a"), "b");
}

#define COMMANDS(list) ",\"killIfCommands\":[" list "]"

static const char *agent_text(void)
{
    return json_string(json_path(machine_stage_agent(), "data", "reclaim.toml", NULL), "");
}

static const char *agent_label(void)
{
    return meta_of(machine_stage_get(&KIND_NODE, "node-1"), "labels", NODE_LABEL_AGENT);
}

TEST(commands_reach_the_agent_of_the_node_and_go_with_the_field)
{
    machine_stage_put(STAGE_ANYTIME, COMMANDS("\"steam\""));
    machine_stage_run();
    expect("Active", "B I M N A p0");
    ck_assert_str_eq(agent_label(), "enabled");
    ck_assert_ptr_nonnull(strstr(agent_text(), "match_commands = [\"steam\"]"));
    machine_stage_put(STAGE_ANYTIME, COMMANDS("\"steam\",\"doom\""));
    machine_stage_run();
    ck_assert_ptr_nonnull(strstr(agent_text(), "[\"steam\",\"doom\"]"));
    machine_stage_put(STAGE_ANYTIME, COMMANDS(""));
    machine_stage_run();
    expect("Active", "B I M N p0");
    ck_assert_str_eq(agent_label(), "");
    ck_assert_str_eq(meta_of(machine_stage_get(&KIND_NODE, "node-1"), "labels", "a"), "b");
}

/* M4: also if the Node stays. */
TEST(agent_goes_with_the_machine)
{
    mstage.keeps_node = true;
    machine_stage_put(STAGE_ANYTIME, COMMANDS("\"steam\""));
    machine_stage_run();
    machine_stage_put(STAGE_NEVER, COMMANDS("\"steam\""));
    machine_stage_run();
    expect("Inactive", "N p0");
    ck_assert_str_eq(agent_label(), "");
}

/* M1 */
TEST(config_map_of_another_owner_is_never_touched)
{
    machine_stage_put_foreign_agent();
    const cJSON *was = machine_stage_agent();

    machine_stage_put(STAGE_ANYTIME, COMMANDS("\"steam\""));
    machine_stage_run();
    ck_assert_str_eq(agent_label(), "");
    machine_stage_delete();
    machine_stage_run();
    expect("gone", "A p0");
    ck_assert(json_equal(was, machine_stage_agent()));
}

TEST(emergency_deletes_pods_and_stays_away)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.eviction = 429;
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    machine_stage_run();
    expect("Disabled", "p0");
    ck_assert_uint_eq(mstage.evictions, 0);
    ck_assert_uint_ge(mstage.pods_deleted, 1);
    machine_stage_wait_ms(86400000);
    machine_stage_run();
    expect("Disabled", "p0");
    ck_assert_uint_eq(mstage.machines, 1);
}

/* After so many turns of it. */
TEST_TIMES(node_that_goes_in_the_middle_of_an_emergency_holds_up_nothing, 10)
{
    const struct kube_name node = { .name = "node-1" };

    open_it();
    machine_stage_put_pod("a");
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    for (int i = 0; i < 20 && !str_equal(machine_stage_phase(), "EmergencyRemove"); i++)
        (void)!machine_stage_turn();
    expect("EmergencyRemove", "B I M N p1");
    for (int i = 0; i < _i; i++)
        (void)!machine_stage_turn();
    fake_api_delete(mstage.api, &KIND_NODE, &node);
    machine_stage_run();
    ck_assert_str_eq(machine_stage_phase(), "Disabled");
    ck_assert(!strchr(machine_stage_left(), 'M'));
    ck_assert_msg(!mstage.broken, "%s", mstage.broken);
}

TEST(active_machine_that_loses_its_node_goes_on)
{
    const struct kube_name node = { .name = "node-1" };

    open_it();
    mstage.still = true; /* otherwise the Machine gets another one */
    fake_api_delete(mstage.api, &KIND_NODE, &node);
    machine_stage_run();
    expect("Active", "B I M p0");
    machine_stage_put(STAGE_NEVER, "");
    mstage.still = false;
    machine_stage_run();
    expect("Inactive", "p0");
}

TEST(node_that_outlives_its_machine_loses_the_annotations)
{
    open_it();
    mstage.keeps_node = true;
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM_REASON, "gaming");
    machine_stage_run();
    expect("Disabled", "N p0");
    const cJSON *node = machine_stage_get(&KIND_NODE, "node-1");
    ck_assert_str_eq(meta_of(node, "annotations", NODE_ANNOTATION_RECLAIM), "");
    ck_assert_str_eq(meta_of(node, "annotations", NODE_ANNOTATION_RECLAIM_REASON), "");
    ck_assert_str_eq(machine_stage_text("phase"), "Disabled");
}

/* M2: it would go on against budgets. */
TEST(deletion_during_a_drain_leaves_the_drain_to_cluster_api)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.eviction = 429;
    mstage.still = true;
    machine_stage_put(STAGE_NEVER, "");
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(machine_stage_turn(), 0);
        machine_stage_wait_ms(3000);
    }
    ck_assert_str_eq(machine_stage_condition("Draining", "status"), "True");
    machine_stage_delete();
    ck_assert_int_eq(machine_stage_turn(), 0);
    const cJSON *left = machine_stage_get(&KIND_MACHINE, "one");
    ck_assert(kube_is_deleting(left));
    ck_assert_str_eq(meta_of(left, "annotations", "machine.cluster.x-k8s.io/exclude-node-draining"),
                     "");
}

/* A kubelet writes its Node all the time, and most of it wakes nothing: the turn must come again by itself. */
TEST(node_that_changed_meanwhile_is_a_conflict)
{
    open_it();
    machine_stage_put(STAGE_NEVER, "");
    ck_assert_int_eq(machine_stage_turn(), 0);
    mstage.is_late = true;
    machine_stage_annotate_node("theirs", "b");
    ck_assert_int_eq(machine_stage_turn(), -ERROR_CONFLICT);
}

TEST(annotation_other_than_true_is_none)
{
    open_it();
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "True");
    machine_stage_run();
    expect("Active", "B I M N p0");
}

TEST(kill_switch_asks_no_budget_and_comes_back_when_it_is_off)
{
    open_it();
    machine_stage_put(STAGE_ANYTIME, ",\"killSwitch\":true");
    machine_stage_run();
    expect("Terminated", "p0");
    machine_stage_put(STAGE_ANYTIME, "");
    machine_stage_run();
    expect("Active", "B I M N p0");
}

TEST(refused_creation_is_an_error_and_is_tried_again)
{
    mstage.refusal = 403;
    machine_stage_put(STAGE_ANYTIME, "");
    for (int i = 0; i < 5; i++)
        (void)!machine_stage_turn();
    expect("Error", "p0");
    ck_assert_str_eq(machine_stage_condition("Ready", "reason"), "MachineCreationFailed");
    mstage.refusal = 0;
    machine_stage_run();
    expect("Active", "B I M N p0");
}

TEST(kind_that_comes_later_is_found)
{
    mstage.has_no_machines = true;
    machine_stage_put(STAGE_ANYTIME, "");
    for (int i = 0; i < 5; i++)
        (void)!machine_stage_turn();
    expect("Error", "B I p0");
    ck_assert_str_eq(machine_stage_condition("Ready", "reason"), "MachineCreationFailed");
    mstage.has_no_machines = false;
    machine_stage_run();
    expect("Active", "B I M N p0");
}

TEST(schedule_that_cannot_be_read_keeps_what_exists)
{
    open_it();
    machine_stage_put("\"daysOfWeek\":[\"monday\"],\"hoursOfDay\":[\"0-23\"]", "");
    machine_stage_run();
    expect("Error", "B I M N p0");
    machine_stage_put(STAGE_ANYTIME, "");
    machine_stage_run();
    expect("Active", "B I M N p0");
    ck_assert_uint_eq(mstage.machines, 1);
}

/* M4: after so many turns, in whatever phase it is then. */
TEST_TIMES(nothing_is_left_after_a_deletion, 12)
{
    machine_stage_put(_i < 8 ? STAGE_ANYTIME : STAGE_NEVER, "");
    for (int i = 0; i < _i; i++)
        (void)!machine_stage_turn();
    machine_stage_delete();
    machine_stage_run();
    expect("gone", "p0");
}

static const char *const SPECS[] = { ",\"killSwitch\":true", "" };

TEST_EACH(nothing_is_left_after_a_deletion_in_the_middle_of_a_removal, SPECS)
{
    open_it();
    machine_stage_put(*SPECS[_i] ? STAGE_ANYTIME : STAGE_NEVER, SPECS[_i]);
    (void)!machine_stage_turn();
    (void)!machine_stage_turn();
    machine_stage_delete();
    machine_stage_run();
    expect("gone", "p0");
}

TEST(label_that_was_lost_comes_back)
{
    open_it();
    cJSON *copy = json_copy(machine_stage_get(&KIND_MACHINE, "one"));

    json_remove((cJSON *)(uintptr_t)json_path(copy, "metadata", "labels", NULL), MACHINE_LABEL);
    fake_api_put(mstage.api, &KIND_MACHINE, copy);
    json_free(copy);
    machine_stage_run();
    ck_assert_str_eq(meta_of(machine_stage_get(&KIND_MACHINE, "one"), "labels", MACHINE_LABEL),
                     "one");
    ck_assert_uint_eq(mstage.machines, 1);
}

TEST(machine_that_somebody_deleted_is_made_again)
{
    const struct kube_name name = { "default", "one" };

    open_it();
    fake_api_delete(mstage.api, &KIND_MACHINE, &name);
    machine_stage_run();
    expect("Active", "B I M N p0");
    ck_assert_uint_eq(mstage.machines, 2);
}

/* Cluster API deletes both before it lets go of the Machine, and would wait for new ones as well. */
TEST(nothing_is_made_while_the_machine_is_being_deleted)
{
    const struct kube_name name = { "default", "one" };

    open_it();
    mstage.still = true;
    fake_api_delete(mstage.api, &KIND_MACHINE, &name);
    fake_api_delete(mstage.api, &STAGE_BOOTSTRAP, &name);
    fake_api_delete(mstage.api, &STAGE_INFRASTRUCTURE, &name);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(machine_stage_turn(), 0);
    expect("Active", "M N p0");
    mstage.still = false;
    machine_stage_run();
    expect("Active", "B I M N p0");
}

static const struct kube_kind *const PART_KINDS[] = { &STAGE_BOOTSTRAP, &STAGE_INFRASTRUCTURE };

/* The role names the kinds of k0smotron.io, and a spec may name another one. */
TEST_EACH(kind_that_may_not_be_read_is_an_error_and_holds_up_no_deletion, PART_KINDS)
{
    mstage.unreadable = PART_KINDS[_i];
    mstage.unread = 403;
    machine_stage_put(STAGE_ANYTIME, "");
    for (int i = 0; i < 5; i++)
        (void)!machine_stage_turn();
    ck_assert_str_eq(machine_stage_phase(), "Error");
    ck_assert_str_eq(machine_stage_condition("Ready", "reason"), "MachineCreationFailed");
    ck_assert_ptr_nonnull(strstr(machine_stage_text("message"), "not readable"));
    machine_stage_delete();
    machine_stage_run();
    expect("gone", "p0");
}

/* M4: a right that was lost does not make an object disappear. */
TEST_EACH(object_that_may_not_be_read_any_more_is_not_forgotten, PART_KINDS)
{
    open_it();
    mstage.unreadable = PART_KINDS[_i];
    mstage.unread = 403;
    machine_stage_put(STAGE_ANYTIME, ",\"killSwitch\":true");
    machine_stage_run();
    expect("Terminated", PART_KINDS[_i] == &STAGE_BOOTSTRAP ? "B p0" : "I p0");
    ck_assert_str_eq(machine_stage_condition("Ready", "reason"), "MachineDeletionFailed");
    mstage.unreadable = NULL;
    machine_stage_wait_ms(MACHINE_MAX_RETRY_MS);
    machine_stage_run();
    expect("Terminated", "p0");
}

static const bool FORCES[] = { false, true };

/* The webhook that converts them may be gone with the provider, while the CRD stays. */
TEST_EACH(deletion_whose_objects_cannot_be_read_is_late_and_can_be_forced, FORCES)
{
    const struct kube_name name = { "default", "one" };

    open_it();
    const char *uid = kube_uid(machine_stage_get(&KIND_SCHEDULEDMACHINE, "one"));
    mstage.flags.force_release = FORCES[_i];
    mstage.unreadable = &STAGE_INFRASTRUCTURE;
    mstage.unread = 500;
    machine_stage_delete();
    ck_assert_int_lt(machine_stage_turn(), 0);
    machine_stage_wait_ms(MACHINE_CLEANUP_MS);
    (void)!machine_stage_turn();
    ck_assert(machine_notes_of(mstage.deps.notes, &name, uid)->told_late);
    ck_assert_int_eq(str_equal(machine_stage_phase(), "gone"), FORCES[_i]);
}

/* A Machine that no watch brings is read. */
TEST(deletion_ends_without_the_kinds_of_cluster_api)
{
    machine_stage_put(STAGE_NEVER, "");
    machine_stage_run();
    expect("Inactive", "p0");
    machine_stage_end_cluster_api();
    ck_assert_int_eq(machine_stage_turn(), 0);
    expect("Inactive", "p0");
    machine_stage_delete();
    machine_stage_run();
    expect("gone", "p0");
}

static const int NODE_REFUSALS[] = { 403, 422, 500 };

/* A policy of the cluster may refuse each patch of the Node. */
TEST_EACH(node_that_cannot_be_patched_holds_up_no_kill_switch, NODE_REFUSALS)
{
    machine_stage_put(STAGE_ANYTIME, COMMANDS("\"steam\""));
    machine_stage_run();
    ck_assert_str_eq(agent_label(), "enabled");
    mstage.node_refusal = NODE_REFUSALS[_i];
    machine_stage_put(STAGE_ANYTIME, COMMANDS("\"steam\"") ",\"killSwitch\":true");
    for (int i = 0; i < 20; i++)
        (void)!machine_stage_turn();
    ck_assert(kube_is_deleting(machine_stage_get(&KIND_MACHINE, "one")));
    machine_stage_run();
    ck_assert_str_eq(machine_stage_phase(), "Terminated");
    ck_assert_ptr_null(machine_stage_get(&KIND_MACHINE, "one"));
}

TEST_EACH(node_that_cannot_be_patched_holds_up_no_emergency, NODE_REFUSALS)
{
    open_it();
    machine_stage_put_pod("a");
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    mstage.node_refusal = NODE_REFUSALS[_i];
    machine_stage_run();
    expect("Disabled", "p0");
    ck_assert_uint_ge(mstage.pods_deleted, 1);
}

/* No watch wakes it: the Machine, by which a Node is found, is gone. */
TEST(emergency_ends_as_soon_as_the_node_is_clean)
{
    open_it();
    mstage.keeps_node = true;
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    for (int i = 0; i < 40 && node_has_reclaim_annotations(machine_stage_get(&KIND_NODE, "node-1"));
         i++) {
        (void)!machine_stage_turn();
        (void)machine_stage_manage();
    }
    ck_assert_str_eq(machine_stage_phase(), "EmergencyRemove");
    ck_assert_uint_le(mstage.again_ms, 1000);
}

/* A wait is measured on a clock that may be set back. */
TEST(clock_that_is_set_back_prolongs_no_wait)
{
    mstage.refusal = 403;
    machine_stage_put(STAGE_ANYTIME, "");
    for (int i = 0; i < 5; i++)
        (void)!machine_stage_turn();
    expect("Error", "p0");
    mstage.refusal = 0;
    fake_clock_step(&mstage.clock, -86400000);
    machine_stage_run();
    expect("Active", "B I M N p0");
}

static bool drains(void)
{
    return str_equal(machine_stage_condition("Draining", "status"), "True");
}

static bool is_removed(void)
{
    return kube_is_deleting(machine_stage_get(&KIND_MACHINE, "one"));
}

static int seconds_until(bool is_so(void))
{
    int seconds = 0;

    for (; !is_so() && seconds < 10000; seconds++) {
        machine_stage_wait_ms(1000);
        (void)!machine_stage_turn();
    }
    return seconds;
}

/* A grace period of 5 s and a drain of 60 s begin, with a pod that no budget lets go. */
static void begin_drain(void)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.eviction = 429;
    mstage.still = true;
    machine_stage_put(STAGE_NEVER, "");
    ck_assert_int_eq(machine_stage_turn(), 0);
    ck_assert_int_eq(machine_stage_turn(), 0);
    ck_assert_str_eq(machine_stage_phase(), "ShuttingDown");
}

static const int64_t CLOCK_STEPS_MS[] = { -3600000, 3600000 };

TEST_EACH(step_of_the_clock_neither_ends_nor_prolongs_a_drain, CLOCK_STEPS_MS)
{
    begin_drain();
    fake_clock_step(&mstage.clock, CLOCK_STEPS_MS[_i]);
    ck_assert_int_eq(seconds_until(drains), 5);
    machine_stage_wait_ms(20000);
    ck_assert_int_eq(machine_stage_turn(), 0);
    fake_clock_step(&mstage.clock, CLOCK_STEPS_MS[_i]);
    ck_assert_int_eq(seconds_until(is_removed), 40);
    ck_assert_uint_eq(mstage.evictions, 0);
}

/* It cannot know how long the grace period, or the drain, has lasted. */
TEST(next_leader_whose_clock_is_behind_begins_a_grace_period_and_a_drain_again_at_most)
{
    begin_drain();
    fake_clock_step(&mstage.clock, -3600000);
    mstage.dead = true;
    ck_assert_int_le(seconds_until(drains), 6);
    machine_stage_wait_ms(20000);
    fake_clock_step(&mstage.clock, -3600000);
    mstage.dead = true;
    ck_assert_int_le(seconds_until(is_removed), 61);
}

/* The clocks agree. */
TEST(next_leader_ends_a_drain_at_the_time_of_the_last_one)
{
    begin_drain();
    ck_assert_int_eq(seconds_until(drains), 5);
    machine_stage_wait_ms(20000);
    mstage.dead = true;
    ck_assert_int_eq(seconds_until(is_removed), 40);
}

/* A provider may need hours, or a person, to let go of it. */
TEST(object_that_does_not_go_is_looked_at_less_and_less)
{
    open_it();
    cJSON *copy = json_copy(machine_stage_get(&STAGE_INFRASTRUCTURE, "one"));
    json_add_string(json_set_array((cJSON *)(uintptr_t)json_get(copy, "metadata"), "finalizers"),
                    "theirs");
    fake_api_put(mstage.api, &STAGE_INFRASTRUCTURE, copy);
    json_free(copy);
    machine_stage_delete();
    for (int i = 0; i < 6; i++) {
        (void)!machine_stage_turn();
        (void)machine_stage_manage();
    }
    expect("Active", "I p0");
    ck_assert_uint_eq(mstage.again_ms, 2000);
    machine_stage_wait_ms(3600000);
    ck_assert_int_eq(machine_stage_turn(), 0);
    ck_assert_uint_eq(mstage.again_ms, 60000);
}

/* A leader was away over the grace period, or there is none. */
TEST(node_is_cordoned_before_a_drain_that_begins_late)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.eviction = 429;
    machine_stage_put(STAGE_NEVER, "");
    ck_assert_int_eq(machine_stage_turn(), 0);
    ck_assert_str_eq(machine_stage_phase(), "ShuttingDown");
    machine_stage_wait_ms(6000);
    ck_assert_int_eq(machine_stage_turn(), 0);
    ck_assert_str_eq(machine_stage_condition("Draining", "status"), "True");
    ck_assert(json_bool(
        json_path(machine_stage_get(&KIND_NODE, "node-1"), "spec", "unschedulable", NULL), false));
}

TEST_EACH(node_that_cannot_be_cordoned_holds_up_no_drain, NODE_REFUSALS)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.node_refusal = NODE_REFUSALS[_i];
    machine_stage_put(STAGE_NEVER, "");
    for (int i = 0; i < 20; i++) {
        (void)!machine_stage_turn();
        machine_stage_wait_ms(1000);
    }
    ck_assert_uint_eq(mstage.evictions, 1);
    machine_stage_run();
    expect("Inactive", "p0");
}

/* The webhook of a provider that converts them does not answer. */
TEST_EACH(objects_that_cannot_be_read_hold_up_no_kill_switch, PART_KINDS)
{
    open_it();
    mstage.unreadable = PART_KINDS[_i];
    mstage.unread = 500;
    machine_stage_put(STAGE_ANYTIME, ",\"killSwitch\":true");
    for (int i = 0; i < 5; i++)
        (void)!machine_stage_turn();
    ck_assert_str_eq(machine_stage_phase(), "Terminated");
    ck_assert(kube_is_deleting(machine_stage_get(&KIND_MACHINE, "one")));
    machine_stage_run();
    mstage.unreadable = NULL;
    machine_stage_wait_ms(MACHINE_MAX_RETRY_MS);
    machine_stage_run();
    expect("Terminated", "p0");
}

TEST_EACH(objects_that_cannot_be_read_hold_up_no_emergency, PART_KINDS)
{
    open_it();
    machine_stage_put_pod("a");
    mstage.unreadable = PART_KINDS[_i];
    mstage.unread = 500;
    machine_stage_annotate_node(NODE_ANNOTATION_RECLAIM, "true");
    for (int i = 0; i < 8; i++)
        (void)!machine_stage_turn();
    ck_assert_str_eq(machine_stage_phase(), "EmergencyRemove");
    ck_assert(kube_is_deleting(machine_stage_get(&KIND_MACHINE, "one")));
    ck_assert_uint_ge(mstage.pods_deleted, 1);
    machine_stage_run();
    mstage.unreadable = NULL;
    machine_stage_wait_ms(MACHINE_MAX_RETRY_MS);
    machine_stage_run();
    expect("Disabled", "p0");
}
