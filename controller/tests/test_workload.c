#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/workload/workload.h"

TEST_GROUP("workload", arena_set_up, arena_tear_down);

static const char *text(const cJSON *value)
{
    return json_text(arena, value, NULL);
}

TEST(what_is_made_belongs_to_its_owner_and_is_found_by_the_caches)
{
    const cJSON *owner =
        parsed(arena, "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"alpha\",\"uid\":\"u1\"}}");
    const cJSON *object =
        workload_create(arena, &KIND_DEPLOYMENT, "alpha-proplet", &KIND_PROPLET, owner);

    ck_assert_str_eq(text(object),
                     "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{"
                     "\"namespace\":\"lab\",\"name\":\"alpha-proplet\","
                     "\"labels\":{\"" LABEL_MANAGED_BY "\":\"" LABEL_MANAGED_BY_VALUE "\"},"
                     "\"ownerReferences\":[{\"apiVersion\":\"" API_VERSION
                     "\",\"kind\":\"Proplet\",\"name\":\"alpha\",\"uid\":\"u1\","
                     "\"controller\":true,\"blockOwnerDeletion\":true}]}}");
    ck_assert_str_eq(WORKLOAD_SELECTOR, LABEL_MANAGED_BY "=" LABEL_MANAGED_BY_VALUE);
    ck_assert(workload_is_of(object, "u1"));
    ck_assert(!workload_is_of(object, "u2"));
    ck_assert(!workload_is_of(parsed(arena, "{\"metadata\":{}}"), ""));
    ck_assert_str_eq(
        json_string(
            json_get(workload_create(arena, &KIND_CONFIGMAP, "c", &KIND_TASK, owner), "apiVersion"),
            ""),
        "v1");
}

TEST(pod_passes_pod_security_restricted)
{
    cJSON *pod = json_object(arena);
    cJSON *container = json_object(arena);

    workload_secure(pod, container);
    ck_assert_str_eq(text(pod),
                     "{\"automountServiceAccountToken\":false,\"enableServiceLinks\":false,"
                     "\"securityContext\":{\"runAsNonRoot\":true,\"runAsUser\":65532,"
                     "\"runAsGroup\":65532,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},"
                     "\"volumes\":[{\"name\":\"tmp\",\"emptyDir\":{}}]}");
    ck_assert_str_eq(text(container),
                     "{\"securityContext\":{\"allowPrivilegeEscalation\":false,"
                     "\"readOnlyRootFilesystem\":true,\"capabilities\":{\"drop\":[\"ALL\"]}},"
                     "\"volumeMounts\":[{\"name\":\"tmp\",\"mountPath\":\"/tmp\"}]}");
}

TEST(requests_are_limits)
{
    cJSON *container = json_object(arena);

    workload_set_resources(container, parsed(arena, "{}"));
    ck_assert_str_eq(text(container), "{}");
    workload_set_resources(container, parsed(arena, "{\"cpu\":\"50m\"}"));
    ck_assert_str_eq(
        text(container),
        "{\"resources\":{\"limits\":{\"cpu\":\"50m\"},\"requests\":{\"cpu\":\"50m\"}}}");
}

TEST(value_of_a_variable_refers_to_no_other_variable)
{
    cJSON *env = json_array(arena);

    workload_add_env(arena, env, "A", "$(HOME) costs $5$");
    workload_add_env(arena, env, "B", NULL);
    workload_add_env(arena, env, "C", "");
    ck_assert_str_eq(text(env), "[{\"name\":\"A\",\"value\":\"$$(HOME) costs $$5$$\"},"
                                "{\"name\":\"C\",\"value\":\"\"}]");
}

static const struct {
    const char *live;
    const char *wanted;
    bool has;
} COMPARED[] = {
    { "{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{\"b\":{\"c\":2}}", true },
    { "{\"a\":1}", "{\"b\":1}", false },
    { "{\"a\":1}", "{\"a\":2}", false },
    { "{\"a\":\"x\"}", "{\"a\":\"y\"}", false },
    { "{\"a\":[{\"n\":\"x\",\"default\":1},{\"n\":\"y\"}]}",
      "{\"a\":[{\"n\":\"x\"},{\"n\":\"y\"}]}", true },
    { "{\"a\":[{\"n\":\"x\"},{\"n\":\"y\"}]}", "{\"a\":[{\"n\":\"x\"}]}", false },
    { "{\"a\":[{\"n\":\"y\"},{\"n\":\"x\"}]}", "{\"a\":[{\"n\":\"x\"},{\"n\":\"y\"}]}", false },
    { "{\"cpu\":\"500m\",\"memory\":\"134217728\"}", "{\"cpu\":\"0.5\",\"memory\":134217728}",
      true },
    { "{\"cpu\":\"500m\"}", "{\"cpu\":\"0.4\"}", false },
    { "{}", "{\"emptyDir\":{},\"value\":\"\",\"off\":false,\"none\":0,\"list\":[]}", true },
    { "{}", "{\"value\":\"x\"}", false },
    { "{\"emptyDir\":{\"medium\":\"Memory\"}}", "{\"emptyDir\":{}}", true },
    { "{\"a\":{}}", "{\"a\":[1]}", false },
};

