/* Decides what becomes of a VmafxModelTraining when its trainer was asked: a pure function. */
#pragma once

#include "common/api/vmafx.h"
#include "common/base/arena.h"

#define VMAFX_MAX_VERSION 1024

struct vmafx_training_observed {
    struct vmafx_training_status status;
    const cJSON *reply; /* of the trainer, an object; NULL: there is none that can be used */
};

struct vmafx_training_plan {
    struct vmafx_training_status status;
    const char
        *checkpoint; /* the note of the Event about a newer checkpoint; NULL: there is none */
};

/* Texts of the plan are in the arena or borrowed. */
struct vmafx_training_plan vmafx_training_plan(struct arena *arena,
                                               const struct vmafx_training_observed *observed);
