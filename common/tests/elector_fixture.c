#include "common/tests/elector_fixture.h"

const struct elector_options ELECTOR_OPTIONS = {
    .identity = "me",
    .lease = { .ns = "ns", .name = "propeller-controller" },
    .lease_duration_ms = LEASE_MS,
    .renew_deadline_ms = DEADLINE_MS,
    .retry_period_ms = RETRY_MS,
};

struct elector_bench bench;

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    fake_clock_advance(&bench.clock, bench.request_ms);
    if (bench.api_is_down)
        return error_set(err, ERROR_TIMEOUT, "no answer");
    return fake_api_roundtrip(ctx, arena, request, ret, err);
}

static void on_started(void *ctx UNUSED)
{
    atomic_fetch_add(&bench.started, 1);
}

static void on_ended(void *ctx UNUSED, const char *why)
{
    atomic_fetch_add(&bench.ended, 1);
    ck_assert(str_copy(bench.why_ended, sizeof(bench.why_ended), why));
}

const struct elector_callbacks ELECTOR_CALLBACKS = { .started = on_started, .ended = on_ended };

void elector_set_up(void)
{
    json_init();
    bench = (struct elector_bench){ .arena = arena_create(), .api = fake_api_create() };
    fake_clock_init(&bench.clock);
    bench.client = kube_client_create_with(roundtrip, bench.api);
    bench.elector =
        elector_create(&ELECTOR_OPTIONS, bench.client, &bench.clock.clock, &ELECTOR_CALLBACKS);
}

void elector_tear_down(void)
{
    elector_destroy(bench.elector);
    kube_client_destroy(bench.client);
    fake_api_destroy(bench.api);
    arena_destroy(bench.arena);
}

const cJSON *lease_spec(void)
{
    return json_get(fake_api_get(bench.api, bench.arena, &KIND_LEASE, &ELECTOR_OPTIONS.lease),
                    "spec");
}

const char *lease_holder(void)
{
    return json_string(json_get(lease_spec(), "holderIdentity"), NULL);
}

int64_t lease_transitions(void)
{
    return json_int(json_get(lease_spec(), "leaseTransitions"), -1);
}

void lease_put(const char *holder, int64_t transitions, const char *more)
{
    const char *text =
        arena_printf(bench.arena,
                     "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"propeller-controller\"},"
                     "\"spec\":{\"holderIdentity\":\"%s\",\"leaseTransitions\":%d%s}}",
                     holder, (int)transitions, more);

    fake_api_put(bench.api, &KIND_LEASE, parsed(bench.arena, text));
}

size_t lease_requests(void)
{
    struct fake_request *log;

    return fake_api_requests(bench.api, bench.arena, &log);
}

void elector_lead(void)
{
    (void)elector_step(bench.elector);
    ck_assert(elector_is_leader(bench.elector));
    ck_assert(elector_may_act(bench.elector));
}
