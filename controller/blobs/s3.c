#include "controller/blobs/s3.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/buf.h"
#include "common/base/str.h"

/* S3 allows 1024 bytes of key. */
#define MAX_ENCODED 8192
#define MAX_CREDENTIALS ((size_t)64 << 10)

static bool is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c && strchr("-_.~", c));
}

const char *s3_encode(struct arena *arena, const char *text, bool slashes)
{
    CLEANUP(buf_releasep) struct buf out = BUF_INIT(MAX_ENCODED);
    bool fits = true;

    for (; *text && fits; text++) {
        if (is_unreserved(*text) || (slashes && *text == '/'))
            fits = buf_append(&out, text, 1);
        else
            fits = buf_printf(&out, "%%%02X", (unsigned char)*text);
    }
    return arena_strdup(arena, buf_string(&out));
}

static const struct {
    const char *text;
    char meaning;
} ENTITIES[] = {
    { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' },
};

static const char *without_entities(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        size_t step = 1;

        *to = *from;
        for (size_t i = 0; i < ARRAY_LEN(ENTITIES); i++) {
            if (str_has_prefix(from, ENTITIES[i].text)) {
                *to = ENTITIES[i].meaning;
                step = strlen(ENTITIES[i].text);
            }
        }
        from += step;
    }
    *to = '\0';
    return text;
}

const char *s3_element(struct arena *arena, const char **at, const char *name)
{
    const char *open = arena_printf(arena, "<%s>", name);
    const char *close = arena_printf(arena, "</%s>", name);
    const char *from = strstr(*at, open);
    const char *to = from ? strstr(from, close) : NULL;

    if (!to)
        return NULL;
    from += strlen(open);
    *at = to + strlen(close);
    return without_entities(arena_strndup(arena, from, (size_t)(to - from)));
}

/* A bucket that is not there holds nothing against the object. */
static enum error_code code_of(const char *method, int status, const char *code)
{
    switch (status) {
    case 404:
        return str_equal(method, "PUT") || str_equal(code, "NoSuchBucket") ? ERROR_UNAVAILABLE
                                                                           : ERROR_NOT_FOUND;
    case 401:
    case 403:
        return ERROR_FORBIDDEN;
    case 413:
        return ERROR_TOO_LARGE;
    case 408:
    case 409:
    case 429:
        return ERROR_UNAVAILABLE;
    default:
        return status >= 500 ? ERROR_UNAVAILABLE : ERROR_INVALID;
    }
}

int s3_error(struct arena *arena, const char *method, int status, const char *body,
             struct error *err)
{
    const char *at = body;
    const char *code = s3_element(arena, &at, "Code");

    if (code &&
        strspn(code, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(code))
        return error_set(err, code_of(method, status, code), "%s to the S3 store: status %d, %.64s",
                         method, status, code);
    return error_set(err, code_of(method, status, code), "%s to the S3 store: status %d", method,
                     status);
}

static bool is_endpoint(const char *endpoint)
{
    const char *host = NULL;

    if (str_has_prefix(endpoint, "https://"))
        host = endpoint + strlen("https://");
    else if (str_has_prefix(endpoint, "http://"))
        host = endpoint + strlen("http://");
    if (!host)
        return false;

    size_t len = strcspn(host, "/?#@ ");
    return len && (!host[len] || (host[len] == '/' && !host[len + 1]));
}

static bool is_word(const char *text, const char *letters, size_t least, size_t most)
{
    size_t len = text ? strlen(text) : 0;

    return len >= least && len <= most && strspn(text, letters) == len;
}

int s3_options_check(const struct model_s3_options *options, struct error *err)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";

    if (!options->endpoint || !is_endpoint(options->endpoint))
        return error_set(err, ERROR_INVALID,
                         "--s3-endpoint must be 'http://host[:port]' or 'https://host[:port]'");
    if (!is_word(options->bucket, LETTERS, 3, 63))
        return error_set(err, ERROR_INVALID,
                         "--s3-bucket must be 3 to 63 of a-z, 0-9, '.' and '-'");
    if (!str_is_empty(options->region) && !is_word(options->region, LETTERS, 1, 63))
        return error_set(err, ERROR_INVALID, "--s3-region must be of a-z, 0-9, '.' and '-'");
    if (str_is_empty(options->access_key) || str_is_empty(options->secret_key))
        return error_set(err, ERROR_INVALID,
                         "--s3-credentials-file must hold aws_access_key_id and "
                         "aws_secret_access_key");
    return 0;
}

static char *trimmed(char *text)
{
    size_t len;

    text += strspn(text, " \t");
    len = strlen(text);
    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

/* One "name = value" of the profile that counts. */
static void take_line(struct arena *arena, char *line, struct model_s3_options *ret)
{
    char *equals = strchr(line, '=');

    if (!equals)
        return;
    *equals = '\0';

    const char *name = trimmed(line);
    const char *value = trimmed(equals + 1);
    if (str_equal(name, "aws_access_key_id"))
        ret->access_key = arena_strdup(arena, value);
    else if (str_equal(name, "aws_secret_access_key"))
        ret->secret_key = arena_strdup(arena, value);
    else if (str_equal(name, "aws_session_token"))
        ret->session_token = arena_strdup(arena, value);
}

int model_s3_credentials_read(struct arena *arena, const char *path, struct model_s3_options *ret,
                              struct error *err)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0, total = 0;
    bool counts = true;

    if (!file)
        return error_set(err, ERROR_INVALID, "credentials file '%s': %s", path,
                         strerrordesc_np(errno));
    ret->access_key = ret->secret_key = NULL; /* one of each is a pair */
    while (total < MAX_CREDENTIALS && getline(&line, &size, file) > 0) {
        char *text = trimmed(line);
        total += strlen(text);
        if (*text == '[')
            counts = str_equal(text, "[default]");
        else if (counts && *text != '#' && *text != ';')
            take_line(arena, text, ret);
    }
    if (line)
        explicit_bzero(line, size);
    free(line);
    (void)fclose(file);
    if (str_is_empty(ret->access_key) || str_is_empty(ret->secret_key))
        return error_set(err, ERROR_INVALID,
                         "credentials file '%s' must hold aws_access_key_id and "
                         "aws_secret_access_key",
                         path);
    return 0;
}
