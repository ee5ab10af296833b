/* The three objects of a ScheduledMachine in both versions of Machine, and whose an object is. */
#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/machine/machine_objects.h"

TEST_GROUP("objects", arena_set_up, arena_tear_down);

#define OWNER                                                                                      \
    "{\"apiVersion\":\"5spot.finos.org/v1alpha1\",\"kind\":\"ScheduledMachine\",\"metadata\":{"    \
    "\"name\":\"night\",\"namespace\":\"default\",\"uid\":\"u-1\"}}"
#define REFERENCE                                                                                  \
    "{\"apiVersion\":\"5spot.finos.org/"                                                           \
    "v1alpha1\",\"kind\":\"ScheduledMachine\",\"name\":\"night\","                                 \
    "\"uid\":\"u-1\""
#define LABELS                                                                                     \
    "\"5spot.finos.org/scheduled-machine\":\"night\",\"cluster.x-k8s.io/cluster-name\":\"c\""
#define SPEC                                                                                       \
    "{\"clusterName\":\"c\",\"nodeDrainTimeout\":\"2m\",\"bootstrapSpec\":{\"apiVersion\":"        \
    "\"bootstrap.cluster.x-k8s.io/v1beta1\",\"kind\":\"K0sWorkerConfig\",\"spec\":{\"a\":[1]}},"   \
    "\"infrastructureSpec\":{\"apiVersion\":\"k0smotron.io/v1beta1\",\"kind\":\"RemoteMachine\","  \
    "\"spec\":{}},\"machineTemplate\":{\"labels\":{\"tier\":\"batch\","                            \
    "\"node-role.kubernetes.io/worker\":\"\",\"cluster.x-k8s.io/cluster-name\":\"other\"},"        \
    "\"annotations\":{\"5spot.finos.org/x\":\"y\",\"example.com/team\":\"t\","                     \
    "\"notkubernetes.io/z\":\"1\"}}}"

