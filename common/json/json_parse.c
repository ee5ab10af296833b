#include <assert.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/json/scan.h"

/* Up to this size an object is searched for duplicate keys pair by pair. */
#define SMALL_OBJECT 16

/* Below 16 digits every integer is printed as it was read. */
#define SURE_DIGITS 15

static bool is_sure(const char *token, size_t len)
{
    if (*token == '-') {
        token++;
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        if (token[i] < '0' || token[i] > '9')
            return false;
    }
    return len <= SURE_DIGITS;
}

static bool prints_the_same(cJSON *number, const char *token, size_t len)
{
    char printed[2 * JSON_MAX_NUMBER];

    return is_sure(token, len) ||
           (cJSON_PrintPreallocated(number, printed, sizeof(printed), false) &&
            strlen(printed) == len && memcmp(printed, token, len) == 0);
}

void json_keep_digits(cJSON *number, const char *token, size_t len)
{
    if (prints_the_same(number, token, len))
        return;
    number->type = cJSON_Raw;
    number->valuestring = xstrndup(token, len);
}

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
                found = str_equal(member->string, other->string) ? member->string : NULL;
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

/* Visits the tree in document order, beside the number tokens of its text. */
static int complete(cJSON *item, const char **at, const char *end, struct error *err)
{
    if (cJSON_IsNumber(item)) {
        const char *token;
        size_t len = json_next_number(at, end, &token);

        assert(len); /* the scan saw as many numbers as cJSON */
        json_keep_digits(item, token, len);
        return 0;
    }
    for (cJSON *child = item->child; child; child = child->next) {
        int r = complete(child, at, end, err);

        if (r < 0)
            return r;
    }

    const char *twice = cJSON_IsObject(item) ? json_duplicate_key(item) : NULL;

    if (twice)
        return error_set(err, ERROR_INVALID, "key '%.*s' appears twice in one JSON object",
                         (int)str_utf8_cut(twice, strlen(twice), 100), twice);
    return 0;
}

int json_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err)
{
    int r = json_scan(text, len, err);

    if (r < 0)
        return r;

    cJSON *tree = arena_own(arena, cJSON_ParseWithLength(text, len), json_free);

    if (!tree)
        return error_set(err, ERROR_INVALID, "invalid JSON");

    r = complete(tree, &text, text + len, err);
    if (r < 0)
        return r;

    *ret = tree;
    return 0;
}
