#include "common/api/decode.h"

#include <string.h>

struct parts {
    void *spec;
    void *status;
};

static void hand_out(void *ret, const void *part, size_t size)
{
    if (part)
        memcpy(ret, part, size);
    else
        memset(ret, 0, size);
}

int api_decode(struct arena *arena, const cJSON *object, const struct json_struct *spec_table,
               void *ret_spec, const struct json_struct *status_table, void *ret_status,
               struct error *err)
{
    const struct json_field fields[] = {
        JSON_FIELD_NESTED(FIELD_OBJECT, struct parts, spec, "spec", spec_table),
        JSON_FIELD_NESTED(FIELD_OBJECT, struct parts, status, "status", status_table),
    };
    const struct json_struct table = JSON_STRUCT(struct parts, fields);
    struct parts parts = { 0 };

    int r = json_decode(arena, &table, object, &parts, err);
    if (r < 0)
        return r;

    hand_out(ret_spec, parts.spec, spec_table->size);
    hand_out(ret_status, parts.status, status_table->size);
    return 0;
}