TEST_EACH(what_the_server_fills_in_is_no_difference, COMPARED)
{
    ck_assert_int_eq(
        workload_has(parsed(arena, COMPARED[_i].live), parsed(arena, COMPARED[_i].wanted)),
        COMPARED[_i].has);
}

#define WAITING(reason, message)                                                                   \
    "{\"containerStatuses\":[{\"name\":\"proplet\",\"image\":\"reg/i:1\",\"state\":{\"waiting\":{" \
    "\"reason\":\"" reason "\",\"message\":\"" message "\"}},\"lastState\":{\"terminated\":{"      \
    "\"exitCode\":137,\"reason\":\"OOMKilled\"}}}]}"

static const struct {
    const char *status;
    const char *reason; /* NULL: none */
    const char *message;
} TROUBLES[] = {
    { "{\"phase\":\"Pending\"}", NULL, NULL },
    { WAITING("ContainerCreating", ""), NULL, NULL },
    { WAITING("ErrImagePull", "not found after 3.1s"), "ImagePullBackOff",
      "pod 'p': image 'reg/i:1' cannot be pulled" },
    { WAITING("ImagePullBackOff", "Back-off 10s"), "ImagePullBackOff",
      "pod 'p': image 'reg/i:1' cannot be pulled" },
    { WAITING("InvalidImageName", ""), "InvalidImageName",
      "pod 'p': image 'reg/i:1' cannot be pulled" },
    { WAITING("CrashLoopBackOff", "back-off 5m0s"), "CrashLoopBackOff",
      "pod 'p': container 'proplet' ended with exit code 137, OOMKilled and is started again" },
    { WAITING("CreateContainerConfigError", "secret 's' not found"), "CreateContainerConfigError",
      "pod 'p': secret 's' not found" },
    { "{\"containerStatuses\":[{\"name\":\"proplet\",\"state\":{\"terminated\":{\"exitCode\":1,"
      "\"reason\":\"Error\"}}}]}",
      "Error", "pod 'p': container 'proplet' ended with exit code 1" },
    { "{\"containerStatuses\":[{\"name\":\"proplet\",\"state\":{\"terminated\":{\"exitCode\":0,"
      "\"reason\":\"Completed\"}}}]}",
      NULL, NULL },
    { "{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low on memory\"}", "Evicted",
      "pod 'p': low on memory" },
    { "{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
      "\"Unschedulable\",\"message\":\"0/1 nodes\"}]}",
      "Unschedulable", "pod 'p': 0/1 nodes" },
    { "{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"}]}", NULL, NULL },
};

TEST_EACH(trouble_of_a_pod_is_told_by_its_reason, TROUBLES)
{
    cJSON *pod = json_object(arena);

    json_set_string(json_set_object(pod, "metadata"), "name", "p");
    json_set_copy(pod, "status", parsed(arena, TROUBLES[_i].status));
    struct workload_trouble trouble = workload_pod_trouble(arena, pod);
    if (!TROUBLES[_i].reason) {
        ck_assert_int_eq(trouble.reason, REASON_NONE);
        return;
    }
    ck_assert_str_eq(reason_word(trouble.reason, trouble.word), TROUBLES[_i].reason);
    ck_assert_str_eq(trouble.message, TROUBLES[_i].message);
}

static const char *refusal_of(const char *word, const char *message)
{
    struct workload_trouble trouble = workload_refusal(arena, word, message);

    return reason_word(trouble.reason, trouble.word);
}

TEST(refused_pod_is_told_by_who_refused_it)
{
    const char *quota = "pods \"a\" is forbidden: exceeded quota: q";
    const char *security = "pods \"a\" is forbidden: violates PodSecurity \"r\"";

    ck_assert_str_eq(refusal_of("FailedCreate", quota), "QuotaExceeded");
    ck_assert_str_eq(refusal_of("FailedCreate", security), "PodSecurity");
    ck_assert_str_eq(refusal_of("FailedCreate", "no"), "FailedCreate");
    ck_assert_str_eq(refusal_of(NULL, "no"), "FailedCreate");
    ck_assert_str_eq(refusal_of("OddWord", "no"), "OddWord");

    char *text_of_two = arena_alloc(arena, 1, 4096);
    for (size_t i = 0; i + 2 < 4096; i += 2)
        memcpy(text_of_two + i, "\xc3\xa4", 2);
    const char *message = workload_refusal(arena, "FailedCreate", text_of_two).message;
    ck_assert_uint_le(strlen(message), 512);
    ck_assert(str_is_utf8(message, strlen(message)));
}

TEST(pod_in_the_cache_has_owner_labels_status_and_result)
{
    cJSON *pod = json_copy(parsed(
        arena,
        "{\"metadata\":{\"name\":\"p\",\"labels\":{\"l\":\"v\"},\"annotations\":{\"x\":\"y\","
        "\"" ANNOTATION_RESULT "\":\"42\"}},\"spec\":{\"nodeName\":\"n\"},"
        "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\"}}"));

    arena_own(arena, pod, json_free);
    project_pod(pod);
    ck_assert_str_eq(text(pod), "{\"metadata\":{\"name\":\"p\",\"labels\":{\"l\":\"v\"},"
                                "\"annotations\":{\"" ANNOTATION_RESULT "\":\"42\"}},"
                                "\"status\":{\"phase\":\"Running\"}}");
}
