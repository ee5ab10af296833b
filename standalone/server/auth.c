#include "standalone/server/auth.h"

#include <string.h>
#include <strings.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "standalone/api/api.h"

#define AS "Impersonate-"
#define EXTRA "Impersonate-Extra-"
#define SERVICE_ACCOUNT "system:serviceaccount:"
#define AUTHENTICATION "authentication.k8s.io"

static const char *hash_of(struct arena *arena, const char *token)
{
    char *hash = arena_alloc(arena, SHA256_HEX_LEN, 1);

    return sha256_hex(token, strlen(token), hash);
}

static void read_impersonation(const struct http_server_request *request, struct arena *arena,
                               struct credentials *ret)
{
    const struct http_header *headers;
    size_t len = http_request_headers(request, arena, AS, &headers), count = 0;
    const char **groups = arena_array(arena, const char *, len + 1);

    for (size_t i = 0; i < len; i++) {
        const char *name = headers[i].name + strlen(AS);

        if (strcasecmp(name, "User") == 0)
            ret->as = arena_strdup(arena, headers[i].value);
        else if (strcasecmp(name, "Group") == 0)
            groups[count++] = arena_strdup(arena, headers[i].value);
        else if (strcasecmp(name, "Uid") == 0)
            ret->as_uid = arena_strdup(arena, headers[i].value);
        else if (strncasecmp(headers[i].name, EXTRA, strlen(EXTRA)) == 0)
            ret->as_extra = arena_strdup(arena, headers[i].name + strlen(EXTRA));
    }
    if (str_is_empty(ret->as))
        ret->as = NULL;
    ret->as_groups = groups;
    ret->has_as_more = count || ret->as_uid || ret->as_extra;
}

#define BLANKS " \t"

/*
 * As the API server reads it: the word behind "Bearer". NULL: there is none, or the scheme is another one,
 * which counts as no credentials at all.
 */
static const char *read_token(struct arena *arena, const char *authorization)
{
    static const char BEARER[] = "Bearer ";

    if (!authorization)
        return NULL;

    const char *scheme = authorization + strspn(authorization, BLANKS);

    if (strncasecmp(scheme, BEARER, strlen(BEARER)) != 0)
        return NULL;

    const char *token = scheme + strlen(BEARER);
    size_t len = strcspn(token, BLANKS);

    return len ? arena_strndup(arena, token, len) : NULL;
}

void credentials_read(const struct http_server_request *request, struct arena *arena,
                      struct credentials *ret)
{
    struct http_peer *peer = arena_new(arena, struct http_peer);
    const char *token = read_token(arena, request->authorization);

    *ret = (struct credentials){ .token_hash = token ? hash_of(arena, token) : NULL };
    if (http_request_peer(request, arena, peer))
        ret->peer = peer;
    read_impersonation(request, arena, ret);
}

/* --- who it is -------------------------------------------------------------------------------- */

static const char *const *groups_with(struct arena *arena, const char *const *groups,
                                      const char *more)
{
    size_t len = 0;

    while (groups && groups[len])
        len++;

    const char **ret = arena_array(arena, const char *, len + 2);

    for (size_t i = 0; i < len; i++)
        ret[i] = groups[i];
    ret[len] = more;
    return ret;
}

static const char *role_group(struct arena *arena, enum role role)
{
    return arena_printf(arena, ROLE_GROUP "%s", ROLE_NAMES[role]);
}

static bool find_by_certificate(const struct users *users, struct arena *arena,
                                const struct http_peer *peer, struct user *ret)
{
    const struct user *line = users_find_certificate(users, peer->name, peer->hash);
    enum role role = role_of_groups(peer->groups);

    if (peer->problem || !*peer->name || (!line && role == ROLE_NONE))
        return false;
    ret->groups = groups_with(arena, peer->groups, NULL);
    if (line && line->role > role) {
        role = line->role;
        ret->groups = groups_with(arena, peer->groups, role_group(arena, role));
    }
    ret->name = peer->name;
    ret->role = role;
    return true;
}

/* Of whom an admin wants to be: what the file says of the name, or the groups give. */
static struct user find_other(const struct users *users, struct arena *arena,
                              const struct credentials *credentials)
{
    const struct user *line = users_find_name(users, credentials->as);
    enum role role = role_of_groups(credentials->as_groups);

    return (struct user){ .name = arena_strdup(arena, credentials->as),
                          .role = line && line->role > role ? line->role : role,
                          .uid = credentials->as_uid,
                          .groups = credentials->as_groups };
}

