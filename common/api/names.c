#include "common/api/names.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/digest.h"

/* "-" and ten hex digits: 40 bits, beside the readable part. */
#define HASH_DIGITS 10
#define HASH_SUFFIX (HASH_DIGITS + 1)
#define MIN_NAME 16

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static char name_character(const char *text, size_t i)
{
    char c = text[i];

    if (is_alphanumeric(c))
        return (char)tolower((unsigned char)c);
    /* each part between dots begins and ends with a letter or digit */
    if (c == '.' && i > 0 && is_alphanumeric(text[i - 1]) && is_alphanumeric(text[i + 1]))
        return c;
    return '-';
}

static char label_character(const char *text, size_t i)
{
    char c = text[i];

    return is_alphanumeric(c) || c == '.' || c == '_' ? c : '-';
}

/* Cuts at max, then what is no letter or digit at both ends. Returns the new length. */
static size_t trim(char *text, size_t max)
{
    size_t len = strlen(text);
    size_t start = 0;

    if (len > max)
        len = max;
    while (len > 0 && !is_alphanumeric(text[len - 1]))
        len--;
    while (start < len && !is_alphanumeric(text[start]))
        start++;
    memmove(text, text + start, len - start);
    text[len - start] = '\0';
    return len - start;
}

static char *fit(struct arena *arena, const char *text, size_t max,
                 char (*character)(const char *text, size_t i))
{
    size_t len = strlen(text);
    char *fitted = arena_strdup(arena, text);

    for (size_t i = 0; i < len; i++)
        fitted[i] = character(text, i);
    if (len && trim(fitted, max) == len && strcmp(fitted, text) == 0)
        return fitted;

    char hash[SHA256_HEX_LEN];
    sha256_hex(text, len, hash);
    if (trim(fitted, max - HASH_SUFFIX) == 0)
        return arena_printf(arena, "x-%.*s", HASH_DIGITS, hash);
    return arena_printf(arena, "%s-%.*s", fitted, HASH_DIGITS, hash);
}

char *child_name(struct arena *arena, size_t max, const char *format, ...)
{
    va_list args;

    assert(max >= MIN_NAME);
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return fit(arena, text, max, name_character);
}

char *label_value(struct arena *arena, const char *text)
{
    if (!*text)
        return arena_strdup(arena, "");
    return fit(arena, text, LABEL_VALUE_MAX, label_character);
}
