#include "controller/tests/pods_stage.h"

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"

void pods_put_proplet(const char *k8s, const char *key)
{
    stage_put_proplet(
        "alpha",
        arena_printf(stage.arena,
                     "{\"type\":\"k8s\",\"k8s\":{%s\"logLevel\":\"info\"},\"connectionConfig\":{"
                     "\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\",\"channelId\":\"c\","
                     "\"clientId\":\"device-1\",%s}}",
                     k8s, key));
}

const cJSON *pods_deployment(void)
{
    return stage_get(&KIND_DEPLOYMENT, "alpha-proplet");
}

const cJSON *pods_secret(void)
{
    return stage_get(&KIND_SECRET, "alpha-client-key");
}

const char *pods_image(void)
{
    const cJSON *pod = json_path(pods_deployment(), "spec", "template", "spec", NULL);

    return json_string(json_get(json_first(json_get(pod, "containers")), "image"), "-");
}

int64_t pods_replicas(void)
{
    return json_int(json_path(pods_deployment(), "spec", "replicas", NULL), -1);
}

void pods_report(bool ready)
{
    const cJSON *deployment = pods_deployment();
    cJSON *copy = arena_own(stage.arena, json_copy(deployment), json_free);
    cJSON *status = json_set_object(copy, "status");
    int64_t count = ready ? pods_replicas() : 0;

    json_set_copy(status, "observedGeneration",
                  json_path(deployment, "metadata", "generation", NULL));
    json_set_int(status, "updatedReplicas", pods_replicas());
    json_set_int(status, "readyReplicas", count);
    json_set_int(status, "availableReplicas", count);
    fake_api_put(stage.api, &KIND_DEPLOYMENT, copy);
}

void pods_waiting(const char *reason)
{
    fake_api_put(
        stage.api, &KIND_POD,
        parsed(stage.arena, arena_printf(stage.arena,
                                         "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":"
                                         "\"default\",\"name\":\"pod\",\"labels\":{"
                                         "\"" LABEL_MANAGED_BY "\":\"" LABEL_MANAGED_BY_VALUE
                                         "\",\"" LABEL_PROPLET_SELECTOR "\":\"alpha\"}},"
                                         "\"status\":{\"containerStatuses\":[{\"name\":"
                                         "\"proplet\",\"image\":\"i\",\"state\":{\"waiting\":{"
                                         "\"reason\":\"%s\",\"message\":\"m\"}}}]}}",
                                         reason)));
}

const char *pods_told(void)
{
    const cJSON *status = json_get(stage_get(&KIND_PROPLET, "alpha"), "status");
    const cJSON *ready = condition_get(json_get(status, "conditions"), "Ready");

    return arena_printf(stage.arena, "%s %s %s", json_string(json_get(status, "phase"), "-"),
                        json_string(json_get(ready, "status"), "-"),
                        json_string(json_get(ready, "reason"), "-"));
}
