#include "common/schema/crds.h"

#include "common/base/compiler.h"
#include "common/base/str.h"
#include "common/json/yaml.h"

#define CRD(name) EMBED(crd_##name, "crds/" #name ".yaml");
#define CRD_IN(folder, name) EMBED(crd_##name, "crds/" #folder "/" #name ".yaml");
#include "crds/crds.def"
#undef CRD
#undef CRD_IN

#define CRD(name) { "crds/" #name ".yaml", crd_##name, crd_##name##_end },
#define CRD_IN(folder, name) { "crds/" #folder "/" #name ".yaml", crd_##name, crd_##name##_end },
const struct embedded CRDS[] = {
#include "crds/crds.def"
};
const size_t CRDS_LEN = ARRAY_LEN(CRDS);

int crd_parse(struct arena *arena, const char *plural, const cJSON **ret, struct error *err)
{
    const char *file = arena_printf(arena, "/%s.yaml", plural);

    for (size_t i = 0; i < CRDS_LEN; i++) {
        if (!str_has_suffix(CRDS[i].path, file))
            continue;
        int r = yaml_parse(arena, CRDS[i].text, (size_t)(CRDS[i].end - CRDS[i].text), ret, err);
        return r < 0 ? error_wrap(err, "'%s'", CRDS[i].path) : 0;
    }
    return error_set(err, ERROR_NOT_FOUND, "no manifest '%s'", file + 1);
}
