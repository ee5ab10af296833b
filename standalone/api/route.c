#include "standalone/api/route.h"

#include <string.h>

#include "common/base/str.h"

#define MAX_PARTS 10

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *percent_decode(struct arena *arena, const char *text, size_t len, bool plus)
{
    char *ret = arena_alloc(arena, len + 1, 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%') {
            ret[n++] = plus && text[i] == '+' ? ' ' : text[i];
            continue;
        }

        int high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
        int low = i + 2 < len ? hex_digit(text[i + 2]) : -1;

        if (high < 0 || low < 0 || high + low == 0)
            return NULL;
        ret[n++] = (char)(high * 16 + low);
        i += 2;
    }
    return ret;
}

/* "/a/b/" has the parts a and b; a slash that is encoded ends one, too, as there. -1: too many, or one that is empty or
 * not decodable. */
static int split(struct arena *arena, const char *path, const char *parts[static MAX_PARTS])
{
    int count = 0;

    path = percent_decode(arena, path, strlen(path), false);
    if (!path)
        return -1;
    while (*path == '/') {
        path++;

        size_t len = strcspn(path, "/");

        if (!len && !*path)
            break;
        if (!len || count == MAX_PARTS)
            return -1;
        parts[count++] = arena_strndup(arena, path, len);
        path += len;
    }
    return count;
}

/* parts: behind the version. */
static void read_objects(struct route *route, const char *const *parts, int count)
{
    if (count >= 3 && str_equal(parts[0], "namespaces") &&
        !(str_equal(route->group, "") &&
          (str_equal(parts[2], "status") || str_equal(parts[2], "finalize")))) {
        route->ns = parts[1];
        parts += 2;
        count -= 2;
    }
    route->deeper = count > 3;
    route->type = ROUTE_OBJECTS;
    route->plural = parts[0];
    if (count > 1)
        route->name = parts[1];
    if (count > 2)
        route->subresource = parts[2];
}

static void read_versioned(struct route *route, const char *const *parts, int count)
{
    route->version = parts[0];
    if (count == 1)
        route->type = ROUTE_RESOURCES;
    else
        read_objects(route, parts + 1, count - 1);
}

static void read_apis(struct route *route, const char *const *parts, int count)
{
    if (count == 0) {
        route->type = ROUTE_GROUPS;
        return;
    }
    route->group = parts[0];
    if (count == 1)
        route->type = ROUTE_GROUP;
    else
        read_versioned(route, parts + 1, count - 1);
}

static void read_openapi(struct route *route, const char *const *parts, int count)
{
    if (count == 1 && str_equal(parts[0], "v2")) {
        route->type = ROUTE_OPENAPI_V2;
    } else if (count == 1 && str_equal(parts[0], "v3")) {
        route->type = ROUTE_OPENAPI_V3;
    } else if (count == 3 && str_equal(parts[0], "v3") && str_equal(parts[1], "api")) {
        route->type = ROUTE_OPENAPI_V3_GROUP;
        route->version = parts[2];
    } else if (count == 4 && str_equal(parts[0], "v3") && str_equal(parts[1], "apis")) {
        route->type = ROUTE_OPENAPI_V3_GROUP;
        route->group = parts[2];
        route->version = parts[3];
    }
}

struct route route_parse(struct arena *arena, const char *path)
{
    struct route route = {
        .group = "", .version = "", .ns = "", .plural = "", .name = "", .subresource = ""
    };
    const char *parts[MAX_PARTS];
    int count = split(arena, path, parts);

    if (count < 1)
        return route;
    if (str_equal(parts[0], "api")) {
        route.type = ROUTE_CORE;
        if (count > 1) {
            route.type = ROUTE_UNKNOWN;
            read_versioned(&route, parts + 1, count - 1);
        }
    } else if (str_equal(parts[0], "apis")) {
        read_apis(&route, parts + 1, count - 1);
    } else if (str_equal(parts[0], "openapi")) {
        read_openapi(&route, parts + 1, count - 1);
    } else if (str_equal(parts[0], "version") && count == 1) {
        route.type = ROUTE_VERSION;
    } else if (str_equal(parts[0], "healthz") || str_equal(parts[0], "livez") ||
               str_equal(parts[0], "readyz")) {
        route.type = ROUTE_HEALTH;
    }
    return route;
}
