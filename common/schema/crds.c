#include "common/schema/crds.h"

#include "common/base/compiler.h"

#define CRD(name) EMBED(crd_##name, "crds/" #name ".yaml");
#include "crds/crds.def"
#undef CRD

#define CRD(name) { "crds/" #name ".yaml", crd_##name, crd_##name##_end },
const struct embedded CRDS[] = {
#include "crds/crds.def"
};
const size_t CRDS_LEN = ARRAY_LEN(CRDS);
