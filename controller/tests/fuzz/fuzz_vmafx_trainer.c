/* vmafx_training_plan: whatever a trainer answers, the status stays within its limits. */
#include <string.h>

#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "controller/vmafx/vmafx.h"
#include "controller/vmafx/vmafx_training_plan.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct vmafx_training_observed observed = { .status = { .last_checkpoint_us = 1000000 } };
    struct error err = { 0 };

    if (len > VMAFX_MAX_TRAINER_REPLY ||
        json_parse(arena, (const char *)bytes, len, &observed.reply, &err) < 0 ||
        !cJSON_IsObject(observed.reply))
        return;
    const struct vmafx_training_plan plan = vmafx_training_plan(arena, &observed);
    const char *version = plan.status.model_version;

    REQUIRE(plan.status.phase != VMAFX_TRAINING_NEW);
    REQUIRE(plan.status.current_samples.value >= 0 &&
            plan.status.current_samples.value <= INT32_MAX);
    REQUIRE(!version ||
            (strlen(version) <= VMAFX_MAX_VERSION && str_is_utf8(version, strlen(version))));
    REQUIRE(plan.status.last_checkpoint_us >= 1000000);
    REQUIRE(!plan.checkpoint == (plan.status.last_checkpoint_us == 1000000));
    REQUIRE(!plan.checkpoint || strlen(plan.checkpoint) < 1024);
}
