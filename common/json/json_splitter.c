#include "common/json/json_splitter.h"

#include <stdbool.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/json/scan.h"

/* A buffer that has grown beyond this for one large part is given back after it. */
#define KEEP_BYTES (64u << 10)

/*
 *   DOCUMENTS       BETWEEN <-> PART
 *   LIST, VALUES    BEFORE -> ENVELOPE <-> BETWEEN <-> PART
 *                                |
 *                                +-> DONE
 */
enum place { BEFORE, ENVELOPE, BETWEEN, PART, DONE, FAILED };

struct json_splitter {
    json_part_fn *on_part;
    void *ctx;
    enum json_split split;
    enum place place;
    struct buf part;
    size_t part_len; /* counted on when the part is over its limit */
    struct buf envelope;
    size_t depth;      /* open brackets */
    size_t part_depth; /* the brackets around the part */
    bool in_string;
    bool escaped;
    char last; /* what came last in "items": '[', ',', or '\0' for an item */
};

struct json_splitter *json_splitter_create(size_t max_part, json_part_fn *part, void *ctx)
{
    struct json_splitter *splitter = xcalloc(1, sizeof(*splitter));

    splitter->part.max = max_part;
    splitter->on_part = part;
    splitter->ctx = ctx;
    return splitter;
}

void json_splitter_destroy(struct json_splitter *splitter)
{
    if (!splitter)
        return;
    buf_release(&splitter->part);
    buf_release(&splitter->envelope);
    free(splitter);
}

static void drop_part(struct json_splitter *splitter)
{
    splitter->part_len = 0;
    if (splitter->part.cap > KEEP_BYTES)
        buf_release(&splitter->part);
    else
        buf_clear(&splitter->part);
}

void json_splitter_start(struct json_splitter *splitter, enum json_split split)
{
    drop_part(splitter);
    buf_release(&splitter->envelope);
    splitter->envelope.max = split == JSON_SPLIT_LIST ? JSON_MAX_ENVELOPE : splitter->part.max;
    splitter->split = split;
    splitter->place = split == JSON_SPLIT_DOCUMENTS ? BETWEEN : BEFORE;
    splitter->depth = 0;
    splitter->part_depth = 0;
    splitter->in_string = false;
    splitter->escaped = false;
}

bool json_splitter_is_in_part(const struct json_splitter *splitter)
{
    return splitter->place == PART;
}

/* Keeps strings and nesting in mind; the byte belongs to a part or to the envelope. */
static void scan(struct json_splitter *splitter, char c)
{
    if (splitter->in_string) {
        if (splitter->escaped)
            splitter->escaped = false;
        else if (c == '\\')
            splitter->escaped = true;
        else if (c == '"')
            splitter->in_string = false;
        return;
    }
    if (c == '"')
        splitter->in_string = true;
    else if (c == '{' || c == '[')
        splitter->depth++;
    else if (c == '}' || c == ']')
        splitter->depth--;
}

static size_t skip_back(const struct buf *text, size_t len)
{
    while (len && json_is_blank(text->data[len - 1]))
        len--;
    return len;
}

/* The envelope ends with the key "items" and its colon. A key that is written with escape sequences is another one: no
 * program writes "items" so. */
static bool is_behind_items(const struct buf *envelope)
{
    static const char ITEMS_KEY[] = "\"items\"";
    size_t key_len = sizeof(ITEMS_KEY) - 1;
    size_t len = skip_back(envelope, envelope->len);

    if (!len || envelope->data[len - 1] != ':')
        return false;
    len = skip_back(envelope, len - 1);
    if (len < key_len || memcmp(envelope->data + len - key_len, ITEMS_KEY, key_len) != 0)
        return false;
    len = skip_back(envelope, len - key_len);
    return len && (envelope->data[len - 1] == '{' || envelope->data[len - 1] == ',');
}

static int emit(struct json_splitter *splitter, enum json_part part, const char *text, size_t len,
                struct error *err)
{
    int r = splitter->on_part(splitter->ctx, part, text, len, err);

    if (r < 0)
        splitter->place = FAILED;
    return r;
}

static int fail(struct json_splitter *splitter, struct error *err, enum error_code code,
                const char *what)
{
    splitter->place = FAILED;
    return error_set(err, code, "%s", what);
}

/* Throws the part away once it is too large, but goes on counting. */
static void keep_part(struct json_splitter *splitter, const char *bytes, size_t len)
{
    splitter->part_len += len;
    if (splitter->part_len > splitter->part.max || !buf_append(&splitter->part, bytes, len))
        buf_release(&splitter->part);
}

static int end_part(struct json_splitter *splitter, const char *bytes, size_t len,
                    struct error *err)
{
    bool whole = splitter->part_len == 0; /* came in one piece: no copy */

