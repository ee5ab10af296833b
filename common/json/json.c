#include "common/json/json.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/json/scan.h"

/* Up to here a double is sure to be the integer that was written. */
#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */

void json_init(void)
{
    cJSON_Hooks hooks = { .malloc_fn = xmalloc, .free_fn = free };

    cJSON_InitHooks(&hooks);
}

const cJSON *json_get(const cJSON *object, const char *key)
{
    if (!cJSON_IsObject(object))
        return NULL;
    json_for_each (member, object) {
        if (str_equal(member->string, key))
            return member;
    }
    return NULL;
}

const cJSON *json_path(const cJSON *object, const char *key, ...)
{
    va_list args;

    va_start(args, key);
    for (; object && key; key = va_arg(args, const char *))
        object = json_get(object, key);
    va_end(args);
    return object;
}

const char *json_string(const cJSON *item, const char *fallback)
{
    return cJSON_IsString(item) ? item->valuestring : fallback;
}

const char *json_get_string(const cJSON *object, const char *key)
{
    return json_string(json_get(object, key), "");
}

static bool is_integral(double value, double limit)
{
    return value >= -limit && value < limit && floor(value) == value;
}

static bool get_int(const cJSON *item, int64_t *ret)
{
    double value;

    if (cJSON_IsNumber(item)) {
        /* 2^63: what a double prints the same way is the integer itself */
        if (!is_integral(item->valuedouble, 0x1p63))
            return false;
        *ret = (int64_t)item->valuedouble;
        return true;
    }
    if (!json_is_number(item))
        return false;
    if (str_to_int64(item->valuestring, ret))
        return true;
    if (!str_to_double(item->valuestring, &value) || !is_integral(value, EXACT_INTEGER))
        return false;
    *ret = (int64_t)value;
    return true;
}

int64_t json_int(const cJSON *item, int64_t fallback)
{
    int64_t value;

    return get_int(item, &value) ? value : fallback;
}

bool json_bool(const cJSON *item, bool fallback)
{
    return cJSON_IsBool(item) ? cJSON_IsTrue(item) : fallback;
}

double json_double(const cJSON *item, double fallback)
{
    double value;

    if (cJSON_IsNumber(item))
        return item->valuedouble;
    return json_is_number(item) && str_to_double(item->valuestring, &value) ? value : fallback;
}

bool json_is_number(const cJSON *item)
{
    if (cJSON_IsRaw(item) && item->valuestring)
        return json_number_len(item->valuestring, strlen(item->valuestring)) > 0;
    return cJSON_IsNumber(item);
}

static bool is_text(const cJSON *item)
{
    return cJSON_IsRaw(item) && !json_is_number(item);
}

const cJSON *json_opened(struct arena *arena, const cJSON *item)
{
    const cJSON *tree = NULL;

    if (!is_text(item))
        return item;
    if (json_parse(arena, item->valuestring, strlen(item->valuestring), &tree, NULL) < 0)
        return NULL;
    return tree;
}

size_t json_len(const cJSON *array_or_object)
{
    size_t len = 0;

    if (!cJSON_IsArray(array_or_object) && !cJSON_IsObject(array_or_object))
        return 0;
    json_for_each (item, array_or_object)
        len++;
    return len;
}

size_t json_count(const cJSON *item, size_t max)
{
    size_t count = 0;

    if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
        return 0;
    json_for_each (member, item) {
        count += 1 + json_count(member, max - count);
        if (count >= max)
            return max;
    }
    return count;
}

size_t json_depth(const cJSON *item, size_t max)
{
    size_t deepest = 0;

    if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
        return 0;
    if (!max)
        return 1;
    json_for_each (inner, item) {
        size_t depth = json_depth(inner, max - 1);

        if (depth > deepest)
            deepest = depth;
        if (deepest == max)
            break;
    }
    return deepest + 1;
}

const cJSON *json_first(const cJSON *array_or_object)
{
    return array_or_object ? array_or_object->child : NULL;
}

static bool is_plain_integer(const cJSON *item)
{
    return cJSON_IsRaw(item) && item->valuestring[strspn(item->valuestring, "-0123456789")] == '\0';
}

static bool equal_numbers(const cJSON *a, const cJSON *b)
{
    int64_t int_a;
    int64_t int_b;

    if (get_int(a, &int_a) && get_int(b, &int_b))
        return int_a == int_b;
    /* beyond int64, or beyond double: the digits decide */
    if (cJSON_IsRaw(a) && cJSON_IsRaw(b) &&
        (str_equal(a->valuestring, b->valuestring) || (is_plain_integer(a) && is_plain_integer(b))))
        return str_equal(a->valuestring, b->valuestring);

    double difference = json_double(a, NAN) - json_double(b, NAN);

    return difference >= 0 && difference <= 0; /* false for NaN: not a number that can be known */
}

/* As far as the shorter one goes. */
static bool same_len(const cJSON *a, const cJSON *b)
{
    const cJSON *member_a = a->child, *member_b = b->child;

    while (member_a && member_b) {
        member_a = member_a->next;
        member_b = member_b->next;
    }
    return !member_a && !member_b;
}

