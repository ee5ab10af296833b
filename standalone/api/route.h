/* What a path of the API means. */
#pragma once

#include <stdbool.h>

#include "common/base/arena.h"

enum route_type {
    ROUTE_UNKNOWN,
    ROUTE_OBJECTS,   /* a collection, an object, or a subresource of it */
    ROUTE_CORE,      /* /api */
    ROUTE_GROUPS,    /* /apis */
    ROUTE_GROUP,     /* /apis/<group> */
    ROUTE_RESOURCES, /* /api/v1, /apis/<group>/<version> */
    ROUTE_OPENAPI_V2,
    ROUTE_OPENAPI_V3,       /* /openapi/v3 */
    ROUTE_OPENAPI_V3_GROUP, /* below it: group and version are set */
    ROUTE_VERSION,
    ROUTE_HEALTH, /* /healthz, /livez, /readyz, and what is below them */
};

/* Strings are in the arena, percent-decoded, "" where the path has none. */
struct route {
    enum route_type type;
    const char *group, *version;
    const char *ns;
    const char *plural;
    const char *name;
    const char *subresource;
    bool deeper; /* there is more behind the subresource */
};

/* Pure. "/api/v1/namespaces/x" is the namespace itself, "/api/v1/namespaces/x/secrets" what is in
 * it. */
struct route route_parse(struct arena *arena, const char *path);

/* Percent-decoding (RFC 3986); plus: '+' is a blank, as in a query. NULL: not decodable, or a NUL.
 */
char *percent_decode(struct arena *arena, const char *text, size_t len, bool plus);
