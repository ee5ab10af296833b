/* A request to the page, as lines: path and query, Host, Cookie, Content-Type; the rest is the body. */
#include <string.h>
#include <strings.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "controller/page/files.h"
#include "controller/page/guard.h"
#include "controller/page/request.h"
#include "controller/page/rows.h"
#include "controller/page/viewers.h"

static const char *const HOSTS[] = { "localhost", "127.0.0.1", "[::1]", "fleet.example" };

static char *line(struct arena *arena, const char **text)
{
    size_t len = strcspn(*text, "\n");
    char *found = arena_strndup(arena, *text, len);

    *text += len + ((*text)[len] == '\n');
    return found;
}

/* A name that the page has, then the end or a port. */
static bool has_name(const char *host)
{
    for (size_t i = 0; i < ARRAY_LEN(HOSTS); i++) {
        size_t len = strlen(HOSTS[i]);

        if (strncasecmp(host, HOSTS[i], len) == 0 && (!host[len] || host[len] == ':'))
            return true;
    }
    return false;
}

static void read_query(struct arena *arena, const char *query)
{
    const char *list = page_parameter(arena, query, "list"), *ns = NULL;
    struct kube_name key;
    struct error err = { 0 };
    size_t at = PAGE_LISTS;

    REQUIRE(!list || (*list && !strchr(list, '&')));
    REQUIRE(!list || strstr(query, arena_printf(arena, "list=%s", list)));
    if (page_read_ns(arena, query, &ns, &err) < 0)
        REQUIRE(err.message[0] && !ns);
    REQUIRE(!ns || str_is_dns_label(ns));
    if (page_read_object(arena, query, &at, &key, &err) < 0)
        REQUIRE(err.message[0] && at == PAGE_LISTS);
    else
        REQUIRE(at == page_list_find(list) && str_equal(ns, key.ns) &&
                str_is_dns_subdomain(key.name));
}

static void read_headers(struct arena *arena, const char *host, const char *header)
{
    const char *name = page_cookie_name(arena, host);
    const char *cookie = page_cookie(arena, header, name);

    REQUIRE(page_host_is_known(host, &HOSTS[3], 1) == has_name(host));
    REQUIRE(strlen(name) <= strlen("propeller-65535=") && !strpbrk(name, "; \r\n"));
    REQUIRE(!cookie || !strpbrk(cookie, "; "));
    REQUIRE(!cookie || strstr(header, arena_printf(arena, "%s%s", name, cookie)));
}

static void read_login(struct arena *arena, const char *type, const char *body, size_t len)
{
    const char *token = NULL;
    struct error err = { 0 };

    if (page_read_token(arena, type, body, len, &token, &err) < 0) {
        REQUIRE(err.message[0] && !token);
        return;
    }
    REQUIRE(*token && strlen(token) <= VIEWER_MAX_TOKEN);
    for (const char *c = token; *c; c++)
        REQUIRE(*c > ' ' && *c <= '~'); /* it becomes a header */
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = arena_strndup(arena, (const char *)bytes, len), *at = text;
    char *path = line(arena, &at);
    const char *host = line(arena, &at), *cookie = line(arena, &at), *type = line(arena, &at);
    char *question = strchr(path, '?');
    struct page_file file;

    json_init();
    read_query(arena, question ? question + 1 : "");
    if (question)
        *question = '\0';
    REQUIRE(!page_file_find(path, &file) || (path[0] == '/' && file.len > 0));
    read_headers(arena, host, cookie);
    read_login(arena, type, at, strlen(at));
}
