#include "common/kube/json_splitter.h"

#include <stdbool.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"

/* A buffer that has grown beyond this for one large part is given back after it. */
#define KEEP_BYTES (64u << 10)

static const char ITEMS[] = "items";

/*
 *   DOCUMENTS   BETWEEN <-> PART
 *   LIST        BEFORE -> ENVELOPE <-> BETWEEN <-> PART
 *                            |
 *                            +-> DONE
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
    size_t key_match; /* how much of ITEMS the last string of the envelope has been; KEY_OTHER */
    bool in_items_value;
};

#define KEY_OTHER sizeof(ITEMS)

struct json_splitter *json_splitter_create(size_t max_part, json_part_fn *part, void *ctx)
{
    struct json_splitter *splitter = xcalloc(1, sizeof(*splitter));

    splitter->part.max = max_part;
    splitter->envelope.max = JSON_MAX_ENVELOPE;
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
    splitter->split = split;
    splitter->place = split == JSON_SPLIT_LIST ? BEFORE : BETWEEN;
    splitter->depth = 0;
    splitter->part_depth = 0;
    splitter->in_string = false;
    splitter->escaped = false;
    splitter->key_match = KEY_OTHER;
    splitter->in_items_value = false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
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

/* Keys of the envelope are compared as they pass, at any depth: what is deeper is followed by a
 * comma before the next key that counts. An escape matches nothing: the API server writes "items"
 * as it is. */
static void match_key(struct json_splitter *splitter, char c, bool was_in_string)
{
    if (!was_in_string) {
        if (c == '"')
            splitter->key_match = 0;
        else if (c == ':')
            splitter->in_items_value = splitter->key_match == sizeof(ITEMS) - 1;
        else if (c == ',')
            splitter->in_items_value = false;
        return;
    }
    if (splitter->in_string) /* not the closing quote */
        splitter->key_match =
            splitter->key_match < sizeof(ITEMS) - 1 && ITEMS[splitter->key_match] == c
                ? splitter->key_match + 1
                : KEY_OTHER;
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

static int keep_envelope(struct json_splitter *splitter, const char *bytes, size_t len,
                         struct error *err)
{
    if (!buf_append(&splitter->envelope, bytes, len))
        return fail(splitter, err, ERROR_TOO_LARGE, "list with too much besides its items");
    return 0;
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
    bool is_list = splitter->split == JSON_SPLIT_LIST;

    splitter->place = BETWEEN;
    int r = emit(splitter, is_list ? JSON_PART_ITEM : JSON_PART_DOCUMENT, text, splitter->part_len,
                 err);
    drop_part(splitter);
    return r;
}

/* From here to the end of the part or of the bytes; returns how many were taken. */
static int feed_part(struct json_splitter *splitter, const char *bytes, size_t len,
                     size_t *ret_taken, struct error *err)
{
    for (size_t i = 0; i < len; i++) {
        scan(splitter, bytes[i]);
        if (splitter->depth == splitter->part_depth) {
            *ret_taken = i + 1;
            return end_part(splitter, bytes, i + 1, err);
        }
    }
    keep_part(splitter, bytes, len);
    *ret_taken = len;
    return 0;
}

static int feed_between(struct json_splitter *splitter, char c, struct error *err)
{
    bool is_list = splitter->split == JSON_SPLIT_LIST;

    if (is_blank(c) || (is_list && c == ','))
        return 0;
    if (is_list && c == ']') {
        splitter->depth--;
        splitter->place = ENVELOPE;
        return keep_envelope(splitter, &c, 1, err);
    }
    return fail(splitter, err, ERROR_INVALID,
                is_list ? "'items' holds something else than objects" : "not a JSON object");
}

static int feed_envelope(struct json_splitter *splitter, const char *bytes, size_t len,
                         size_t *ret_taken, struct error *err)
{
    size_t i = 0;

    while (i < len && splitter->place == ENVELOPE) {
        char c = bytes[i++];
        bool was_in_string = splitter->in_string;
        bool is_items = splitter->in_items_value && splitter->depth == 1;
        scan(splitter, c);
        match_key(splitter, c, was_in_string);
        if (splitter->depth == 0) {
            splitter->place = DONE;
        } else if (is_items && !was_in_string && c == '[') {
            splitter->part_depth = splitter->depth;
            splitter->place = BETWEEN;
        }
    }
    *ret_taken = i;

    int r = keep_envelope(splitter, bytes, i, err);
    if (r < 0 || splitter->place != DONE)
        return r;
    return emit(splitter, JSON_PART_ENVELOPE, splitter->envelope.data, splitter->envelope.len, err);
}

/* Takes at least one byte. */
static int step(struct json_splitter *splitter, const char *bytes, size_t len, size_t *ret_taken,
                struct error *err)
{
    *ret_taken = 1;
    switch (splitter->place) {
    case BETWEEN:
        if (*bytes != '{')
            return feed_between(splitter, *bytes, err);
        splitter->place = PART;
        return feed_part(splitter, bytes, len, ret_taken, err);
    case PART:
        return feed_part(splitter, bytes, len, ret_taken, err);
    case BEFORE:
        if (is_blank(*bytes))
            return 0;
        if (*bytes != '{')
            return fail(splitter, err, ERROR_INVALID, "not a JSON object");
        splitter->place = ENVELOPE;
        return feed_envelope(splitter, bytes, len, ret_taken, err);
    case ENVELOPE:
        return feed_envelope(splitter, bytes, len, ret_taken, err);
    case DONE:
        return is_blank(*bytes)
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
