#include "controller/page/request.h"

#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "controller/page/rows.h"
#include "controller/page/viewers.h"

#define COOKIE "propeller-"
#define PORT_DIGITS 5

const char *page_parameter(struct arena *arena, const char *query, const char *name)
{
    const char *at = query ? query : "";
    size_t name_len = strlen(name);

    while (*at) {
        size_t len = strcspn(at, "&");

        if (len > name_len + 1 && strncmp(at, name, name_len) == 0 && at[name_len] == '=')
            return arena_strndup(arena, at + name_len + 1, len - name_len - 1);
        at += len + (at[len] == '&');
    }
    return NULL;
}

int page_read_ns(struct arena *arena, const char *query, const char **ret, struct error *err)
{
    const char *ns = page_parameter(arena, query, "ns");

    if (ns && !str_is_dns_label(ns))
        return error_set(err, ERROR_INVALID, "ns: not the name of a namespace");
    *ret = ns;
    return 0;
}

int page_read_object(struct arena *arena, const char *query, size_t *ret_list,
                     struct kube_name *ret, struct error *err)
{
    size_t list = page_list_find(page_parameter(arena, query, "list"));
    const char *ns = page_parameter(arena, query, "ns");
    const char *name = page_parameter(arena, query, "name");

    if (list == PAGE_LISTS || !ns || !str_is_dns_label(ns) || !name ||
        !str_is_dns_subdomain(name) || !kube_name_set(ret, ns, name))
        return error_set(err, ERROR_INVALID, "list, ns and name: not an object");
    *ret_list = list;
    return 0;
}

const char *page_cookie_name(struct arena *arena, const char *host)
{
    const char *colon = host ? strrchr(host, ':') : NULL;
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

    return arena_printf(arena, COOKIE "%.*s=", (int)(digits < PORT_DIGITS ? digits : PORT_DIGITS),
                        colon ? colon + 1 : "");
}

const char *page_cookie(struct arena *arena, const char *header, const char *name)
{
    const char *at = header;

    while (at && *at) {
        at += strspn(at, "; ");
        if (str_has_prefix(at, name))
            return arena_strndup(arena, at + strlen(name), strcspn(at + strlen(name), "; "));
        at += strcspn(at, ";");
    }
    return NULL;
}

/* Visible ASCII characters only. */
static bool is_token(const char *token)
{
    size_t len = 0;

    while (token[len] > ' ' && token[len] < '\x7f')
        len++;
    return len > 0 && len <= VIEWER_MAX_TOKEN && !token[len];
}

int page_read_token(struct arena *arena, const char *content_type, const char *body,
                    size_t body_len, const char **ret, struct error *err)
{
    const cJSON *login = NULL;

    if (!content_type || !str_has_prefix(content_type, "application/json") ||
        json_parse(arena, body, body_len, &login, NULL) < 0)
        return error_set(err, ERROR_INVALID, "a login is JSON: {\"token\": text}");

    const char *token = json_string(json_get(login, "token"), "");
    if (!is_token(token))
        return error_set(err, ERROR_INVALID, "token: not a bearer token");
    *ret = token;
    return 0;
}
