#include "common/api/kinds.h"
#include "common/base/str.h"
#include "webhook/admission.h"

#define MUTATE "/mutate-propeller-propeller-abstractmachines-fr-v1-"
#define VALIDATE "/validate-propeller-propeller-abstractmachines-fr-v1-"

const struct admission_hook ADMISSION_HOOKS[] = {
    { MUTATE "task", &KIND_TASK, .apply_defaults = task_default },
    { MUTATE "proplet", &KIND_PROPLET, .apply_defaults = proplet_default },
    { MUTATE "propellerjob", &KIND_PROPELLERJOB, .apply_defaults = propellerjob_default },
    { MUTATE "federatedjob", &KIND_FEDERATEDJOB, .apply_defaults = federatedjob_default },
    { VALIDATE "task", &KIND_TASK, .validate = task_validate,
      .validate_status = task_validate_status },
    { VALIDATE "proplet", &KIND_PROPLET, .validate = proplet_validate },
    { VALIDATE "propellerjob", &KIND_PROPELLERJOB, .validate = propellerjob_validate },
    { VALIDATE "federatedjob", &KIND_FEDERATEDJOB, .validate = federatedjob_validate },
    { VALIDATE "traininground", &KIND_TRAININGROUND, .validate = traininground_validate },
    { .path = NULL },
};

const struct admission_hook *admission_hook_find(const char *path)
{
    for (const struct admission_hook *hook = ADMISSION_HOOKS; hook->path; hook++) {
        if (str_equal(hook->path, path))
            return hook;
    }
    return NULL;
}
