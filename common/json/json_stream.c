#include "common/json/json_stream.h"

#include <string.h>

#include "common/base/buf.h"

#define MAX_TEXT ((size_t)16 << 20)
#define CHUNK ((size_t)64 << 10)

static const char SEPARATOR[] = "---";

/*
 *   BETWEEN <-> OBJECT <-> ITEMS <-> ITEM
 */
enum where {
    BETWEEN, /* objects */
    OBJECT,  /* in one, but not in its items */
    ITEMS,   /* before an item, or behind the last one */
    ITEM,
};

struct stream {
    yaml_take_fn *take;
    void *ctx;
    struct error *err;
    struct yaml_place place; /* of what is handed over next: an item, while there is one */
    size_t object_line;
    size_t line; /* of the byte that is looked at */
    enum where where;
    size_t depth; /* open brackets */
    bool in_string;
    bool escaped;
    size_t dashes;     /* of a separator, so far */
    bool separated;    /* there was one, and no object behind it */
    bool wants_item;   /* behind a comma */
    struct buf object; /* without its items */
    struct buf item;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static int refuse(const struct stream *stream, const char *why)
{
    return error_set(stream->err, ERROR_INVALID, "document %zu, line %zu: invalid JSON: %s",
                     stream->place.document, stream->line, why);
}

/* Keeps strings and nesting in mind. */
static void scan(struct stream *stream, char c)
{
    if (stream->in_string) {
        if (stream->escaped)
            stream->escaped = false;
        else if (c == '\\')
            stream->escaped = true;
        else if (c == '"')
            stream->in_string = false;
        return;
    }
    if (c == '"')
        stream->in_string = true;
    else if (c == '{' || c == '[')
        stream->depth++;
    else if (c == '}' || c == ']')
        stream->depth--;
}

static int keep(const struct stream *stream, struct buf *part, char c)
{
    if (buf_append(part, &c, 1))
        return 0;
    return error_set(stream->err, ERROR_TOO_LARGE,
                     "document %zu has more than 16 MiB in one object", stream->place.document);
}

static int hand_over(struct stream *stream, struct buf *part)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct yaml_place *place = &stream->place;
    const cJSON *object;

    int r = json_parse(arena, part->data, part->len, &object, stream->err);
    if (r < 0 && place->item)
        return error_wrap(stream->err, "document %zu, item %zu, which begins at line %zu",
                          place->document, place->item, place->line);
    if (r < 0)
        return error_wrap(stream->err, "document %zu, which begins at line %zu", place->document,
                          place->line);
    buf_clear(part);
    return stream->take(stream->ctx, place, (cJSON *)(uintptr_t)object, stream->err);
}

static size_t skip_back(const struct buf *text, size_t len)
{
    while (len && is_blank(text->data[len - 1]))
        len--;
    return len;
}

/* What the object ends with is the key "items" and its colon. Keys that are written with escape
 * sequences are others, as no program writes this one so. */
static bool is_behind_items(const struct buf *object)
{
    static const char ITEMS_KEY[] = "\"items\"";
    size_t key_len = sizeof(ITEMS_KEY) - 1;
    size_t len = skip_back(object, object->len);

    if (!len || object->data[len - 1] != ':')
        return false;
    len = skip_back(object, len - 1);
    if (len < key_len || memcmp(object->data + len - key_len, ITEMS_KEY, key_len) != 0)
        return false;
    len = skip_back(object, len - key_len);
    return len && (object->data[len - 1] == '{' || object->data[len - 1] == ',');
}

static int begin_object(struct stream *stream)
{
    stream->place.document++;
    stream->place.item = 0;
    stream->separated = false;
    stream->object_line = stream->line;
    stream->where = OBJECT;
    scan(stream, '{');
    return keep(stream, &stream->object, '{');
}

static int feed_between(struct stream *stream, char c)
{
    bool is_separator = stream->dashes == strlen(SEPARATOR);

    if (c == '-' && !is_separator) {
        stream->dashes++;
        return 0;
    }
    if (stream->dashes && !(is_separator && is_blank(c)))
        return refuse(stream, "neither an object nor a line with '---'");
    if (is_separator) {
        stream->place.document += stream->separated;
        stream->separated = true;
        stream->dashes = 0;
    }
    if (is_blank(c))
        return 0;
    if (c == '{')
        return begin_object(stream);
    stream->place.document++;
    return refuse(stream, "what follows is no object, as the one before it; YAML must be in a file "
                          "of its own");
}

static int feed_object(struct stream *stream, char c)
{
    bool opens_items =
        c == '[' && !stream->in_string && stream->depth == 1 && is_behind_items(&stream->object);

    scan(stream, c);
    int r = keep(stream, &stream->object, c);
    if (r < 0)
        return r;
    if (opens_items) {
        stream->where = ITEMS;
        stream->wants_item = false;
    }
    if (stream->depth)
        return 0;
    stream->where = BETWEEN;
    stream->place.item = 0;
    stream->place.line = stream->object_line;
    return hand_over(stream, &stream->object);
}

static int end_items(struct stream *stream, char c)
{
    stream->where = OBJECT;
    return feed_object(stream, c);
}

static int feed_item(struct stream *stream, char c)
{
    bool is_end = !stream->in_string && stream->depth == 2 && (c == ',' || c == ']' || c == '}');

    if (!is_end) {
        scan(stream, c);
        return keep(stream, &stream->item, c);
    }
    int r = hand_over(stream, &stream->item);
    if (r < 0)
        return r;
    stream->where = ITEMS;
    stream->wants_item = c == ',';
    return c == ',' ? 0 : end_items(stream, c);
}

static int feed_items(struct stream *stream, char c)
{
    if (is_blank(c))
        return 0;
    if (c == ',' || (stream->wants_item && (c == ']' || c == '}')))
        return refuse(stream, "an item of 'items' is missing");
    if (c == ']' || c == '}')
        return end_items(stream, c);
    stream->where = ITEM;
    stream->place.item++;
    stream->place.line = stream->line;
    return feed_item(stream, c);
}

static int feed(struct stream *stream, char c)
{
    switch (stream->where) {
    case BETWEEN:
        return feed_between(stream, c);
    case OBJECT:
        return feed_object(stream, c);
    case ITEMS:
        return feed_items(stream, c);
    case ITEM:
        break;
    }
    return feed_item(stream, c);
}

static int end(struct stream *stream, FILE *file)
{
    if (ferror(file))
        return error_set(stream->err, ERROR_INVALID, "not readable behind line %zu", stream->line);
    if (stream->where != BETWEEN)
        return refuse(stream, "the end of an object is missing");
    return stream->dashes ? feed_between(stream, '\n') : 0;
}

static int read_chunks(struct stream *stream, struct input *input)
{
    char bytes[CHUNK];

    for (;;) {
        size_t len = input_read(input, bytes, sizeof(bytes));

        if (!len)
            return end(stream, input->file);
        for (size_t i = 0; i < len; i++) {
            int r = feed(stream, bytes[i]);
            if (r < 0)
                return r;
            stream->line += bytes[i] == '\n';
        }
    }
}

int json_stream_read(struct input *input, yaml_take_fn *take, void *ctx, struct error *err)
{
    struct stream stream = { .take = take,
                             .ctx = ctx,
                             .err = err,
                             .line = 1,
                             .object = BUF_INIT(MAX_TEXT),
                             .item = BUF_INIT(MAX_TEXT) };
    int r = read_chunks(&stream, input);

    buf_release(&stream.object);
    buf_release(&stream.item);
    return r;
}
