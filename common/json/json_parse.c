#include <assert.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/json/node.h"
#include "common/json/scan.h"

/* Up to this size an object is searched for duplicate keys pair by pair. */
#define SMALL_OBJECT 16

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

const cJSON **json_sorted_members(const cJSON *object, size_t *ret_len)
{
    size_t len = json_len(object);
    const cJSON **members = xcalloc(len, sizeof(cJSON *));
    size_t i = 0;

    json_for_each (member, object)
        members[i++] = member;
    qsort(members, len, sizeof(cJSON *), by_key);
    *ret_len = len;
    return members;
}

const char *json_duplicate_key(const cJSON *object)
{
    const char *found = NULL;
    size_t len = json_len(object);

    if (len <= SMALL_OBJECT) {
        json_for_each (member, object) {
            for (const cJSON *other = member->next; other && !found; other = other->next)
                found =
                    *member->string == *other->string && str_equal(member->string, other->string)
                        ? member->string
                        : NULL;
        }
        return found;
    }

    /* Somebody may send an object of a hundred thousand keys. */
    const cJSON **members = json_sorted_members(object, &len);

    for (size_t i = 1; i < len && !found; i++)
        found = by_key(&members[i - 1], &members[i]) == 0 ? members[i]->string : NULL;
    free(members);
    return found;
}

/* Builds the tree of a text that json_scan has found to be JSON, so nothing is checked again but keys. */
struct reader {
    const char *at;
    const char *end;
    const char *twice; /* the first key that an object has twice */
    size_t left;       /* nodes that may still be made */
    bool over;         /* there were more values */
};

/* What is between two quotes. */
struct piece {
    const char *text;
    size_t len;
    bool escaped;
};

/* Members that are not built: the rests of the paths that lead to them from here. */
struct apart {
    struct {
        const char *rest;
        bool is_text;
    } paths[JSON_MAX_UNREAD + JSON_MAX_TEXTS];
    size_t len;
};

static char next(struct reader *reader)
{
    while (reader->at < reader->end && (unsigned char)*reader->at <= ' ')
        reader->at++;
    return reader->at < reader->end ? *reader->at : '\0';
}

static struct piece read_string(struct reader *reader)
{
    const char *begin = reader->at + 1;
    const char *quote = memchr(begin, '"', (size_t)(reader->end - begin));

    assert(quote); /* the scan saw it */
    bool escaped = memchr(begin, '\\', (size_t)(quote - begin)) != NULL;
    if (escaped)
        quote = json_end_of_string(begin, reader->end);
    reader->at = quote + 1;
    return (struct piece){ begin, (size_t)(quote - begin), escaped };
}

static unsigned hex_value(const char *digits)
{
    unsigned value = 0;

    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)digits[i];
        value = value << 4 | (c <= '9' ? c - '0' : ((c | 0x20) - 'a') + 10);
    }
    return value;
}

