#include "standalone/api/present.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "standalone/api/stored.h"

/* Everything in the store, should it ever be that much. */
#define MAX_LIST ((size_t)1 << 30)
/* While a list grows room is found for so much at a time. */
#define ROOM_STEP ((size_t)64 << 10)

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
        return partial_metadata(arena, tree, "v1");
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

/* --- lists ------------------------------------------------------------------------------------ */

static cJSON *list_meta(struct api_call *call, const struct list_end *end)
{
    cJSON *meta = json_object(call->arena);

    json_set_string(meta, "resourceVersion", arena_printf(call->arena, "%" PRIu64, end->revision));
    if (*end->continue_token)
        json_set_string(meta, "continue", end->continue_token);
    if (end->remaining >= 0)
        json_set_int(meta, "remainingItemCount", end->remaining);
    return meta;
}

/* A list without items, as text; their array is its last member. */
static const char *list_frame(struct list_writer *writer, const struct list_end *end)
{
    struct api_call *call = writer->call;
    const struct resource *resource = call->resource;
    const cJSON *meta = list_meta(call, end);
    bool partial = call->format.type == FORMAT_METADATA;
    cJSON *list = json_object(call->arena);

    if (call->format.type == FORMAT_TABLE)
        return json_text(call->arena, table_create(call->arena, resource, &writer->table, meta),
                         NULL);
    json_set_string(list, "kind", partial ? "PartialObjectMetadataList" : resource->list_kind);
    json_set_string(list, "apiVersion",
                    partial ? "meta.k8s.io/v1" : resource_api_version(call->arena, resource));
    json_set_copy(list, "metadata", meta);
    (void)json_set_array(list, "items");
    return json_text(call->arena, list, NULL);
}

int list_writer_begin(struct list_writer *writer, struct api_call *call)
{
    *writer = (struct list_writer){ .call = call, .text = BUF_INIT(MAX_LIST), .room = ROOM_STEP };
    return present_options(call, &writer->table);
}

static int list_append(struct list_writer *writer, struct arena *arena,
                       const struct kv_value *value, cJSON *tree, struct error *err)
{
    const struct api_call *call = writer->call;
    const cJSON *shown;
    size_t len;

    if (!tree && call->format.type == FORMAT_OBJECT)
        return stored_append(arena, call->resource, value, 0, &writer->text, err);
    if (!tree && stored_tree(arena, call->resource, value, 0, &tree, err) < 0)
        return -1;
    shown =
        call->format.type == FORMAT_TABLE
            ? arena_own(arena, table_row(arena, call->resource, &writer->table, tree), json_free)
            : present_tree(arena, &call->format, call->resource, &writer->table, tree);

    const char *text = json_text(arena, shown, &len);

    return buf_append(&writer->text, text, len)
               ? 0
               : error_set(err, ERROR_TOO_LARGE, "the answer is larger than %zu bytes", MAX_LIST);
}

int list_writer_add(struct list_writer *writer, struct arena *arena, const struct kv_value *value,
                    cJSON *tree)
{
    const struct api_request *request = writer->call->request;
    struct error err = { .code = ERROR_TOO_LARGE };

    if ((writer->text.len && !buf_append_string(&writer->text, ",")) ||
        list_append(writer, arena, value, tree, &err) < 0)
        return call_fail_error(writer->call, &err);
    if (!request->has_room || writer->text.len <= writer->room)
        return 0;
    writer->room = writer->text.len + ROOM_STEP;
    return request->has_room(request->ctx, writer->room) ? 0 : call_fail_too_many(writer->call);
}

void list_writer_forget(struct list_writer *writer)
{
    buf_clear(&writer->text);
}

int list_writer_end(struct list_writer *writer, const struct list_end *end)
{
    struct api_call *call = writer->call;
    const struct error err = { .code = ERROR_TOO_LARGE };
    const char *frame = list_frame(writer, end);

    if (!buf_prepend(&writer->text, frame, strlen(frame) - strlen("]}")) ||
        !buf_append_string(&writer->text, "]}\n"))
        return call_fail_error(call, &err);

    size_t len = writer->text.len;

    return call_reply_text(call, 200, "application/json",
                           arena_own(call->arena, TAKE(writer->text.data), free), len);
}

void list_writer_release(struct list_writer *writer)
{
    buf_release(&writer->text);
}
