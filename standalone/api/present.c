#include "standalone/api/present.h"

#include <inttypes.h>

#include "standalone/api/stored.h"
#include "standalone/schema/table.h"

/* Everything in the store, should it ever be that much. */
#define MAX_LIST ((size_t)1 << 30)

static int read_table_options(struct api_call *call, struct table_options *ret)
{
    *ret = (struct table_options){ .now_us = clock_wall_us(call->api->clock),
                                   .version = call->format.version };
    if (table_include_parse(call->query.include_object, &ret->include))
        return 0;
    return call_fail(call, 400, "BadRequest", "unrecognized includeObject value: \"%s\"",
                     call->query.include_object);
}

int present_object(struct api_call *call, int code, cJSON *object)
{
    if (call->format.type == FORMAT_METADATA)
        return call_reply(call, code, partial_metadata(call->arena, object, call->format.version));
    if (call->format.type != FORMAT_TABLE)
        return call_reply(call, code, object);

    struct table_options options;

    if (read_table_options(call, &options) < 0)
        return -1;

    cJSON *meta = json_object(call->arena);

    json_set_copy(meta, "resourceVersion", json_path(object, "metadata", "resourceVersion", NULL));

    cJSON *table = table_create(call->arena, call->resource, &options, meta);

    table_add(call->arena, table, call->resource, &options, object);
    return call_reply(call, code, table);
}

static cJSON *make_meta(struct api_call *call, const struct list_end *end)
{
    cJSON *meta = json_object(call->arena);

    json_set_string(meta, "resourceVersion", arena_printf(call->arena, "%" PRIu64, end->revision));
    /* A list of custom objects, and only it, has the member always. */
    if (*end->continue_token || (call->resource->custom && call->format.type == FORMAT_OBJECT))
        json_set_string(meta, "continue", end->continue_token);
    if (end->remaining >= 0)
        json_set_int(meta, "remainingItemCount", end->remaining);
    return meta;
}

static int tree_of(struct api_call *call, const struct listed *item, cJSON **ret)
{
    struct error err;

    if (item->tree) {
        *ret = item->tree;
        return 0;
    }
    if (stored_tree(call->arena, call->resource, item->value, 0, ret, &err) < 0)
        return call_fail_store(call, &err);
    return 0;
}

static int present_table(struct api_call *call, const struct listed *items, size_t len,
                         const struct list_end *end)
{
    struct table_options options;

    if (read_table_options(call, &options) < 0)
        return -1;

    cJSON *table = table_create(call->arena, call->resource, &options, make_meta(call, end));

    for (size_t i = 0; i < len; i++) {
        cJSON *tree;

        if (tree_of(call, &items[i], &tree) < 0)
            return -1;
        table_add(call->arena, table, call->resource, &options, tree);
    }
    return call_reply(call, 200, table);
}

static int present_metadata(struct api_call *call, const struct listed *items, size_t len,
                            const struct list_end *end)
{
    cJSON *list = json_object(call->arena);
    const char *version = call->format.version ? call->format.version : "v1";

    json_set_string(list, "kind", "PartialObjectMetadataList");
    json_set_string(list, "apiVersion", arena_printf(call->arena, "meta.k8s.io/%s", version));
    json_set_copy(list, "metadata", make_meta(call, end));

    cJSON *array = json_set_array(list, "items");

    if (!len) /* a slice of Go that nobody made */
        json_set(list, "items", cJSON_CreateNull());

    for (size_t i = 0; i < len; i++) {
        cJSON *tree;

        if (tree_of(call, &items[i], &tree) < 0)
            return -1;
        json_add(array, json_copy(partial_metadata(call->arena, tree, version)));
    }
    return call_reply(call, 200, list);
}

static bool append_item(struct api_call *call, const struct listed *item, struct buf *text,
                        struct error *err)
{
    if (item->tree)
        return buf_append_string(text, json_text(call->arena, item->tree, NULL));
    return stored_append(call->arena, call->resource, item->value, 0, text, err) == 0;
}

int present_list(struct api_call *call, const struct listed *items, size_t len,
                 const struct list_end *end)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_LIST);
    struct error err = { .code = ERROR_TOO_LARGE };

    if (call->format.type == FORMAT_TABLE)
        return present_table(call, items, len, end);
    if (call->format.type == FORMAT_METADATA)
        return present_metadata(call, items, len, end);

    bool fits =
        buf_printf(&text, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":%s,\"items\":[",
                   call->resource->list_kind, resource_api_version(call->arena, call->resource),
                   json_text(call->arena, make_meta(call, end), NULL));

    for (size_t i = 0; fits && i < len; i++)
        fits = (!i || buf_append_string(&text, ",")) && append_item(call, &items[i], &text, &err);
    if (!fits || !buf_append_string(&text, "]}\n"))
        return call_fail_store(call, &err);
    return call_reply_text(call, 200, "application/json",
                           arena_strndup(call->arena, text.data, text.len), text.len);
}
