#include "common/json/node.h"

#include <assert.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/json/scan.h"

cJSON *json_node(int type, bool has_key, size_t key_len, size_t text_len)
{
    bool has_text = type == cJSON_String || type == cJSON_Raw;
    size_t key_size = has_key ? key_len + 1 : 0;
    cJSON *node = xmalloc(sizeof(*node) + key_size + (has_text ? text_len + 1 : 0));
    char *behind = (char *)(node + 1);

    *node = (cJSON){ .type = type };
    if (has_key) {
        node->type |= cJSON_StringIsConst;
        node->string = behind;
    }
    if (has_text) {
        node->type |= cJSON_IsReference;
        node->valuestring = behind + key_size;
    }
    return node;
}

void json_link(cJSON *container, cJSON *node)
{
    cJSON *first = container->child;

    if (!first) { /* as cJSON has it: the first one knows the last one */
        container->child = node;
        node->prev = node;
        return;
    }
    node->prev = first->prev;
    first->prev->next = node;
    first->prev = node;
}

/* Below 16 digits every integer is printed as it was read. */
#define SURE_DIGITS 15

static bool sure_integer(const char *token, size_t len, double *ret)
{
    bool negative = *token == '-';
    int64_t value = 0;

    if (len - negative > SURE_DIGITS)
        return false;
    for (size_t i = negative; i < len; i++) {
        if (token[i] < '0' || token[i] > '9')
            return false;
        value = value * 10 + (token[i] - '0');
    }
    *ret = negative ? -(double)value : (double)value;
    return true;
}

/* Whether cJSON would print these digits for the number that they are. */
static bool prints_the_same(const char *token, size_t len, double *ret)
{
    char text[JSON_MAX_NUMBER + 1];
    char printed[2 * JSON_MAX_NUMBER];
    cJSON number = { .type = cJSON_Number };

    assert(len <= JSON_MAX_NUMBER); /* the scan has refused it */
    memcpy(text, token, len);
    text[len] = '\0';
    number.valuedouble = *ret = strtod(text, NULL);
    return cJSON_PrintPreallocated(&number, printed, sizeof(printed), false) &&
           strcmp(printed, text) == 0;
}

cJSON *json_node_of_number(const char *token, size_t len, bool has_key, size_t key_len)
{
    double value;

    if (!sure_integer(token, len, &value) && !prints_the_same(token, len, &value)) {
        cJSON *raw = json_node(cJSON_Raw, has_key, key_len, len);
        memcpy(raw->valuestring, token, len);
        raw->valuestring[len] = '\0';
        return raw;
    }

    cJSON *number = json_node(cJSON_Number, has_key, key_len, 0);
    (void)cJSON_SetNumberHelper(number, value);
    return number;
}

/* Without what is between the tokens; to may be NULL. Returns the length. */
static size_t compact(char *to, const char *at, const char *end)
{
    size_t len = 0;
    bool in_string = false;

    for (; at < end; at++) {
        if (!in_string && (unsigned char)*at <= ' ')
            continue;
        if (to)
            to[len] = *at;
        len++;
        if (*at == '"')
            in_string = !in_string;
        if (in_string && *at == '\\' && at + 1 < end) {
            at++;
            if (to)
                to[len] = *at;
            len++;
        }
    }
    return len;
}

cJSON *json_node_of_text(const char *text, size_t len, bool has_key, size_t key_len)
{
    size_t compact_len = compact(NULL, text, text + len);
    cJSON *node = json_node(cJSON_Raw, has_key, key_len, compact_len);

    (void)compact(node->valuestring, text, text + len);
    node->valuestring[compact_len] = '\0';
    return node;
}

static cJSON *copy_node(const cJSON *item)
{
    int type = item->type & 0xff;
    size_t key_len = item->string ? strlen(item->string) : 0;
    size_t text_len = item->valuestring ? strlen(item->valuestring) : 0;
    cJSON *copy = json_node(type, item->string != NULL, key_len, text_len);

    if (item->string)
        memcpy(copy->string, item->string, key_len + 1);
    if (copy->valuestring)
        memcpy(copy->valuestring, item->valuestring ? item->valuestring : "", text_len + 1);
    copy->valueint = item->valueint;
    copy->valuedouble = item->valuedouble;
    return copy;
}

cJSON *json_copy(const cJSON *item)
{
    if (!item)
        return NULL;

    cJSON *copy = copy_node(item);

    json_for_each (child, item)
        json_link(copy, json_copy(child));
    return copy;
}

void json_rename(cJSON *item, const char *key)
{
    char *copy = xstrdup(key); /* which may be its own */

    if (!(item->type & cJSON_StringIsConst))
        free(item->string);
    item->type &= ~cJSON_StringIsConst;
    item->string = copy;
}