static struct scheduledmachine_spec decoded(const char *text)
{
    struct scheduledmachine_spec ret = { .kill_switch = false };
    struct error err = { 0 };
    int r = json_decode(arena, &SCHEDULEDMACHINE_SPEC, parsed(arena, text), &ret, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    return ret;
}

static void expect(const cJSON *is, const char *text)
{
    ck_assert_msg(json_equal(is, parsed(arena, text)), "%s", json_text(arena, is, NULL));
}

TEST(parts_have_the_name_the_labels_and_a_plain_owner)
{
    const struct scheduledmachine_spec spec = decoded(SPEC);

    expect(machine_make_part(arena, parsed(arena, OWNER), &spec, spec.bootstrap),
           "{\"apiVersion\":\"bootstrap.cluster.x-k8s.io/v1beta1\",\"kind\":\"K0sWorkerConfig\","
           "\"metadata\":{\"name\":\"night\",\"namespace\":\"default\",\"labels\":{" LABELS
           "},\"ownerReferences\":[" REFERENCE "}]},\"spec\":{\"a\":[1]}}");
}

TEST(longest_name_has_a_label_that_fits)
{
    const struct scheduledmachine_spec spec = decoded(SPEC);
    char name[254];

    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const cJSON *owner =
        parsed(arena, arena_printf(arena, "{\"metadata\":{\"name\":\"%s\"}}", name));
    const cJSON *metadata =
        json_get(machine_make_part(arena, owner, &spec, spec.bootstrap), "metadata");
    const char *label =
        json_string(json_path(metadata, "labels", "5spot.finos.org/scheduled-machine", NULL), "");

    ck_assert_str_eq(json_string(json_get(metadata, "name"), ""), name);
    ck_assert_str_eq(label, label_value(arena, name));
    ck_assert_uint_le(strlen(label), 63);
}

#define MACHINE_METADATA                                                                           \
    "\"metadata\":{\"name\":\"night\",\"namespace\":\"default\",\"labels\":{" LABELS               \
    ",\"tier\":\"batch\"},\"annotations\":{\"example.com/team\":\"t\",\"notkubernetes.io/z\":"     \
    "\"1\"},\"ownerReferences\":[" REFERENCE ",\"controller\":true,\"blockOwnerDeletion\":true}]}"

static const struct {
    const char *version, *spec;
} VERSIONS[] = {
    { "v1beta1",
      "{\"clusterName\":\"c\",\"bootstrap\":{\"configRef\":{\"apiVersion\":"
      "\"bootstrap.cluster.x-k8s.io/v1beta1\",\"kind\":\"K0sWorkerConfig\",\"name\":\"night\","
      "\"namespace\":\"default\"}},\"infrastructureRef\":{\"apiVersion\":\"k0smotron.io/v1beta1\","
      "\"kind\":\"RemoteMachine\",\"name\":\"night\",\"namespace\":\"default\"},"
      "\"nodeDrainTimeout\":\"120s\"}" },
    { "v1beta2", "{\"clusterName\":\"c\",\"bootstrap\":{\"configRef\":{\"apiGroup\":"
                 "\"bootstrap.cluster.x-k8s.io\",\"kind\":\"K0sWorkerConfig\",\"name\":\"night\"}},"
                 "\"infrastructureRef\":{\"apiGroup\":\"k0smotron.io\",\"kind\":\"RemoteMachine\","
                 "\"name\":\"night\"},\"deletion\":{\"nodeDrainTimeoutSeconds\":120}}" },
};

TEST_EACH(machine_is_made_in_the_version_that_is_served, VERSIONS)
{
    const struct scheduledmachine_spec spec = decoded(SPEC);
    const char *reserved;

    expect(machine_make(arena, parsed(arena, OWNER), &spec, VERSIONS[_i].version, &reserved),
           arena_printf(arena,
                        "{\"apiVersion\":\"cluster.x-k8s.io/%s\",\"kind\":\"Machine\","
                        "%s,\"spec\":%s}",
                        VERSIONS[_i].version, MACHINE_METADATA, VERSIONS[_i].spec));
    ck_assert_str_eq(reserved, "node-role.kubernetes.io/worker, cluster.x-k8s.io/cluster-name, "
                               "5spot.finos.org/x");
}

TEST(drain_of_cluster_api_always_ends)
{
    struct scheduledmachine_spec spec = decoded(SPEC);
    const char *reserved;

    spec.node_drain_timeout = "0s";
    const cJSON *machine = machine_make(arena, parsed(arena, OWNER), &spec, "v1beta2", &reserved);
    ck_assert_int_eq(
        json_int(json_path(machine, "spec", "deletion", "nodeDrainTimeoutSeconds", NULL), 0), 1);
    spec.machine_template = NULL;
    machine = machine_make(arena, parsed(arena, OWNER), &spec, "v1beta1", &reserved);
    ck_assert_str_eq(json_string(json_path(machine, "spec", "nodeDrainTimeout", NULL), ""), "1s");
    ck_assert_ptr_null(reserved);
}

static const struct {
    const char *metadata;
    enum machine_claim claim;
} CLAIMS[] = {
    { "{\"ownerReferences\":[{\"uid\":\"u-0\"},{\"uid\":\"u-1\"}]}", MACHINE_CLAIM_OURS },
    { "{\"ownerReferences\":[{\"uid\":\"u-1\"}],\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}",
      MACHINE_CLAIM_GOING },
    { "{\"ownerReferences\":[{\"name\":\"night\",\"uid\":\"u-0\"}]}", MACHINE_CLAIM_TAKEN },
    { "{\"labels\":{" LABELS "}}", MACHINE_CLAIM_TAKEN },
    { "{\"ownerReferences\":[{\"name\":\"night\"}]}", MACHINE_CLAIM_TAKEN },
    { "{\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}", MACHINE_CLAIM_TAKEN },
};

TEST_EACH(only_the_uid_makes_an_object_ours, CLAIMS)
{
    const cJSON *object =
        parsed(arena, arena_printf(arena, "{\"metadata\":%s}", CLAIMS[_i].metadata));

    ck_assert_int_eq(machine_claim_of(object, "u-1"), CLAIMS[_i].claim);
    ck_assert_int_eq(machine_claim_of(object, ""), MACHINE_CLAIM_TAKEN);
}

#define PARTS(bootstrap, infrastructure)                                                           \
    "{\"clusterName\":\"c\",\"bootstrapSpec\":{\"apiVersion\":\"" bootstrap                        \
    "\",\"kind\":\"B\"},\"infrastructureSpec\":{\"apiVersion\":\"" infrastructure                  \
    "\",\"kind\":\"I\"}}"
#define FINE_BOOTSTRAP "bootstrap.cluster.x-k8s.io/v1"
#define FINE_INFRASTRUCTURE "infrastructure.cluster.x-k8s.io/v1"

static const struct {
    const char *spec, *problem;
} SPECS[] = {
    { PARTS(FINE_BOOTSTRAP, FINE_INFRASTRUCTURE), NULL },
    { PARTS("k0smotron.io/v1", "k0smotron.io/v1"), NULL },
    { PARTS(FINE_INFRASTRUCTURE, FINE_INFRASTRUCTURE),
      "spec.bootstrapSpec.apiVersion: the group must be bootstrap.cluster.x-k8s.io or "
      "k0smotron.io" },
    { PARTS(FINE_BOOTSTRAP, "apps/v1"),
      "spec.infrastructureSpec.apiVersion: the group must be infrastructure.cluster.x-k8s.io or "
      "k0smotron.io" },
    { PARTS(FINE_BOOTSTRAP, "v1"),
      "spec.infrastructureSpec.apiVersion: the group must be infrastructure.cluster.x-k8s.io or "
      "k0smotron.io" },
    { "{\"clusterName\":\"c\"}", "spec.bootstrapSpec: has no apiVersion or kind" },
};

TEST_EACH(groups_of_others_are_refused, SPECS)
{
    const struct scheduledmachine_spec spec = decoded(SPECS[_i].spec);
    const char *problem = machine_spec_problem(arena, &spec);

    ck_assert_msg(str_equal(problem, SPECS[_i].problem), "%s", problem ? problem : "none");
}

TEST(samples_make_their_objects)
{
    static const char *const FILES[] = { "config/samples/scheduled-machines/basic.yaml",
                                         "config/samples/scheduled-machines/tainted.yaml" };

    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        const cJSON *sample = parsed_yaml_file(arena, FILES[i]);
        const struct scheduledmachine_spec spec =
            decoded(json_text(arena, json_get(sample, "spec"), NULL));
        ck_assert_ptr_null(machine_spec_problem(arena, &spec));
    }
}