    if (!whole)
        keep_part(splitter, bytes, len);
    else
        splitter->part_len = len;

    bool over = splitter->part_len > splitter->part.max;
    const char *text = over ? NULL : whole ? bytes : splitter->part.data;
    bool is_document = splitter->split == JSON_SPLIT_DOCUMENTS;

    splitter->place = BETWEEN;
    splitter->last = '\0';
    int r = emit(splitter, is_document ? JSON_PART_DOCUMENT : JSON_PART_ITEM, text,
                 splitter->part_len, err);
    drop_part(splitter);
    return r;
}

/* Behind a value of any kind; the byte is not part of it. */
static bool ends_value(const struct json_splitter *splitter, char c)
{
    return splitter->split == JSON_SPLIT_VALUES && !splitter->in_string &&
           splitter->depth == splitter->part_depth && (c == ',' || c == ']' || c == '}');
}

/* From here to the end of the part or of the bytes; returns how many were taken. */
static int feed_part(struct json_splitter *splitter, const char *bytes, size_t len,
                     size_t *ret_taken, struct error *err)
{
    for (size_t i = 0; i < len; i++) {
        if (ends_value(splitter, bytes[i])) {
            *ret_taken = i;
            return end_part(splitter, bytes, i, err);
        }
        scan(splitter, bytes[i]);
        if (splitter->split != JSON_SPLIT_VALUES && splitter->depth == splitter->part_depth) {
            *ret_taken = i + 1;
            return end_part(splitter, bytes, i + 1, err);
        }
    }
    keep_part(splitter, bytes, len);
    *ret_taken = len;
    return 0;
}

static int feed_envelope(struct json_splitter *splitter, char c, struct error *err)
{
    bool opens_items = c == '[' && !splitter->in_string && splitter->depth == 1 &&
                       is_behind_items(&splitter->envelope);

    scan(splitter, c);
    if (!buf_append(&splitter->envelope, &c, 1))
        return fail(splitter, err, ERROR_TOO_LARGE, "list with too much besides its items");
    if (opens_items) {
        splitter->part_depth = splitter->depth;
        splitter->last = c;
    }
    splitter->place = opens_items ? BETWEEN : ENVELOPE;
    if (splitter->depth)
        return 0;
    splitter->place = DONE;
    return emit(splitter, JSON_PART_ENVELOPE, splitter->envelope.data, splitter->envelope.len, err);
}

static int feed_between(struct json_splitter *splitter, char c, struct error *err)
{
    bool ends = c == ']' || (c == '}' && splitter->split == JSON_SPLIT_VALUES);

    if (json_is_blank(c))
        return 0;
    if (splitter->split == JSON_SPLIT_DOCUMENTS)
        return fail(splitter, err, ERROR_INVALID, "not a JSON object");
    if (c == ',' ? splitter->last != '\0' : ends && splitter->last == ',')
        return fail(splitter, err, ERROR_INVALID, "an item of 'items' is missing");
    if (ends)
        return feed_envelope(splitter, c, err);
    if (c != ',')
        return fail(splitter, err, ERROR_INVALID, "'items' holds something else than objects");
    splitter->last = c;
    return 0;
}

static bool begins_part(const struct json_splitter *splitter, char c)
{
    bool is_other = json_is_blank(c) || c == ',' || c == ']' || c == '}';

    return c == '{' || (splitter->split == JSON_SPLIT_VALUES && !is_other);
}

/* Takes at least one byte, or ends a part. */
static int step(struct json_splitter *splitter, const char *bytes, size_t len, size_t *ret_taken,
                struct error *err)
{
    *ret_taken = 1;
    switch (splitter->place) {
    case BETWEEN:
        if (!begins_part(splitter, *bytes))
            return feed_between(splitter, *bytes, err);
        splitter->place = PART;
        return feed_part(splitter, bytes, len, ret_taken, err);
    case PART:
        return feed_part(splitter, bytes, len, ret_taken, err);
    case BEFORE:
        if (json_is_blank(*bytes))
            return 0;
        if (*bytes != '{')
            return fail(splitter, err, ERROR_INVALID, "not a JSON object");
        return feed_envelope(splitter, *bytes, err);
    case ENVELOPE:
        return feed_envelope(splitter, *bytes, err);
    case DONE:
        return json_is_blank(*bytes)
                   ? 0
                   : fail(splitter, err, ERROR_INVALID, "bytes after the end of the list");
    case FAILED:
        break;
    }
    return fail(splitter, err, ERROR_INVALID, "the stream has failed before");
}

int json_splitter_feed(struct json_splitter *splitter, const char *bytes, size_t len,
                       struct error *err)
{
    size_t taken;

    for (size_t i = 0; i < len; i += taken) {
        int r = step(splitter, bytes + i, len - i, &taken, err);
        if (r < 0)
            return r;
    }
    return 0;
}
