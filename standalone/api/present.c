#include "standalone/api/present.h"

int present_options(struct api_call *call, struct table_options *ret)
{
    *ret = (struct table_options){ 0 };
    if (call->format.type != FORMAT_TABLE)
        return 0;
    ret->now_us = clock_wall_us(call->api->clock);
    if (table_include_parse(call->query.include_object, &ret->include))
        return 0;
    return call_fail(call, 400, "BadRequest", "includeObject must be Metadata, Object or None");
}

cJSON *present_tree(struct arena *arena, const struct format *format,
                    const struct resource *resource, const struct table_options *options,
                    cJSON *tree)
{
    if (format->type == FORMAT_METADATA)
        return partial_metadata(arena, tree);
    if (format->type != FORMAT_TABLE)
        return tree;

    cJSON *meta = json_object(arena);

    json_set_copy(meta, "resourceVersion", json_path(tree, "metadata", "resourceVersion", NULL));

    cJSON *table = table_create(arena, resource, options, meta);

    table_add(arena, table, resource, options, tree);
    return table;
}

int present_object(struct api_call *call, int code, cJSON *object)
{
    struct table_options options;

    if (present_options(call, &options) < 0)
        return -1;
    return call_reply(call, code,
                      present_tree(call->arena, &call->format, call->resource, &options, object));
}
