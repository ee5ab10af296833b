#include "common/json/json_stream.h"

#include <string.h>

#include "common/json/json_splitter.h"
#include "common/json/scan.h"

#define MAX_TEXT ((size_t)16 << 20)
#define CHUNK ((size_t)64 << 10)

static const char SEPARATOR[] = "---";

struct stream {
    yaml_take_fn *take;
    void *ctx;
    struct error *err;
    struct json_splitter *splitter;
    struct yaml_place place; /* of what is handed over next */
    size_t object_line;
    size_t item_line; /* of the item that has begun, or will begin */
    size_t line;      /* of what is looked at */
    bool in_object;
    bool has_failed; /* a part, which err says */
    size_t dashes;   /* of a separator, so far */
    bool separated;  /* there was one, and no object behind it */
};

static int refuse(const struct stream *stream, const char *why)
{
    return error_set(stream->err, ERROR_INVALID, "document %zu, line %zu: invalid JSON: %s",
                     stream->place.document, stream->line, why);
}

static int refuse_large(const struct stream *stream)
{
    return error_set(stream->err, ERROR_TOO_LARGE,
                     "document %zu has more than 16 MiB in one object", stream->place.document);
}

static int hand_over(struct stream *stream, const char *text, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct yaml_place *place = &stream->place;
    const cJSON *object;

    int r = json_parse(arena, text, len, &object, stream->err);
    if (r < 0 && place->item)
        return error_wrap(stream->err, "document %zu, item %zu, which begins at line %zu",
                          place->document, place->item, place->line);
    if (r < 0)
        return error_wrap(stream->err, "document %zu, which begins at line %zu", place->document,
                          place->line);
    return stream->take(stream->ctx, place, (cJSON *)(uintptr_t)object, stream->err);
}

static int on_part(void *ctx, enum json_part part, const char *text, size_t len,
                   struct error *err UNUSED)
{
    struct stream *stream = ctx;

    if (part == JSON_PART_ENVELOPE) {
        stream->in_object = false;
        stream->place.item = 0;
        stream->place.line = stream->object_line;
    } else {
        stream->place.item++;
        stream->place.line = stream->item_line;
        stream->item_line = stream->line;
    }

    int r = text ? hand_over(stream, text, len) : refuse_large(stream);

    stream->has_failed = r < 0;
    return r;
}

/* Bytes of one line, behind which nothing of the object follows if they hold its end. */
static size_t run_of(const char *bytes, size_t len)
{
    size_t i = 0;

    while (i < len && bytes[i] != '\n' && bytes[i] != '}')
        i++;
    return i < len ? i + 1 : len;
}

static int feed_object(struct stream *stream, const char *bytes, size_t len)
{
    struct error err = { 0 };

    if (!json_splitter_is_in_part(stream->splitter))
        stream->item_line = stream->line;

    int r = json_splitter_feed(stream->splitter, bytes, len, &err);
    if (r == 0 || stream->has_failed)
        return r;
    return r == -ERROR_TOO_LARGE ? refuse_large(stream) : refuse(stream, err.message);
}

static int begin_object(struct stream *stream)
{
    stream->place.document++;
    stream->place.item = 0;
    stream->separated = false;
    stream->object_line = stream->line;
    stream->in_object = true;
    json_splitter_start(stream->splitter, JSON_SPLIT_VALUES);
    return feed_object(stream, "{", 1);
}

static int feed_between(struct stream *stream, char c)
{
    bool is_separator = stream->dashes == strlen(SEPARATOR);

    if (c == '-' && !is_separator) {
        stream->dashes++;
        return 0;
    }
    if (stream->dashes && !(is_separator && json_is_blank(c)))
        return refuse(stream, "neither an object nor a line with '---'");
    if (is_separator) {
        stream->place.document += stream->separated;
        stream->separated = true;
        stream->dashes = 0;
    }
    if (json_is_blank(c))
        return 0;
    if (c == '{')
        return begin_object(stream);
    stream->place.document++;
    return refuse(stream, "what follows is no object, as the one before it; YAML must be in a file "
                          "of its own");
}

static int end(struct stream *stream, FILE *file)
{
    if (ferror(file))
        return error_set(stream->err, ERROR_INVALID, "not readable behind line %zu", stream->line);
    if (stream->in_object)
        return refuse(stream, "the end of an object is missing");
    return stream->dashes ? feed_between(stream, '\n') : 0;
}

static int feed(struct stream *stream, const char *bytes, size_t len)
{
    for (size_t i = 0, run; i < len; i += run) {
        run = stream->in_object ? run_of(bytes + i, len - i) : 1;

        int r = stream->in_object ? feed_object(stream, bytes + i, run)
                                  : feed_between(stream, bytes[i]);
        if (r < 0)
            return r;
        stream->line += bytes[i + run - 1] == '\n';
    }
    return 0;
}

static int read_chunks(struct stream *stream, struct input *input)
{
    char bytes[CHUNK];
    size_t len;

    while ((len = input_read(input, bytes, sizeof(bytes)))) {
        int r = feed(stream, bytes, len);
        if (r < 0)
            return r;
    }
    return end(stream, input->file);
}

int json_stream_read(struct input *input, yaml_take_fn *take, void *ctx, struct error *err)
{
    struct stream stream = { .take = take, .ctx = ctx, .err = err, .line = 1 };

    stream.splitter = json_splitter_create(MAX_TEXT, on_part, &stream);

    int r = read_chunks(&stream, input);

    json_splitter_destroy(stream.splitter);
    return r;
}
