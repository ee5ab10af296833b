#include "controller/registry/authorization.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/base/buf.h"
#include "common/base/str.h"

#define MAX_PARAMETERS 32
#define MAX_REALM 4096 /* bytes, with service and scope */
#define DEFAULT_TOKEN_S 60
#define MAX_TOKEN_S 86400
#define MAX_TOKEN_VALUES 1000

bool authorization_needs_token(const struct authorization *authorization, int64_t now_ms)
{
    return authorization->scheme == AUTHORIZATION_BEARER &&
           (!authorization->token || now_ms >= authorization->expires_ms);
}

const char *authorization_login(const struct authorization *authorization)
{
    bool is_used = authorization->scheme != AUTHORIZATION_NONE;

    return is_used && authorization->at < authorization->logins.len
               ? authorization->logins.items[authorization->at]
               : NULL;
}

const char *authorization_value(const struct authorization *authorization, struct arena *arena,
                                bool for_token)
{
    const char *login = authorization_login(authorization);

    if (authorization->scheme == AUTHORIZATION_BEARER && !for_token)
        return arena_printf(arena, "Bearer %s", authorization->token);
    return login ? arena_printf(arena, "Basic %s", login) : NULL;
}

void authorization_accepted(struct authorization *authorization)
{
    authorization->is_proven = true;
}

/* Whether the token can stand in a header. */
static bool is_token(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (!isgraph((unsigned char)*c))
            return false;
    }
    return *text;
}

int authorization_take_token(struct authorization *authorization, struct arena *arena,
                             const char *body, size_t len, int64_t now_ms, struct error *err)
{
    static const struct json_reading READING = { .max_values = MAX_TOKEN_VALUES };
    const cJSON *reply = NULL;

    if (json_parse_with(arena, body, len, &READING, &reply, NULL) < 0)
        return error_set(err, ERROR_UNAVAILABLE, "the token server does not answer with JSON");

    const char *token = json_get_string(reply, "token");
    int64_t seconds = json_int(json_get(reply, "expires_in"), DEFAULT_TOKEN_S);

    if (!*token)
        token = json_get_string(reply, "access_token");
    if (!is_token(token))
        return error_set(err, ERROR_UNAVAILABLE, "the token server gives no token");
    if (seconds < 1 || seconds > MAX_TOKEN_S)
        seconds = DEFAULT_TOKEN_S;
    authorization->token = token;
    authorization->expires_ms = now_ms + seconds * 900; /* 90 % */
    authorization->is_proven = false;
    return 0;
}

/* Reads a value, quoted or not, and moves *at behind it. */
static const char *read_value(struct arena *arena, const char **at)
{
    CLEANUP(buf_releasep) struct buf value = BUF_INIT(MAX_REALM);
    const char *text = *at;
    bool is_quoted = *text == '"';

    text += is_quoted;
    while (*text && (is_quoted ? *text != '"' : !strchr(", \t", *text))) {
        text += is_quoted && text[0] == '\\' && text[1];
        if (!buf_append(&value, text++, 1))
            return NULL;
    }
    *at = text + (is_quoted && *text == '"');
    return arena_strdup(arena, buf_string(&value));
}

struct challenge {
    const char *realm, *service, *scope; /* NULL: not named */
};

/* Reads the parameters behind "Bearer"; those beyond MAX_PARAMETERS do not count. */
static struct challenge read_challenge(struct arena *arena, const char *at)
{
    struct challenge challenge = { 0 };
    const struct {
        const char *name;
        const char **value;
    } known[] = {
        { "realm=", &challenge.realm },
        { "service=", &challenge.service },
        { "scope=", &challenge.scope },
    };

    for (unsigned i = 0; i < MAX_PARAMETERS; i++) {
        at += strspn(at, ", \t");

        const char *name = at;

        at += strcspn(at, "=, \t");
        if (*at != '=')
            break;
        at++;

        const char *value = read_value(arena, &at);

        for (size_t k = 0; value && k < ARRAY_LEN(known); k++) {
            if (strncasecmp(name, known[k].name, strlen(known[k].name)) == 0 && !*known[k].value)
                *known[k].value = value;
        }
    }
    return challenge;
}

static bool add_parameter(struct buf *url, const char *name, const char *value)
{
    bool fits = buf_printf(url, "%c%s=", strchr(buf_string(url), '?') ? '&' : '?', name);

    for (; *value && fits; value++)
        fits = isalnum((unsigned char)*value) || strchr("-._~:/", *value)
                   ? buf_append(url, value, 1)
                   : buf_printf(url, "%%%02X", (unsigned)(unsigned char)*value);
    return fits;
}

/* NULL: the challenge names no token server that may be asked. */
static const char *token_address(struct arena *arena, const struct authorization *authorization,
                                 const struct challenge *challenge, const char *scope)
{
    CLEANUP(buf_releasep) struct buf url = BUF_INIT(MAX_REALM);
    const char *realm = challenge->realm;

    if (!realm || (!str_has_prefix(realm, "https://") &&
                   !(authorization->allows_plain && str_has_prefix(realm, "http://"))))
        return NULL;
    if (!buf_append_string(&url, realm) ||
        (challenge->service && !add_parameter(&url, "service", challenge->service)) ||
        !add_parameter(&url, "scope", challenge->scope ? challenge->scope : scope))
        return NULL;
    return arena_strdup(arena, buf_string(&url));
}

/* The text behind the scheme in one of the lines WWW-Authenticate; NULL: none has the scheme. */
static const char *find_scheme(struct arena *arena, const char *lines, const char *scheme)
{
    static const char NAME[] = "www-authenticate:";
    size_t len;

    for (; *lines; lines += len + (lines[len] == '\n')) {
        len = strcspn(lines, "\n");
        if (len < strlen(NAME) || strncasecmp(lines, NAME, strlen(NAME)) != 0)
            continue;

        const char *value = arena_strndup(arena, lines + strlen(NAME), len - strlen(NAME));

        value += strspn(value, " \t");
        if (strncasecmp(value, scheme, strlen(scheme)) == 0 && strchr(" \t", value[strlen(scheme)]))
            return value + strlen(scheme);
    }
    return NULL;
}

/* The credentials after these, by the scheme that the registry named. */
static bool use_next(struct authorization *authorization)
{
    size_t last = authorization->logins.len;

    authorization->token = NULL;
    if (authorization->at == last)
        return false;
    authorization->at++;
    return authorization->at < last || authorization->scheme == AUTHORIZATION_BEARER;
}

bool authorization_token_refused(struct authorization *authorization)
{
    return use_next(authorization);
}

bool authorization_refused(struct authorization *authorization, struct arena *arena,
                           const char *headers, const char *scope)
{
    const char *bearer = find_scheme(arena, headers, "Bearer");
    struct challenge challenge = read_challenge(arena, bearer ? bearer : "");
    const char *realm = token_address(arena, authorization, &challenge, scope);

    if (authorization->scheme == AUTHORIZATION_BEARER && authorization->is_proven) {
        authorization->token = NULL; /* expired early */
        authorization->is_proven = false;
        return true;
    }
    if (authorization->scheme != AUTHORIZATION_NONE)
        return use_next(authorization);
    if (realm) {
        authorization->scheme = AUTHORIZATION_BEARER;
        authorization->realm = realm;
        return true;
    }
    if (bearer && !find_scheme(arena, headers, "Basic"))
        return false; /* its token server may not be asked */
    authorization->scheme = AUTHORIZATION_BASIC;
    return authorization->logins.len > 0;
}
