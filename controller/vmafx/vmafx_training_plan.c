#include "controller/vmafx/vmafx_training_plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/civil.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/vmafx/vmafx_getjob.h"

/* Of the version in an Event, which has room for 1 KiB. */
#define MAX_NOTE_VERSION 256

static enum vmafx_training_phase phase_of(const cJSON *reply)
{
    static const struct {
        const char *text;
        enum vmafx_training_phase phase;
    } PHASES[] = {
        { "running", VMAFX_TRAINING_RUNNING },
        { "paused", VMAFX_TRAINING_PAUSED },
        { "failed", VMAFX_TRAINING_FAILED },
    };
    const char *text = json_string(json_get(reply, "phase"), "");

    for (size_t i = 0; i < ARRAY_LEN(PHASES); i++) {
        if (str_equal(text, PHASES[i].text))
            return PHASES[i].phase;
    }
    return VMAFX_TRAINING_INITIALIZING;
}

static void read_samples(const cJSON *item, struct json_opt_int *ret)
{
    double samples = json_is_number(item) ? json_double(item, -1) : -1;

    if (samples < 0 || samples != floor(samples))
        return;
    *ret = (struct json_opt_int){ true, samples < INT32_MAX ? (int64_t)samples : INT32_MAX };
}

static void read_version(struct arena *arena, const cJSON *item, const char **ret)
{
    const char *version = json_string(item, "");

    if (*version && strlen(version) <= VMAFX_MAX_VERSION)
        *ret = vmafx_text(arena, version, VMAFX_MAX_VERSION);
}

static bool read_checkpoint(const cJSON *item, int64_t *ret_us)
{
    int64_t us;

    if (!rfc3339_parse(json_string(item, ""), &us))
        return false;
    us = floor_div(us, 1000000) * 1000000; /* as it is stored */
    if (us <= *ret_us)
        return false;
    *ret_us = us;
    return true;
}

struct vmafx_training_plan vmafx_training_plan(struct arena *arena,
                                               const struct vmafx_training_observed *observed)
{
    const cJSON *reply = observed->reply;
    struct vmafx_training_plan plan = { .status = observed->status };
    struct vmafx_training_status *status = &plan.status;

    if (!reply) {
        if (status->phase == VMAFX_TRAINING_NEW)
            status->phase = VMAFX_TRAINING_INITIALIZING;
        return plan;
    }
    status->phase = phase_of(reply);
    read_samples(json_get(reply, "current_samples"), &status->current_samples);
    read_version(arena, json_get(reply, "model_version"), &status->model_version);
    if (read_checkpoint(json_get(reply, "last_checkpoint_time"), &status->last_checkpoint_us))
        plan.checkpoint = arena_printf(
            arena, "Model checkpoint written: version=%s samples=%" PRId64,
            vmafx_text(arena, status->model_version ? status->model_version : "", MAX_NOTE_VERSION),
            status->current_samples.value);
    return plan;
}
