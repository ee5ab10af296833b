/* What users do with a Proplet of type k8s, while every request fails once in every way, and the
 * process dies before and after each. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "controller/shared/put_back.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/pods_stage.h"
#include "controller/tests/torture.h"

/* Templates that the pods were to be made from: another one starts all of them anew. */
static const char *last_hash;
static unsigned templates;

static const char *hash_of(const cJSON *deployment)
{
    const cJSON *annotations =
        json_path(deployment, "spec", "template", "metadata", "annotations", NULL);

    return json_string(json_get(annotations, ANNOTATION_TEMPLATE_HASH), "");
}

static void count_template(void)
{
    const char *hash = hash_of(pods_deployment());

    if (!str_equal(hash, last_hash))
        templates++;
    last_hash = hash;
}

static bool between(void)
{
    bool more = outside_between();

    if (pods_deployment())
        count_template();
    return more;
}

static void create(void)
{
    pods_put_proplet("\"image\":\"i:1\",", PODS_KEY("one"));
}

static void create_with_ref(void)
{
    pods_put_proplet("\"image\":\"i:1\",", PODS_KEY_REF);
}

static void get_ready(void)
{
    pods_report(true);
}

static void change_image_and_key(void)
{
    pods_put_proplet("\"image\":\"i:2\",", PODS_KEY("two"));
}

static void scale_to_zero(void)
{
    pods_put_proplet("\"image\":\"i:1\",\"replicas\":0,", PODS_KEY("one"));
}

static void use_ref(void)
{
    pods_put_proplet("\"image\":\"i:1\",", PODS_KEY_REF);
}

static void index_ids(void)
{
    pods_put_proplet("\"image\":\"i:1\",\"replicas\":2,\"indexedClientIds\":true,", PODS_KEY_REF);
}

static void delete_proplet(void)
{
    stage_delete(&KIND_PROPLET, "alpha");
}

static void scale_by_hand(void)
{
    cJSON *changed = arena_own(stage.arena, json_copy(pods_deployment()), json_free);

    json_set_int((cJSON *)json_get(changed, "spec"), "replicas", 9);
    fake_api_put(stage.api, &KIND_DEPLOYMENT, changed);
}

/* Twice: a process that takes over waits anew. */
static void wait_until_put_back(void)
{
    stage_wait_ms(2 * PUT_BACK_MS);
}

static void other_operator_made_it(void)
{
    const cJSON *uid = json_path(stage_get(&KIND_PROPLET, "alpha"), "metadata", "uid", NULL);

    fake_api_put(
        stage.api, &KIND_DEPLOYMENT,
        parsed(stage.arena,
               arena_printf(stage.arena,
                            "{\"kind\":\"Deployment\",\"metadata\":{\"namespace\":\"default\","
                            "\"name\":\"alpha-proplet\",\"ownerReferences\":[{\"controller\":"
                            "true,\"uid\":\"%s\"}]},\"spec\":{\"replicas\":1,\"selector\":{"
                            "\"matchLabels\":{\"app\":\"x\"}},\"template\":{\"spec\":{"
                            "\"containers\":[{\"name\":\"x\",\"image\":\"theirs\"}]}}}}",
                            json_string(uid, ""))));
    create();
}

static void run_a_task(void)
{
    outside.answers = true;
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"propletSelector\":{"
                   "\"propletId\":\"alpha\"}}");
}

/* The end: "<kind of object> <replicas> <image> <key> <phase> <Ready> <reason> templates <n>[ task
 * <phase>]". */
static const struct scenario STORIES[] = {
    { "created", { create }, "Deployment 1 i:1 b25l Initializing False PodsNotReady templates 1" },
    { "ready", { create, get_ready }, "Deployment 1 i:1 b25l Running True PodsReady templates 1" },
    { "with a reference",
      { create_with_ref, get_ready },
      "Deployment 1 i:1 - Running True PodsReady templates 1" },
    { "changed",
      { create, get_ready, change_image_and_key, get_ready },
      "Deployment 1 i:2 dHdv Running True PodsReady templates 2" },
    { "scaled",
      { create, get_ready, scale_to_zero, create, get_ready },
      "Deployment 1 i:1 b25l Running True PodsReady templates 1" },
    { "key moved",
      { create, use_ref, get_ready },
      "Deployment 1 i:1 b25l Running True PodsReady templates 2" },
    { "indexed",
      { create_with_ref, index_ids },
      "StatefulSet 2 - - Initializing False PodsNotReady templates 1" },
    { "put back",
      { create, get_ready, scale_by_hand, wait_until_put_back, wait_until_put_back, get_ready },
      "Deployment 1 i:1 b25l Running True PodsReady templates 1" },
    { "taken over",
      { other_operator_made_it, get_ready },
      "Deployment 1 i:1 b25l Running True PodsReady templates 2" },
    { "a Task",
      { create, get_ready, run_a_task },
      "Deployment 1 i:1 b25l Running True PodsReady templates 1 task completed" },
    { "deleted", { create, get_ready, delete_proplet }, "Deployment 1 i:1 b25l - - - templates 1" },
};

static const char *ending(void)
{
    const cJSON *set = stage_get(&KIND_STATEFULSET, "alpha-proplet");
    const char *phase = stage_task_string("phase");
    int64_t replicas =
        set ? json_int(json_path(set, "spec", "replicas", NULL), -1) : pods_replicas();

    ck_assert(!set || !pods_deployment());
    return arena_printf(stage.arena, "%s %d %s %s %s templates %u%s%s",
                        set ? "StatefulSet" : "Deployment", (int)replicas, pods_image(),
                        json_string(json_path(pods_secret(), "data", CLIENT_KEY_ITEM, NULL), "-"),
                        pods_told(), templates, *phase ? " task " : "", phase);
}

static void begin(void)
{
    last_hash = NULL;
    templates = 0;
    stage_set_up(outside_roundtrip, between);
}

int main(void)
{
    const struct torture pods = { .name = "proplet_pods_torture",
                                  .begin = begin,
                                  .ending = ending };

    return torture_run(&pods, STORIES, ARRAY_LEN(STORIES));
}
