/* The Node of a Machine, its annotations, and the patches that the controller makes of it. */
#include <string.h>

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/machine/machine_node.h"

TEST_GROUP("node", arena_set_up, arena_tear_down);

/* Of Cluster API. */
#define NODE_OF(machine, ns, cluster)                                                              \
    "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"cluster.x-k8s.io/machine\":\"" machine       \
    "\",\"cluster.x-k8s.io/cluster-namespace\":\"" ns                                              \
    "\",\"cluster.x-k8s.io/cluster-name\":\"" cluster "\"}},\"spec\":{\"providerID\":\"p://1\"}}"
#define CLUSTER_MACHINE                                                                            \
    "{\"metadata\":{\"name\":\"one\",\"namespace\":\"a\"},\"spec\":{\"providerID\":\"p://1\","     \
    "\"clusterName\":\"c\"},\"status\":{\"nodeRef\":{\"name\":\"n\"}}}"
#define MACHINE "{\"spec\":{\"providerID\":\"p://1\"},\"status\":{\"nodeRef\":{\"name\":\"n\"}}}"

static const struct {
    const char *machine, *node; /* node NULL: none */
    enum machine_node is;
} NODES[] = {
    { MACHINE, "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"providerID\":\"p://1\"}}",
      MACHINE_NODE_HERE },
    { MACHINE, "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"providerID\":\"p://2\"}}",
      MACHINE_NODE_ELSEWHERE },
    { MACHINE, "{\"metadata\":{\"name\":\"n\"},\"spec\":{}}", MACHINE_NODE_ELSEWHERE },
    { MACHINE, "{\"metadata\":{\"name\":\"m\"},\"spec\":{\"providerID\":\"p://1\"}}",
      MACHINE_NODE_NONE },
    { MACHINE, NULL, MACHINE_NODE_NONE },
    { "{\"spec\":{\"providerID\":\"p://1\"}}",
      "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"providerID\":\"p://1\"}}", MACHINE_NODE_NONE },
    { "{\"status\":{\"nodeRef\":{\"name\":\"n\"}}}", "{\"metadata\":{\"name\":\"n\"}}",
      MACHINE_NODE_ELSEWHERE },
    { CLUSTER_MACHINE, NODE_OF("one", "a", "c"), MACHINE_NODE_HERE },
    { CLUSTER_MACHINE, NODE_OF("two", "a", "c"), MACHINE_NODE_ELSEWHERE },
    { CLUSTER_MACHINE, NODE_OF("one", "b", "c"), MACHINE_NODE_ELSEWHERE },
    { CLUSTER_MACHINE, NODE_OF("one", "a", "d"), MACHINE_NODE_ELSEWHERE },
    { CLUSTER_MACHINE, NODE_OF("", "", ""), MACHINE_NODE_ELSEWHERE },
    /* another client annotated it */
    { CLUSTER_MACHINE,
      "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"machine\":\"two\"}},"
      "\"spec\":{\"providerID\":\"p://1\"}}",
      MACHINE_NODE_HERE },
};

TEST_EACH(node_is_that_of_the_name_with_the_provider_id_of_the_machine, NODES)
{
    const cJSON *node = NODES[_i].node ? parsed(arena, NODES[_i].node) : NULL;

    ck_assert_int_eq(machine_node_of(parsed(arena, NODES[_i].machine), node), NODES[_i].is);
}

static const struct {
    const char *value; /* JSON */
    bool reclaimed;
} VALUES[] = {
    { "\"true\"", true }, { "\"True\"", false },  { "\"yes\"", false },
    { "\"\"", false },    { "\"true \"", false },
};

TEST_EACH(only_the_literal_true_reclaims, VALUES)
{
    const cJSON *node = parsed(
        arena,
        arena_printf(arena, "{\"metadata\":{\"annotations\":{\"" NODE_ANNOTATION_RECLAIM "\":%s}}}",
                     VALUES[_i].value));

    ck_assert_int_eq(node_is_reclaimed(node), VALUES[_i].reclaimed);
    ck_assert(node_has_reclaim_annotations(node));
    ck_assert(!node_is_reclaimed(parsed(arena, "{}")));
}

