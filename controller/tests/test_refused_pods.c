#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/pods_stage.h"

static void set_up(void)
{
    outside_reset();
    stage_set_up(outside_roundtrip, outside_between);
}

TEST_GROUP("pods", set_up, stage_tear_down);

static void run_and_expect(const char *told)
{
    stage_run();
    ck_assert_str_eq(pods_told(), told);
}

/* The StatefulSet as its controller leaves it that may not make pods. */
static void report_missing_pods(int64_t made)
{
    const cJSON *live = stage_get(&KIND_STATEFULSET, "alpha-proplet");
    cJSON *copy = arena_own(stage.arena, json_copy(live), json_free);
    cJSON *status = json_set_object(copy, "status");

    json_set_copy(status, "observedGeneration", json_path(live, "metadata", "generation", NULL));
    json_set_int(status, "replicas", made);
    fake_api_put(stage.api, &KIND_STATEFULSET, copy);
}

static void put_event(const char *name, const char *uid, const char *last, const char *note)
{
    fake_api_put(
        stage.api, &KIND_EVENT,
        parsed(stage.arena, arena_printf(stage.arena,
                                         "{\"kind\":\"Event\",\"metadata\":{\"namespace\":"
                                         "\"default\",\"name\":\"%s\",\"creationTimestamp\":"
                                         "\"2026-01-01T00:00:00Z\"},\"deprecatedLastTimestamp\":"
                                         "\"%s\",\"regarding\":{\"uid\":\"%s\"},\"reason\":"
                                         "\"FailedCreate\",\"note\":\"%s\"}",
                                         name, last, uid, note)));
}

TEST(refused_pods_of_a_stateful_set_are_said_as_its_events_say)
{
    pods_put_proplet("\"image\":\"i:1\",\"replicas\":3,\"indexedClientIds\":true,", PODS_KEY_REF);
    stage_run();
    const char *uid = json_string(
        json_path(stage_get(&KIND_STATEFULSET, "alpha-proplet"), "metadata", "uid", NULL), "");
    put_event("old", uid, "2026-01-01T00:00:01Z", "violates PodSecurity restricted");
    put_event("new", uid, "2026-01-01T00:00:02Z", "pod p-0 is forbidden: exceeded quota: q");
    put_event("other", "another", "2026-01-01T00:00:03Z", "violates PodSecurity restricted");
    ck_assert_uint_eq(stage_requests("GET", "/events"), 0);
    report_missing_pods(0);
    run_and_expect("Initializing False QuotaExceeded");
    unsigned asked = stage_requests("GET", "/events");
    ck_assert_uint_le(asked, 2); /* once more after its own status */

    /* Another pod of the same refusal is no news, and it is not asked again at once. */
    unsigned writes = stage_requests("PATCH", "/status");
    put_event("next", uid, "2026-01-01T00:00:04Z", "pod p-1 is forbidden: exceeded quota: q");
    stage_wait_ms(PODS_EVENT_MS / 2);
    stage_run();
    ck_assert_uint_eq(stage_requests("GET", "/events"), asked);
    stage_wait_ms(PODS_EVENT_MS);
    run_and_expect("Initializing False QuotaExceeded");
    ck_assert_uint_eq(stage_requests("GET", "/events"), asked + 1);
    ck_assert_uint_eq(stage_requests("PATCH", "/status"), writes);

    report_missing_pods(3);
    run_and_expect("Initializing False PodsNotReady");
    ck_assert_uint_eq(stage.errors, 0);
}