static bool equal_objects(const cJSON *a, const cJSON *b)
{
    size_t len_a;
    size_t len_b;

    if (!same_len(a, b))
        return false; /* a small one is compared with a large one at once */

    const cJSON **members_a = json_sorted_members(a, &len_a);
    const cJSON **members_b = json_sorted_members(b, &len_b);
    bool equal = len_a == len_b;

    for (size_t i = 0; i < len_a && equal; i++)
        equal = str_equal(members_a[i]->string, members_b[i]->string) &&
                json_equal(members_a[i], members_b[i]);
    free(members_a);
    free(members_b);
    return equal;
}

static bool equal_arrays(const cJSON *a, const cJSON *b)
{
    const cJSON *item_b = b->child;

    json_for_each (item_a, a) {
        if (!item_b || !json_equal(item_a, item_b))
            return false;
        item_b = item_b->next;
    }
    return !item_b;
}

/* Members may stand in another order. One that is not opened has only its text. */
static bool equal_opened(const cJSON *a, const cJSON *b)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (is_text(a) && is_text(b) && str_equal(a->valuestring, b->valuestring))
        return true;
    a = json_opened(arena, a);
    b = json_opened(arena, b);
    return a && b && json_equal(a, b);
}

bool json_equal(const cJSON *a, const cJSON *b)
{
    if (!a || !b)
        return a == b;
    if (is_text(a) || is_text(b))
        return equal_opened(a, b);
    if (json_is_number(a) && json_is_number(b))
        return equal_numbers(a, b);
    if ((a->type & 0xff) != (b->type & 0xff))
        return false;
    if (cJSON_IsObject(a))
        return equal_objects(a, b);
    if (cJSON_IsArray(a))
        return equal_arrays(a, b);
    return str_equal(a->valuestring, b->valuestring); /* NULL for true, false, null */
}

cJSON *json_object(struct arena *arena)
{
    return arena_own(arena, cJSON_CreateObject(), json_free);
}

cJSON *json_array(struct arena *arena)
{
    return arena_own(arena, cJSON_CreateArray(), json_free);
}

/* Text from outside may hold any bytes; JSON may not. */
static cJSON *create_string(const char *value)
{
    size_t len = strlen(value);

    if (str_is_utf8(value, len))
        return cJSON_CreateString(value);

    struct buf clean = BUF_INIT(3 * len);

    while (len) {
        size_t step = str_utf8_char(value, len);
        bool fits = step ? buf_append(&clean, value, step)
                         : buf_append_string(&clean, "\xef\xbf\xbd"); /* U+FFFD */

        assert(fits); /* three bytes for one at most */
        (void)fits;
        step = step ? step : 1;
        value += step;
        len -= step;
    }

    cJSON *item = cJSON_CreateString(buf_string(&clean));

    buf_release(&clean);
    return item;
}

void json_set(cJSON *object, const char *key, cJSON *value)
{
    assert(cJSON_IsObject(object));
    if (!value)
        json_remove(object, key);
    else if (json_get(object, key))
        cJSON_ReplaceItemInObjectCaseSensitive(object, key, value);
    else
        cJSON_AddItemToObject(object, key, value);
}

void json_set_copy(cJSON *object, const char *key, const cJSON *value)
{
    json_set(object, key, value ? json_copy(value) : NULL);
}

void json_set_string(cJSON *object, const char *key, const char *value)
{
    json_set(object, key, value ? create_string(value) : NULL);
}

void json_set_int(cJSON *object, const char *key, int64_t value)
{
    char digits[24];

    (void)snprintf(digits, sizeof(digits), "%lld", (long long)value);
    json_set(object, key, cJSON_CreateRaw(digits));
}

void json_set_bool(cJSON *object, const char *key, bool value)
{
    json_set(object, key, cJSON_CreateBool(value));
}

cJSON *json_set_object(cJSON *object, const char *key)
{
    cJSON *member = cJSON_CreateObject();

    json_set(object, key, member);
    return member;
}

cJSON *json_set_array(cJSON *object, const char *key)
{
    cJSON *member = cJSON_CreateArray();

    json_set(object, key, member);
    return member;
}

void json_add(cJSON *array, cJSON *value)
{
    assert(cJSON_IsArray(array) && value);
    cJSON_AddItemToArray(array, value);
}

void json_add_string(cJSON *array, const char *value)
{
    json_add(array, create_string(value));
}

cJSON *json_add_object(cJSON *array)
{
    cJSON *item = cJSON_CreateObject();

    json_add(array, item);
    return item;
}

void json_remove(cJSON *object, const char *key)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
}

void json_remove_path(cJSON *object, const char *path)
{
    const char *dot = strchr(path, '.');
    char key[64];

    if (cJSON_IsArray(object)) {
        json_for_each (item, object)
            json_remove_path((cJSON *)(uintptr_t)item, path);
        return;
    }
    if (!dot) {
        json_remove(object, path);
        return;
    }
    assert((size_t)(dot - path) < sizeof(key)); /* paths are constants */
    memcpy(key, path, (size_t)(dot - path));
    key[dot - path] = '\0';
    json_remove_path((cJSON *)(uintptr_t)json_get(object, key), dot + 1);
}

void json_free(void *item)
{
    cJSON_Delete(item);
}
