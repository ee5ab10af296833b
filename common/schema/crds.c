#include "common/schema/crds.h"

#include "common/base/compiler.h"

EMBED(crd_federatedjobs, "crds/federatedjobs.yaml");
EMBED(crd_propellerjobs, "crds/propellerjobs.yaml");
EMBED(crd_proplets, "crds/proplets.yaml");
EMBED(crd_tasks, "crds/tasks.yaml");
EMBED(crd_trainingrounds, "crds/trainingrounds.yaml");

const struct embedded CRDS[] = {
    { "crds/federatedjobs.yaml", crd_federatedjobs, crd_federatedjobs_end },
    { "crds/propellerjobs.yaml", crd_propellerjobs, crd_propellerjobs_end },
    { "crds/proplets.yaml", crd_proplets, crd_proplets_end },
    { "crds/tasks.yaml", crd_tasks, crd_tasks_end },
    { "crds/trainingrounds.yaml", crd_trainingrounds, crd_trainingrounds_end },
};
const size_t CRDS_LEN = ARRAY_LEN(CRDS);
