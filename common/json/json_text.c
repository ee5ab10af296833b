#include "common/json/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/base/alloc.h"

/* Up to here an integer is printed as cJSON would print it, which asks printf and reads it again. */
#define PLAIN_INTEGER 1e15
#define NUMBER_LEN 64

/* Text is measured, then written: one block of the right size. */
static size_t value_len(const cJSON *item);

/* What follows the backslash; 0: the byte stands for itself, 'u': four digits follow. */
static char escape_of(unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
        return (char)c;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return c < 0x20 ? 'u' : '\0';
    }
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\';
}

static size_t plain_len(const char *s)
{
    size_t len = 0;

    while (is_plain((unsigned char)s[len])) /* a NUL is not plain */
        len++;
    return len;
}

static size_t string_len(const char *s)
{
    size_t len = 2;

    s = s ? s : ""; /* as cJSON has it */

    for (;;) {
        size_t plain = plain_len(s);

        len += plain;
        s += plain;
        if (!*s)
            return len;
        len += escape_of((unsigned char)*s++) == 'u' ? 6 : 2;
    }
}

static char *put_string(char *to, const char *s)
{
    s = s ? s : "";
    *to++ = '"';
    for (;;) {
        size_t plain = plain_len(s);

        memcpy(to, s, plain);
        to += plain;
        s += plain;
        if (!*s)
            break;

        unsigned char c = (unsigned char)*s++;
        char escape = escape_of(c);

        *to++ = '\\';
        *to++ = escape;
        if (escape == 'u') {
            static const char HEX[] = "0123456789abcdef";
            memcpy(to, "00", 2);
            to[2] = HEX[c >> 4];
            to[3] = HEX[c & 15];
            to += 4;
        }
    }
    *to++ = '"';
    return to;
}

/* The digits, and where they begin in ret. */
static const char *number_text(const cJSON *item, char ret[static NUMBER_LEN], size_t *ret_len)
{
    double value = item->valuedouble;

    if (fabs(value) < PLAIN_INTEGER && value == floor(value) && !(value == 0 && signbit(value))) {
        int64_t rest = (int64_t)fabs(value);
        char *at = ret + NUMBER_LEN;

        do {
            *--at = (char)('0' + rest % 10);
            rest /= 10;
        } while (rest);
        if (value < 0)
            *--at = '-';
        *ret_len = (size_t)(ret + NUMBER_LEN - at);
        return at;
    }

    cJSON number = { .type = cJSON_Number, .valuedouble = value };
    bool fits = cJSON_PrintPreallocated(&number, ret, NUMBER_LEN, false);

    assert(fits);
    (void)fits;
    *ret_len = strlen(ret);
    return ret;
}

/* Of everything but strings and containers. */
static const char *scalar_text(const cJSON *item, char ret[static NUMBER_LEN], size_t *ret_len)
{
    const char *word = cJSON_IsTrue(item) ? "true" : cJSON_IsFalse(item) ? "false" : "null";

    if (cJSON_IsNumber(item))
        return number_text(item, ret, ret_len);
    if (cJSON_IsRaw(item))
        word = item->valuestring ? item->valuestring : "";
    *ret_len = strlen(word);
    return word;
}

static size_t container_len(const cJSON *container)
{
    size_t len = 2;

    json_for_each (item, container) {
        len += value_len(item) + (item->next != NULL);
        if (cJSON_IsObject(container))
            len += string_len(item->string) + 1;
    }
    return len;
}

static size_t value_len(const cJSON *item)
{
    char digits[NUMBER_LEN];
    size_t len;

    if (cJSON_IsString(item))
        return string_len(item->valuestring);
    if (cJSON_IsObject(item) || cJSON_IsArray(item))
        return container_len(item);
    (void)scalar_text(item, digits, &len);
    return len;
}

static char *put_value(char *to, const cJSON *item);

static char *put_container(char *to, const cJSON *container)
{
    bool is_object = cJSON_IsObject(container);

    *to++ = is_object ? '{' : '[';
    json_for_each (item, container) {
        if (is_object) {
            to = put_string(to, item->string);
            *to++ = ':';
        }
        to = put_value(to, item);
        if (item->next)
            *to++ = ',';
    }
    *to++ = is_object ? '}' : ']';
    return to;
}

static char *put_value(char *to, const cJSON *item)
{
    char digits[NUMBER_LEN];
    size_t len;

    if (cJSON_IsString(item))
        return put_string(to, item->valuestring);
    if (cJSON_IsObject(item) || cJSON_IsArray(item))
        return put_container(to, item);

    const char *text = scalar_text(item, digits, &len);

    memcpy(to, text, len);
    return to + len;
}

char *json_print(const cJSON *item, size_t *ret_len)
{
    static const cJSON NOTHING = { .type = cJSON_NULL };
    const cJSON *whole = item ? item : &NOTHING;
    size_t len = value_len(whole);
    char *text = xmalloc(len + 1);
    char *end = put_value(text, whole);

    assert(end == text + len);
    *end = '\0';
    if (ret_len)
        *ret_len = len;
    return text;
}

char *json_text(struct arena *arena, const cJSON *item, size_t *ret_len)
{
    return arena_own(arena, json_print(item, ret_len), free);
}