static char *put_utf8(char *to, unsigned code)
{
    static const unsigned char FIRST[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    int len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (int i = len - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(len == 1 ? code : FIRST[len] | code);
    return to + len;
}

/* Behind the backslash; returns what follows the escape sequence. */
static const char *decode_escape(const char *at, char **to)
{
    static const char NAMED[] = "bfnrt", MEANT[] = "\b\f\n\r\t";
    const char *found = strchr(NAMED, *at);

    if (*at != 'u') {
        *(*to)++ = found ? MEANT[found - NAMED] : *at;
        return at + 1;
    }

    unsigned code = hex_value(at + 1);
    at += 5;
    if (code >= 0xd800 && code <= 0xdbff) { /* the scan saw the other half */
        code = 0x10000 + ((code & 0x3ff) << 10 | (hex_value(at + 2) & 0x3ff));
        at += 6;
    }
    *to = put_utf8(*to, code);
    return at;
}

/* An escape sequence is longer than what it stands for. */
static void decode(char *to, const struct piece *piece)
{
    const char *at = piece->text, *end = piece->text + piece->len;

    if (!piece->escaped) {
        memcpy(to, at, piece->len);
        to[piece->len] = '\0';
        return;
    }
    while (at < end) {
        if (*at == '\\')
            at = decode_escape(at + 1, &to);
        else
            *to++ = *at++;
    }
    *to = '\0';
}

static cJSON *make_node(int type, const struct piece *key, const struct piece *text)
{
    cJSON *node = json_node(type, key != NULL, key ? key->len : 0, text ? text->len : 0);

    if (key)
        decode(node->string, key);
    if (text)
        decode(node->valuestring, text);
    return node;
}

enum building { BUILT, SKIPPED, KEPT_AS_TEXT };

/* Decides how this member is built, and returns the paths that lead inside it. */
static enum building enter(const struct apart *apart, const struct piece *key, struct apart *ret)
{
    ret->len = 0;
    if (!apart->len || key->escaped || memchr(key->text, '.', key->len))
        return BUILT;
    for (size_t i = 0; i < apart->len; i++) {
        const char *path = apart->paths[i].rest;
        if (strncmp(path, key->text, key->len) != 0)
            continue;
        if (path[key->len] == '\0')
            return apart->paths[i].is_text ? KEPT_AS_TEXT : SKIPPED;
        if (path[key->len] == '.') {
            ret->paths[ret->len] = apart->paths[i];
            ret->paths[ret->len++].rest += key->len + 1;
        }
    }
    return BUILT;
}

static cJSON *read_value(struct reader *reader, const struct piece *key, const struct apart *apart);

static void skip_value(struct reader *reader)
{
    (void)next(reader);
    reader->at = json_end_of_value(reader->at, reader->end);
}

/* Of a container; anything else is small, and built. */
static cJSON *read_text(struct reader *reader, const struct piece *key)
{
    const char *begin = reader->at;

    skip_value(reader);
    cJSON *node = json_node_of_text(begin, (size_t)(reader->at - begin), true, key->len);
    decode(node->string, key);
    return node;
}

static cJSON *read_member(struct reader *reader, const struct piece *key, const struct apart *apart)
{
    struct apart inner;
    enum building building = enter(apart, key, &inner);
    bool is_container = *reader->at == '{' || *reader->at == '[';

    if (building == KEPT_AS_TEXT && is_container)
        return read_text(reader, key);
    if (building != SKIPPED)
        return read_value(reader, key, &inner);
    skip_value(reader);
    return NULL;
}

static void read_members(struct reader *reader, cJSON *object, const struct apart *apart)
{
    const char *twice;

    for (reader->at++; next(reader) != '}'; reader->at += *reader->at == ',') {
        struct piece key = read_string(reader);

        (void)next(reader);
        reader->at++; /* the colon */
        (void)next(reader);
        cJSON *member = read_member(reader, &key, apart);
        if (member)
            json_link(object, member);
        (void)next(reader);
    }
    reader->at++;
    twice = reader->twice ? NULL : json_duplicate_key(object);
    if (twice)
        reader->twice = twice;
}

static void read_items(struct reader *reader, cJSON *array, const struct apart *apart)
{
    for (reader->at++; next(reader) != ']'; reader->at += *reader->at == ',') {
        cJSON *item = read_value(reader, NULL, apart);
        if (item)
            json_link(array, item);
        (void)next(reader);
    }
    reader->at++;
}

static cJSON *read_word(struct reader *reader, const struct piece *key)
{
    int type = *reader->at == 't' ? cJSON_True : *reader->at == 'f' ? cJSON_False : cJSON_NULL;

    reader->at += type == cJSON_False ? 5 : 4;
    return make_node(type, key, NULL);
}

static cJSON *read_number(struct reader *reader, const struct piece *key)
{
    const char *token = reader->at;
    size_t len = json_number_len(token, (size_t)(reader->end - token));
    cJSON *node = json_node_of_number(token, len, key != NULL, key ? key->len : 0);

    if (key)
        decode(node->string, key);
    reader->at += len;
    return node;
}

/* At its first byte; the depth is bounded, the scan has seen to it. NULL: there are too many values. */
static cJSON *read_value(struct reader *reader, const struct piece *key, const struct apart *apart)
{
    struct piece text;
    cJSON *node;

    if (!reader->left) {
        reader->over = true;
        skip_value(reader);
        return NULL;
    }
    reader->left--;
    switch (next(reader)) {
    case '"':
        text = read_string(reader);
        return make_node(cJSON_String, key, &text);
    case '{':
        node = make_node(cJSON_Object, key, NULL);
        read_members(reader, node, apart);
        return node;
    case '[':
        node = make_node(cJSON_Array, key, NULL);
        read_items(reader, node, apart);
        return node;
    case 't':
    case 'f':
    case 'n':
        return read_word(reader, key);
    default:
        return read_number(reader, key);
    }
}

static void add_paths(struct apart *apart, const char *const *paths, size_t max, bool is_text)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        assert(i < max);
        apart->paths[apart->len].rest = paths[i];
        apart->paths[apart->len++].is_text = is_text;
    }
}

size_t json_max_values(size_t len)
{
    return JSON_FREE_VALUES + len / JSON_BYTES_PER_VALUE;
}

int json_parse_with(struct arena *arena, const char *text, size_t len,
                    const struct json_reading *reading, const cJSON **ret, struct error *err)
{
    size_t max = reading->own ? len + 1 : json_max_values(len);
    struct reader reader = { .at = text, .end = text + len, .left = max };
    struct apart apart = { .len = 0 };
    int r = json_scan(text, len, err);

    if (r < 0)
        return r;
    if (reading->max_values && reading->max_values < max)
        reader.left = max = reading->max_values;
    add_paths(&apart, reading->unread, JSON_MAX_UNREAD, false);
    add_paths(&apart, reading->texts, JSON_MAX_TEXTS, true);

    const cJSON *tree = arena_own(arena, read_value(&reader, NULL, &apart), json_free);

    if (reader.over)
        return error_set(err, ERROR_TOO_LARGE,
                         "%zu bytes of JSON with more than %zu values are not read", len, max);
    if (reader.twice)
        return error_set_quoting(err, ERROR_INVALID, "key '%.*s' appears twice in one JSON object",
                                 (int)str_utf8_cut(reader.twice, strlen(reader.twice), 100),
                                 reader.twice);
    *ret = tree;
    return 0;
}

int json_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err)
{
    return json_parse_with(arena, text, len, &(struct json_reading){ .own = false }, ret, err);
}

int json_parse_own(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                   struct error *err)
{
    return json_parse_with(arena, text, len, &(struct json_reading){ .own = true }, ret, err);
}
