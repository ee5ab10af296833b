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
};

/* What is between two quotes. */
struct piece {
    const char *text;
    size_t len;
    bool escaped;
};

/* What of an object is not built: the rests of paths that lead into it. */
struct unread {
    const char *paths[JSON_MAX_UNREAD];
    size_t len;
};
static const struct unread NOTHING;

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

/* What is left of the paths in this member; false: it is not to be built at all. */
static bool enter(const struct unread *unread, const struct piece *key, struct unread *ret)
{
    ret->len = 0;
    if (!unread->len || key->escaped || memchr(key->text, '.', key->len))
        return true;
    for (size_t i = 0; i < unread->len; i++) {
        const char *path = unread->paths[i];
        if (strncmp(path, key->text, key->len) != 0)
            continue;
        if (path[key->len] == '\0')
            return false;
        if (path[key->len] == '.')
            ret->paths[ret->len++] = path + key->len + 1;
    }
    return true;
}

static cJSON *read_value(struct reader *reader, const struct piece *key,
                         const struct unread *unread);

static void skip_value(struct reader *reader)
{
    size_t depth = 0;

    do {
        char c = next(reader);
        if (c == '"') {
            (void)read_string(reader);
        } else {
            depth += c == '{' || c == '[';
            depth -= c == '}' || c == ']';
            reader->at++;
        }
        c = next(reader);
        if (!depth && (c == ',' || c == '}' || c == ']'))
            return;
    } while (reader->at < reader->end);
}

static void read_members(struct reader *reader, cJSON *object, const struct unread *unread)
{
    const char *twice;
    struct unread inner;

    for (reader->at++; next(reader) != '}'; reader->at += *reader->at == ',') {
        struct piece key = read_string(reader);

        (void)next(reader);
        reader->at++; /* the colon */
        (void)next(reader);
        if (enter(unread, &key, &inner))
            json_link(object, read_value(reader, &key, &inner));
        else
            skip_value(reader);
        (void)next(reader);
    }
    reader->at++;
    twice = reader->twice ? NULL : json_duplicate_key(object);
    if (twice)
        reader->twice = twice;
}

static void read_items(struct reader *reader, cJSON *array)
{
    for (reader->at++; next(reader) != ']'; reader->at += *reader->at == ',') {
        json_link(array, read_value(reader, NULL, &NOTHING));
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

/* At its first byte; the depth is bounded, the scan has seen to it. */
static cJSON *read_value(struct reader *reader, const struct piece *key,
                         const struct unread *unread)
{
    struct piece text;
    cJSON *node;

    switch (next(reader)) {
    case '"':
        text = read_string(reader);
        return make_node(cJSON_String, key, &text);
    case '{':
        node = make_node(cJSON_Object, key, NULL);
        read_members(reader, node, unread);
        return node;
    case '[':
        node = make_node(cJSON_Array, key, NULL);
        read_items(reader, node);
        return node;
    case 't':
    case 'f':
    case 'n':
        return read_word(reader, key);
    default:
        return read_number(reader, key);
    }
}

int json_parse_without(struct arena *arena, const char *text, size_t len, const char *const *unread,
                       const cJSON **ret, struct error *err)
{
    struct reader reader = { .at = text, .end = text + len };
    struct unread paths = { .len = 0 };
    int r = json_scan(text, len, err);

    if (r < 0)
        return r;
    for (; unread && unread[paths.len]; paths.len++) {
        assert(paths.len < JSON_MAX_UNREAD);
        paths.paths[paths.len] = unread[paths.len];
    }

    const cJSON *tree = arena_own(arena, read_value(&reader, NULL, &paths), json_free);

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
    return json_parse_without(arena, text, len, NULL, ret, err);
}
