#include "controller/module/module.h"

#include <assert.h>

/* One line for each module, behind the modules that it uses. */
#define EACH_MODULE(MODULE)                                                                        \
    MODULE(DEVICE_PLANE)                                                                           \
    MODULE(MODEL_STORE)                                                                            \
    MODULE(COORDINATOR)                                                                            \
    MODULE(PROPLET)                                                                                \
    MODULE(TASK)                                                                                   \
    MODULE(REGISTRY)                                                                               \
    MODULE(CHECKPOINT)                                                                             \
    MODULE(PROPELLERJOB)                                                                           \
    MODULE(QUOTA)                                                                                  \
    MODULE(FEDERATEDJOB)                                                                           \
    MODULE(TRAININGROUND)                                                                          \
    MODULE(ENROLLMENT)                                                                             \
    MODULE(VMAFXJOB)                                                                               \
    MODULE(VMAFXNODE)                                                                              \
    MODULE(VMAFXMODELTRAINING)                                                                     \
    MODULE(SCHEDULEDMACHINE)                                                                       \
    MODULE(PAGE)

#define DECLARE(name) extern const struct module name##_MODULE;
EACH_MODULE(DECLARE)

#define LIST(name) &name##_MODULE,
const struct module *const MODULES[] = { EACH_MODULE(LIST) NULL };
static_assert(ARRAY_LEN(MODULES) <= MODULES_MAX + 1, "MODULES_MAX");
