/* An elector whose time and whose API server belong to the test, which makes its steps. */
#pragma once

#include <stdatomic.h>

#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/elector.h"
#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define LEASE_MS 15000
#define DEADLINE_MS 10000
#define RETRY_MS 2000

extern const struct elector_options ELECTOR_OPTIONS; /* "me", the times above */
extern const struct elector_callbacks ELECTOR_CALLBACKS;

struct elector_bench {
    struct arena *arena;
    struct fake_api *api;
    struct fake_clock clock;
    struct kube_client *client;
    struct elector *elector;
    bool api_is_down;
    int64_t request_ms; /* how long each request takes */
    atomic_int started; /* calls of the callbacks */
    atomic_int ended;
    char why_ended[128];
};
extern struct elector_bench bench;

void elector_set_up(void);
void elector_tear_down(void);

/* The Lease as it is. */
const cJSON *lease_spec(void);
const char *lease_holder(void);
int64_t lease_transitions(void);
/* Somebody else writes it. more: further members of the spec, each after a comma. */
void lease_put(const char *holder, int64_t transitions, const char *more);
size_t lease_requests(void);

/* A step after which we lead and may act. */
void elector_lead(void);
