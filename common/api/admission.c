#include "common/api/admission.h"

#include "common/api/kinds.h"

const struct admission ADMISSION[] = {
    { &KIND_TASK, task_default, task_validate, task_validate_status },
    { &KIND_PROPLET, proplet_default, proplet_validate, NULL },
    { &KIND_PROPELLERJOB, propellerjob_default, propellerjob_validate, NULL },
    { &KIND_FEDERATEDJOB, federatedjob_default, federatedjob_validate, NULL },
    { &KIND_TRAININGROUND, NULL, traininground_validate, NULL },
    { .kind = NULL },
};
