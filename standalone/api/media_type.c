#include "standalone/api/media_type.h"

#include <ctype.h>
#include <string.h>

#include "common/base/str.h"

struct parameters {
    const char *names[MEDIA_TYPE_MAX_PARAMETERS], *values[MEDIA_TYPE_MAX_PARAMETERS];
    size_t len;
};

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\n\v\f\r");
}

static size_t token_len(const char *at)
{
    size_t len = 0;

    while (at[len] > 0x20 && at[len] < 0x7f && !strchr("()<>@,;:\\\"/[]?=", at[len]))
        len++;
    return len;
}

static const char *lower(struct arena *arena, const char *text, size_t len)
{
    char *ret = arena_strndup(arena, text, len);

    for (char *c = ret; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return ret;
}

/* Behind the value, which goes to *ret; NULL: there is none. at: behind the first quote. */
static const char *read_quoted(struct arena *arena, const char *at, const char **ret)
{
    char *value = arena_alloc(arena, strlen(at) + 1, 1);
    size_t len = 0;

    for (; *at && *at != '"'; at++) {
        if (*at == '\r' || *at == '\n')
            return NULL;
        if (*at == '\\' && at[1] && strchr("()<>@,;:\\\"/[]?=", at[1]))
            at++;
        value[len++] = *at;
    }
    value[len] = '\0';
    *ret = value;
    return *at ? at + 1 : NULL;
}

static const char *read_value(struct arena *arena, const char *at, const char **ret)
{
    if (*at == '"')
        return read_quoted(arena, at + 1, ret);

    size_t len = token_len(at);

    *ret = arena_strndup(arena, at, len);
    return len ? at + len : NULL;
}

/* Behind "; name=value"; NULL: it is none. */
static const char *read_parameter(struct arena *arena, const char *at, const char **ret_name,
                                  const char **ret_value)
{
    if (*at != ';')
        return NULL;
    at = skip_blanks(at + 1);

    size_t len = token_len(at);

    *ret_name = lower(arena, at, len);
    at = skip_blanks(at + len);
    return len && *at == '=' ? read_value(arena, skip_blanks(at + 1), ret_value) : NULL;
}

/* The same name twice is allowed with the same value. */
static bool remember(struct parameters *parameters, const char *name, const char *value)
{
    for (size_t i = 0; i < parameters->len; i++) {
        if (str_equal(parameters->names[i], name))
            return str_equal(parameters->values[i], value);
    }
    if (parameters->len == MEDIA_TYPE_MAX_PARAMETERS)
        return false;
    parameters->names[parameters->len] = name;
    parameters->values[parameters->len++] = value;
    return true;
}

static bool are_parameters(struct arena *arena, const char *at)
{
    struct parameters parameters = { .len = 0 };

    for (at = skip_blanks(at); *at; at = skip_blanks(at)) {
        const char *name, *value;
        const char *end = read_parameter(arena, at, &name, &value);

        if (!end)
            return *at == ';' && !*skip_blanks(at + 1); /* one at the end is passed over */
        if (!remember(&parameters, name, value))
            return false;
        at = end;
    }
    return true;
}

const char *media_type_of(struct arena *arena, const char *header)
{
    const char *type = skip_blanks(header);
    size_t len = token_len(type);

    if (!len)
        return NULL;
    if (type[len] == '/') {
        size_t sub_len = token_len(type + len + 1);

        if (!sub_len)
            return NULL;
        len += 1 + sub_len;
    }

    const char *end = skip_blanks(type + len);

    if ((*end && *end != ';') || !are_parameters(arena, end))
        return NULL;
    return lower(arena, type, len);
}

bool media_type_is_patch(const char *header, const char *type)
{
    if (!str_has_prefix(header, type))
        return false;

    const char *end = header + strlen(type);

    return *end == ';' || !*skip_blanks(end);
}
