/* A pool of pods that are a device each, while every request and every publish fails once in every
 * way, and the process dies before and after each. */
#include "common/api/kinds.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/torture.h"

static void put(int replicas)
{
    stage_put_proplet(
        "alpha",
        arena_printf(stage.arena,
                     "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"indexedClientIds\":true,"
                     "\"replicas\":%d},\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\","
                     "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"device-1\","
                     "\"clientKeySecretRef\":{\"name\":\"keys\",\"key\":\"k\"}}}",
                     replicas));
}

static void become_a_pool(void)
{
    stage_delete(&KIND_PROPLET, "beta");
    put(2);
}

static void scale_to_zero(void)
{
    put(0);
}

static void scale_back(void)
{
    put(2);
}

static void create_that_must_not_be_repeated(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"propletLostPolicy\":\"Fail\"}");
}

static void restart_its_pod(void)
{
    outside_restart_one("device-1-0");
}

static void restart_another_pod(void)
{
    outside_restart_one("device-1-1");
}

static void lose_its_pod(void)
{
    outside.absent = stage.silent = "device-1-0";
}

static const struct scenario SCENARIOS[] = {
    { "result of a pod",
      { become_a_pool, torture_create, torture_let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "its pod is started anew",
      { become_a_pool, torture_create, restart_its_pod, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
    { "another pod is started anew",
      { become_a_pool, torture_create, restart_another_pod, torture_let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "scaled away and back",
      { become_a_pool, torture_create, scale_to_zero, scale_back, torture_wait_a_minute,
        torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "scaled away, policy Fail",
      { become_a_pool, create_that_must_not_be_repeated, scale_to_zero },
      "failed the pod 'device-1-0' of Proplet 'alpha' was scaled away attempt 1 failures 1 True "
      "True "
      "False; uid x1 stopped" },
    { "deleted", { become_a_pool, torture_create, torture_delete }, "gone; uid x1 stopped" },
    { "pod lost",
      { become_a_pool, torture_create, lose_its_pod, torture_wait_a_minute, torture_wait_a_minute,
        torture_wait_a_minute, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
};

int main(void)
{
    return torture_main("indexed devices: torture", SCENARIOS, ARRAY_LEN(SCENARIOS));
}