bool identity_find(const struct users *users, struct arena *arena,
                   const struct credentials *credentials, struct identity *ret)
{
    struct user real = { 0 };

    if (!credentials->peer || !find_by_certificate(users, arena, credentials->peer, &real)) {
        const struct user *user =
            credentials->token_hash ? users_find_token(users, credentials->token_hash) : NULL;

        if (!user)
            return false;
        real = (struct user){ .name = arena_strdup(arena, user->name), .role = user->role };
    }
    ret->real = real;
    ret->user = credentials->as ? find_other(users, arena, credentials) : real;
    return true;
}

static bool is_equal(const struct user *a, const struct user *b)
{
    return a->role == b->role && str_equal(a->name, b->name);
}

bool identity_equal(const struct identity *a, const struct identity *b)
{
    return is_equal(&a->real, &b->real) && is_equal(&a->user, &b->user);
}

/* --- who may be somebody else ----------------------------------------------------------------- */

static bool forbid(const struct identity *identity, struct arena *arena, const char *resource,
                   const char *group, const char *name, const char *place, struct api_reply *ret)
{
    size_t plural = strcspn(resource, "/");
    const char *whole =
        arena_printf(arena, "%.*s%s%s", (int)plural, resource, *group ? "." : "", group);

    api_refuse(arena, 403, "Forbidden",
               arena_printf(arena,
                            "%s \"%s\" is forbidden: User \"%s\" cannot impersonate resource "
                            "\"%s\" in API group \"%s\" %s",
                            whole, name, identity->real.name, resource, group, place),
               ret);
    return false;
}

/* system:serviceaccount:<namespace>:<name> is asked for as what it is. */
static bool forbid_user(const struct identity *identity, struct arena *arena, const char *name,
                        struct api_reply *ret)
{
    const char *rest = name + strlen(SERVICE_ACCOUNT);
    const char *colon = str_has_prefix(name, SERVICE_ACCOUNT) ? strchr(rest, ':') : NULL;

    if (!colon)
        return forbid(identity, arena, "users", "", name, "at the cluster scope", ret);
    return forbid(identity, arena, "serviceaccounts", "", colon + 1,
                  arena_printf(arena, "in the namespace \"%.*s\"", (int)(colon - rest), rest), ret);
}

bool identity_may_be(const struct identity *identity, const struct credentials *credentials,
                     struct arena *arena, const char *path, struct api_reply *ret)
{
    static const char EVERYWHERE[] = "at the cluster scope";

    if (!credentials->as && credentials->has_as_more) {
        api_refuse(arena, 500, "InternalError",
                   arena_printf(arena,
                                "Internal Server Error: \"%s\": requested groups, a uid or extra "
                                "without impersonating a user",
                                path),
                   ret);
        return false;
    }
    if (!credentials->as)
        return true;
    if (identity->real.role != ROLE_ADMIN)
        return forbid_user(identity, arena, credentials->as, ret);
    if (credentials->as_extra) /* nothing here would look at it */
        return forbid(identity, arena, arena_printf(arena, "userextras/%s", credentials->as_extra),
                      AUTHENTICATION, "", EVERYWHERE, ret);
    return true;
}

/* --- copies ----------------------------------------------------------------------------------- */

static const char *const *copy_list(struct arena *arena, const char *const *list)
{
    size_t len = 0;

    if (!list)
        return NULL;
    while (list[len])
        len++;

    const char **ret = arena_array(arena, const char *, len + 1);

    for (size_t i = 0; i < len; i++)
        ret[i] = arena_strdup(arena, list[i]);
    return ret;
}

struct credentials credentials_copy(struct arena *arena, const struct credentials *credentials)
{
    struct credentials ret = *credentials;

    ret.token_hash = arena_strdup(arena, credentials->token_hash);
    ret.as = arena_strdup(arena, credentials->as);
    ret.as_uid = arena_strdup(arena, credentials->as_uid);
    ret.as_extra = arena_strdup(arena, credentials->as_extra);
    ret.as_groups = copy_list(arena, credentials->as_groups);
    if (credentials->peer) {
        struct http_peer *peer = arena_new(arena, struct http_peer);

        *peer = *credentials->peer;
        peer->name = arena_strdup(arena, peer->name);
        peer->problem = arena_strdup(arena, peer->problem);
        for (size_t i = 0; peer->groups[i]; i++)
            peer->groups[i] = arena_strdup(arena, peer->groups[i]);
        ret.peer = peer;
    }
    return ret;
}

static struct user copy_user(struct arena *arena, const struct user *user)
{
    return (struct user){ .name = arena_strdup(arena, user->name),
                          .role = user->role,
                          .uid = arena_strdup(arena, user->uid),
                          .groups = copy_list(arena, user->groups) };
}

struct identity identity_copy(struct arena *arena, const struct identity *identity)
{
    return (struct identity){ .real = copy_user(arena, &identity->real),
                              .user = copy_user(arena, &identity->user) };
}
