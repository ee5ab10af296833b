#include "standalone/api/format.h"

#include <string.h>

#include "common/base/str.h"

/* The value of ";name=" in one element of Accept; NULL: it has none. */
static const char *parameter(struct arena *arena, const char *element, const char *name)
{
    const char *at = element;
    size_t name_len = strlen(name);

    while ((at = strchr(at, ';'))) {
        at += 1 + strspn(at + 1, " ");
        if (strncmp(at, name, name_len) == 0 && at[name_len] == '=')
            return arena_strndup(arena, at + name_len + 1, strcspn(at + name_len + 1, "; "));
    }
    return NULL;
}

/* Of what is given in the place of objects; none counts as v1. */
static bool is_served(const char *version)
{
    return !version || str_equal(version, "v1") || str_equal(version, "v1beta1");
}

static bool read_json(struct arena *arena, const char *element, struct format *ret)
{
    const char *as = parameter(arena, element, "as");

    ret->version = parameter(arena, element, "v");
    if (!as)
        ret->type = FORMAT_OBJECT;
    else if (str_equal(as, "Table") && is_served(ret->version))
        ret->type = FORMAT_TABLE;
    else if (str_has_prefix(as, "PartialObjectMetadata") && is_served(ret->version))
        ret->type = FORMAT_METADATA;
    else if (str_equal(as, "APIGroupDiscoveryList"))
        ret->type = FORMAT_AGGREGATED;
    else
        return false;
    return true;
}

static bool read_element(struct arena *arena, const char *element, struct format *ret)
{
    const char *type = arena_strndup(arena, element, strcspn(element, "; "));

    *ret = (struct format){ 0 };
    if (str_equal(type, "application/json") || str_has_prefix(element, "*/*") ||
        str_has_prefix(element, "application/*"))
        return read_json(arena, element, ret);
    if (str_has_prefix(element, "application/yaml")) {
        ret->yaml = true;
        return true;
    }
    if (str_has_prefix(element, "application/com.github.proto-openapi.spec.v2")) {
        ret->type = FORMAT_PROTOBUF;
        return true;
    }
    return false;
}

struct format format_of(struct arena *arena, const char *accept)
{
    struct format format = { 0 };

    while (accept && *accept) {
        size_t len = strcspn(accept, ",");
        const char *element =
            arena_strndup(arena, accept + strspn(accept, " "),
                          len - (strspn(accept, " ") < len ? strspn(accept, " ") : len));

        if (*element && read_element(arena, element, &format))
            return format;
        accept += len + (accept[len] == ',');
    }
    return (struct format){ 0 };
}
