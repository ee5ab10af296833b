#include "standalone/api/present.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "standalone/api/stored.h"

/* Everything in the store, should it ever be that much. */
#define MAX_LIST ((size_t)1 << 30)
/* While it grows room is found for so much at a time. */
#define ROOM_STEP ((size_t)64 << 10)

bool present_table_options(const struct api_call *call, struct table_options *ret)
{
    *ret = (struct table_options){ 0 };
    if (call->format.type != FORMAT_TABLE)
        return true;
    ret->now_us = clock_wall_us(call->api->clock);
    ret->version = call->format.version;
    return table_include_parse(call->query.include_object, &ret->include);
}

int present_refuse_options(struct api_call *call)
{
    return call_fail(call, 400, "BadRequest",
                     "Unable to convert to Table as requested: includeObject: Invalid value: "
                     "\"%s\": must be 'Metadata', 'Object', 'None', or empty",
                     call->query.include_object);
}

int present_object(struct api_call *call, int code, cJSON *object)
{
    if (call->format.type == FORMAT_METADATA)
        return call_reply(call, code, partial_metadata(call->arena, object, call->format.version));
    if (call->format.type != FORMAT_TABLE)
        return call_reply(call, code, object);

    struct table_options options;

    if (!present_table_options(call, &options))
        return present_refuse_options(call);

    cJSON *meta = json_object(call->arena);

    json_set_copy(meta, "resourceVersion", json_path(object, "metadata", "resourceVersion", NULL));

    cJSON *table = table_create(call->arena, call->resource, &options, meta);

    table_add(call->arena, table, call->resource, &options, object);
    return call_reply(call, code, table);
}

static const char *metadata_version(const struct api_call *call)
{
    return call->format.version ? call->format.version : "v1";
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

/* A list without items, as text; their array is its last member. */
static const char *make_frame(struct list_writer *writer, const struct list_end *end)
{
    struct api_call *call = writer->call;
    const cJSON *meta = make_meta(call, end);
    cJSON *list;

    if (call->format.type == FORMAT_TABLE)
        return json_text(call->arena,
                         table_create(call->arena, call->resource, &writer->table, meta), NULL);
    list = json_object(call->arena);
    if (call->format.type == FORMAT_METADATA) {
        json_set_string(list, "kind", "PartialObjectMetadataList");
        json_set_string(list, "apiVersion",
                        arena_printf(call->arena, "meta.k8s.io/%s", metadata_version(call)));
    } else {
        json_set_string(list, "kind", call->resource->list_kind);
        json_set_string(list, "apiVersion", resource_api_version(call->arena, call->resource));
    }
    json_set_copy(list, "metadata", meta);
    (void)json_set_array(list, "items");
    return json_text(call->arena, list, NULL);
}

static cJSON *shown(struct list_writer *writer, struct arena *arena, cJSON *tree)
{
    struct api_call *call = writer->call;

    if (call->format.type == FORMAT_TABLE)
        return arena_own(arena, table_row(arena, call->resource, &writer->table, tree), json_free);
    if (call->format.type == FORMAT_METADATA)
        return partial_metadata(arena, tree, metadata_version(call));
    return tree;
}

void list_writer_begin(struct list_writer *writer, struct api_call *call)
{
    *writer = (struct list_writer){ .call = call, .text = BUF_INIT(MAX_LIST), .room = ROOM_STEP };
    writer->readable = present_table_options(call, &writer->table);
}

static int append_item(struct list_writer *writer, struct arena *arena,
                       const struct kv_value *value, cJSON *tree, struct error *err)
{
    struct api_call *call = writer->call;
    size_t len;

    if (!tree && call->format.type == FORMAT_OBJECT)
        return stored_append(arena, call->resource, value, 0, &writer->text, err);
    if (!tree && stored_tree(arena, call->resource, value, 0, &tree, err) < 0)
        return -1;

    const char *text = json_text(arena, shown(writer, arena, tree), &len);

    return buf_append(&writer->text, text, len)
               ? 0
               : error_set(err, ERROR_TOO_LARGE, "the answer is larger than %zu bytes", MAX_LIST);
}

static int find_room(struct list_writer *writer)
{
    const struct api_request *request = writer->call->request;

    if (!request->has_room || writer->text.len <= writer->room)
        return 0;
    writer->room = writer->text.len + ROOM_STEP;
    return request->has_room(request->ctx, writer->room) ? 0 : call_fail_too_many(writer->call);
}

int list_writer_add(struct list_writer *writer, struct arena *arena, const struct kv_value *value,
                    cJSON *tree)
{
    struct error err = { .code = ERROR_TOO_LARGE };

    if (!writer->readable)
        return 0; /* the end says so */
    if ((writer->text.len && !buf_append_string(&writer->text, ",")) ||
        append_item(writer, arena, value, tree, &err) < 0)
        return call_fail_store(writer->call, &err);
    return find_room(writer);
}

void list_writer_forget(struct list_writer *writer)
{
    buf_clear(&writer->text);
}

int list_writer_end(struct list_writer *writer, const struct list_end *end)
{
    struct api_call *call = writer->call;
    struct error err = { .code = ERROR_TOO_LARGE };

    if (!writer->readable)
        return present_refuse_options(call);

    const char *frame = make_frame(writer, end);
    size_t head = strlen(frame) - strlen("]}");
    /* A slice of Go that nobody made. */
    bool is_null = !writer->text.len && call->format.type == FORMAT_METADATA;

    if (!buf_prepend(&writer->text, frame, is_null ? head - strlen("[") : head) ||
        !buf_append_string(&writer->text, is_null ? "null}\n" : "]}\n"))
        return call_fail_store(call, &err);

    size_t len = writer->text.len;

    return call_reply_text(call, 200, "application/json",
                           arena_own(call->arena, TAKE(writer->text.data), free), len);
}

void list_writer_release(struct list_writer *writer)
{
    buf_release(&writer->text);
}
