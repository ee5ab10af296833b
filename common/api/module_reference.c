#include "common/api/module_reference.h"

#include <ctype.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"

#define LOWER_DIGITS "0123456789abcdefghijklmnopqrstuvwxyz"
#define MAX_TAG 128
#define MAX_PORT_DIGITS 5

bool module_digest_is_valid(const char *text)
{
    if (!text || !str_has_prefix(text, MODULE_DIGEST_PREFIX))
        return false;

    const char *hex = text + strlen(MODULE_DIGEST_PREFIX);

    return strlen(hex) == SHA256_HEX_LEN - 1 && strspn(hex, "0123456789abcdef") == strlen(hex);
}

/* A port, or nothing. */
static bool is_port(const char *text)
{
    size_t len = strlen(text);

    if (*text != ':')
        return len == 0;
    return len > 1 && len <= 1 + MAX_PORT_DIGITS && strspn(text + 1, "0123456789") == len - 1;
}

/* Labels of letters, digits and inner '-', or an IPv6 address in brackets; then a port. */
static bool is_host(const char *text)
{
    char before = '.';

    if (*text == '[') {
        size_t len = strspn(text + 1, "0123456789abcdef:");

        return len && text[1 + len] == ']' && is_port(text + len + 2);
    }
    for (; *text && *text != ':'; text++) {
        bool at_edge = before == '.' || text[1] == '.' || text[1] == ':' || !text[1];

        if (!isalnum((unsigned char)*text) && (at_edge || (*text != '-' && *text != '.')))
            return false;
        before = *text;
    }
    return before != '.' && is_port(text);
}

/* Returns the length of "." or "_" or "__" or any number of "-"; 0: there is none. */
static size_t separator_len(const char *text)
{
    if (*text == '-')
        return strspn(text, "-");
    return *text == '.' ? 1 : text[0] == '_' ? 1 + (size_t)(text[1] == '_') : 0;
}

static bool is_path(const char *text)
{
    for (;;) {
        size_t len = strspn(text, LOWER_DIGITS);

        if (!len)
            return false;
        text += len;
        if (!*text)
            return true;
        len = *text == '/' ? 1 : separator_len(text);
        if (!len)
            return false;
        text += len;
    }
}

static bool is_tag(const char *text)
{
    size_t len = strlen(text);

    if (!len || len > MAX_TAG || *text == '.' || *text == '-')
        return false;
    for (; *text; text++) {
        if (!isalnum((unsigned char)*text) && !strchr("._-", *text))
            return false;
    }
    return true;
}

/* Cuts the text at the character and returns what is behind it; NULL: the character is not there. */
static char *cut_at(char *text, char *at)
{
    if (!text || !at)
        return NULL;
    *at = '\0';
    return at + 1;
}

/* NULL: the parts are a reference. */
static const char *problem_of(const char *host, const char *path, const char *tag,
                              const char *digest)
{
    if (!path || (!strpbrk(host, ".:") && !str_equal(host, "localhost")))
        return "must name its registry, such as registry.example/acme/add:1";
    if (!is_host(host))
        return "must begin with HOST/ or HOST:PORT/";
    if (!is_path(path))
        return "must name a repository of lower-case letters, digits and single '.', '_' or '/' "
               "between them";
    if (tag && !is_tag(tag))
        return "must have a tag of at most 128 letters, digits, '.', '_' and '-'";
    if (digest && !module_digest_is_valid(digest))
        return "must end in '@sha256:' and 64 lower-case hexadecimal digits";
    return NULL;
}

int module_reference_parse(struct arena *arena, const char *text, struct module_reference *ret,
                           struct error *err)
{
    if (strlen(text) > MODULE_REFERENCE_MAX)
        return error_set(err, ERROR_INVALID, "must have at most %d characters",
                         MODULE_REFERENCE_MAX);
    if (strstr(text, "://"))
        return error_set(err, ERROR_INVALID, "must be HOST[:PORT]/PATH[:TAG], without a scheme");

    char *host = arena_strdup(arena, text);
    const char *digest = cut_at(host, strchr(host, '@'));
    char *path = cut_at(host, strchr(host, '/'));
    const char *tag = cut_at(path, path ? strrchr(path, ':') : NULL);

    for (char *c = host; *c; c++)
        *c = (char)tolower((unsigned char)*c);

    const char *problem = problem_of(host, path, tag, digest);
    if (problem)
        return error_set(err, ERROR_INVALID, "%s", problem);
    *ret = (struct module_reference){
        .host = host,
        .path = path,
        .repository = arena_printf(arena, "%s/%s", host, path),
        .tag = digest ? NULL
               : tag  ? tag
                      : "latest",
        .digest = digest,
    };
    return 0;
}