static const cJSON *node_with(const char *annotations, const char *spec)
{
    return parsed(arena, arena_printf(arena,
                                      "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\","
                                      "\"resourceVersion\":\"7\"%s},\"spec\":{%s}}",
                                      annotations, spec));
}

/* Also fails unless the patch is bound to the object that was read. */
static void expect_patch(const cJSON *operations, const char *text)
{
    ck_assert_ptr_nonnull(operations);
    const char *is = json_text(arena, operations, NULL);
    ck_assert(str_has_prefix(is, "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u\"},"
                                 "{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\","
                                 "\"value\":\"7\"},"));
    ck_assert_msg(strstr(is, text) != NULL, "%s", is);
}

TEST(cordon_notes_that_it_is_ours_in_the_same_patch)
{
    expect_patch(node_cordon(arena, node_with("", "")),
                 "{\"op\":\"add\",\"path\":\"/spec/unschedulable\",\"value\":true},"
                 "{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{}},"
                 "{\"op\":\"add\",\"path\":\"/metadata/annotations/5spot.finos.org~1cordoned\","
                 "\"value\":\"true\"}]");
    ck_assert_ptr_null(node_cordon(arena, node_with("", "\"unschedulable\":true")));
}

TEST(cordon_of_a_person_stays)
{
    ck_assert_ptr_null(node_uncordon(arena, node_with("", "\"unschedulable\":true")));
    expect_patch(
        node_uncordon(arena, node_with(",\"annotations\":{\"5spot.finos.org/cordoned\":"
                                       "\"true\",\"x\":\"y\"}",
                                       "\"unschedulable\":true")),
        "{\"op\":\"remove\",\"path\":\"/spec/unschedulable\"},"
        "{\"op\":\"remove\",\"path\":\"/metadata/annotations/5spot.finos.org~1cordoned\"}]");
}

TEST(annotations_of_a_reclaim_go_together)
{
    expect_patch(
        node_clear_reclaim(arena, node_with(",\"annotations\":{\"" NODE_ANNOTATION_RECLAIM
                                            "\":\"true\",\"" NODE_ANNOTATION_RECLAIM_AT
                                            "\":\"now\",\"x\":\"y\"}",
                                            "")),
        "{\"op\":\"remove\",\"path\":\"/metadata/annotations/5spot.finos.org~1reclaim-requested\"},"
        "{\"op\":\"remove\",\"path\":\"/metadata/annotations/"
        "5spot.finos.org~1reclaim-requested-at\"}]");
    ck_assert_ptr_null(node_clear_reclaim(arena, node_with("", "")));
}

TEST(taints_and_their_owner_are_one_patch)
{
    const struct machine_taint wanted = { "k", "v", "NoSchedule" };
    const struct machine_taints one = { &wanted, 1 }, none = { NULL, 0 };
    struct taint_plan plan = taint_plan(arena, NULL, &one, &none);

    expect_patch(node_set_taints(arena, node_with("", ""), &plan), "\"path\":\"/spec/taints\"");
    expect_patch(node_set_taints(arena, node_with("", ""), &plan),
                 "5spot.finos.org~1applied-taints\",\"value\":\"[{\\\"key\\\":\\\"k\\\"");
    plan.conflicts = "k";
    ck_assert_ptr_null(node_set_taints(arena, node_with("", ""), &plan));
    plan = taint_plan(arena, NULL, &none, &none);
    ck_assert_ptr_null(node_set_taints(arena, node_with("", ""), &plan));
}

TEST(commands_are_escaped)
{
    const char *commands[] = { "steam", "a\"b\\c\nmatch_commands = []", "del\x7f" };
    const struct str_list list = { commands, ARRAY_LEN(commands) };
#define LIST "[\"steam\",\"a\\\"b\\\\c\\nmatch_commands = []\",\"del\\u007f\"]\n"

    ck_assert_str_eq(node_reclaim_config(arena, &list),
                     "match_commands = " LIST "match_argv_substrings = " LIST
                     "poll_interval_ms = 250\n");
}
