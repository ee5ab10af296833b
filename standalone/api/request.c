#include "standalone/api/request.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "common/base/str.h"

#define MAX_PARTS 10
#define MAX_MANAGER 128

/* RFC 3986; plus: '+' is a blank, as in a query. NULL: not decodable, or a NUL. */
static char *request_decode(struct arena *arena, const char *text, size_t len, bool plus)
{
    char *ret = arena_alloc(arena, len + 1, 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int high, low;

        if (text[i] != '%') {
            ret[n++] = plus && text[i] == '+' ? ' ' : text[i];
            continue;
        }
        if (i + 2 >= len || (high = str_hex_digit(text[i + 1])) < 0 ||
            (low = str_hex_digit(text[i + 2])) < 0 || high + low == 0)
            return NULL;
        ret[n++] = (char)(high * 16 + low);
        i += 2;
    }
    return ret;
}

/* --- the path --------------------------------------------------------------------------------- */

/* "/a/b/" has the parts a and b; an encoded slash separates parts, too. -1: too many, or one that is empty or not
 * decodable. */
static int route_split(struct arena *arena, const char *path, const char *parts[static MAX_PARTS])
{
    int count = 0;

    path = request_decode(arena, path, strlen(path), false);
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

/* parts: from the version on. */
static void route_read_objects(struct route *route, const char *const *parts, int count)
{
    route->version = *parts++;
    count--;
    if (count >= 3 && str_equal(parts[0], "namespaces") &&
        (*route->group || !str_equal(parts[2], "status"))) {
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

struct route route_parse(struct arena *arena, const char *path)
{
    struct route route = { .group = "",
                           .version = "",
                           .ns = "",
                           .plural = "",
                           .name = "",
                           .subresource = "",
                           .document = "" };
    const char *parts[MAX_PARTS] = { NULL };
    int count = route_split(arena, path, parts);

    if (count < 1)
        return route;
    route.type = ROUTE_DOCUMENT;
    for (int i = 0; i < count; i++) /* as documents.py names it, however the path was written */
        route.document = arena_printf(arena, "%s/%s", route.document, parts[i]);
    if (str_equal(parts[0], "api") && count > 2) {
        route_read_objects(&route, parts + 1, count - 1);
    } else if (str_equal(parts[0], "apis") && count > 3) {
        route.group = parts[1];
        route_read_objects(&route, parts + 2, count - 2);
    } else if (str_equal(parts[0], "version") && count == 1) {
        route.type = ROUTE_VERSION;
    } else if (str_equal(parts[0], "healthz") || str_equal(parts[0], "livez") ||
               str_equal(parts[0], "readyz")) {
        route.type = ROUTE_HEALTH;
    }
    return route;
}

/* --- the query -------------------------------------------------------------------------------- */

enum query_type { QUERY_TEXT, QUERY_BOOL, QUERY_NUMBER };

static const struct {
    const char *name;
    enum query_type type;
    size_t offset;
} PARAMETERS[] = {
    { "watch", QUERY_BOOL, offsetof(struct query, watch) },
    { "allowWatchBookmarks", QUERY_BOOL, offsetof(struct query, allow_bookmarks) },
    { "sendInitialEvents", QUERY_BOOL, offsetof(struct query, send_initial_events) },
    { "labelSelector", QUERY_TEXT, offsetof(struct query, label_selector) },
    { "fieldSelector", QUERY_TEXT, offsetof(struct query, field_selector) },
    { "resourceVersion", QUERY_TEXT, offsetof(struct query, resource_version) },
    { "resourceVersionMatch", QUERY_TEXT, offsetof(struct query, resource_version_match) },
    { "limit", QUERY_NUMBER, offsetof(struct query, limit) },
    { "continue", QUERY_TEXT, offsetof(struct query, continue_token) },
    { "timeoutSeconds", QUERY_NUMBER, offsetof(struct query, timeout_s) },
    { "dryRun", QUERY_TEXT, offsetof(struct query, dry_run) },
    { "fieldManager", QUERY_TEXT, offsetof(struct query, field_manager) },
    { "fieldValidation", QUERY_TEXT, offsetof(struct query, field_validation) },
    { "force", QUERY_BOOL, offsetof(struct query, force) },
    { "propellerKeepStatus", QUERY_BOOL, offsetof(struct query, keep_status) },
    { "propagationPolicy", QUERY_TEXT, offsetof(struct query, propagation_policy) },
    { "includeObject", QUERY_TEXT, offsetof(struct query, include_object) },
    { "uid", QUERY_TEXT, offsetof(struct query, uid) },
};

static int query_read_value(struct query *query, size_t index, const char *value, struct error *err)
{
    void *field = (char *)query + PARAMETERS[index].offset;

    switch (PARAMETERS[index].type) {
    case QUERY_TEXT:
        *(const char **)field = value;
        return 0;
    case QUERY_BOOL: /* "watch" and "watch=" are true */
        *(bool *)field = !str_equal(value, "false") && !str_equal(value, "0");
        return 0;
    case QUERY_NUMBER:
        break;
    }
    return str_to_int64(value, field) ? 0
                                      : error_set(err, ERROR_INVALID, "%s '%.40s' is no number",
                                                  PARAMETERS[index].name, value);
}

/* read: a bit for each parameter that has come. */
static int query_read_parameter(struct arena *arena, struct query *query, const char *text,
                                size_t len, uint32_t *read, struct error *err)
{
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals ? (size_t)(equals - text) : len;
    const char *name = request_decode(arena, text, name_len, true);
    const char *value = equals ? request_decode(arena, equals + 1, len - name_len - 1, true) : "";

    if (!name || !value)
        return error_set(err, ERROR_INVALID, "the query cannot be decoded");
    for (size_t i = 0; i < ARRAY_LEN(PARAMETERS); i++) {
        if (!str_equal(PARAMETERS[i].name, name))
            continue;
        if (*read & 1u << i)
            return 0;
        *read |= 1u << i;
        query->send_initial_events_set |= str_equal(name, "sendInitialEvents");
        query->force_set |= str_equal(name, "force");
        return query_read_value(query, i, value, err);
    }
    return 0;
}

int query_parse(struct arena *arena, const char *text, struct query *ret, struct error *err)
{
    uint32_t read = 0;

    *ret = (struct query){ 0 };
    for (size_t i = 0; i < ARRAY_LEN(PARAMETERS); i++) {
        if (PARAMETERS[i].type == QUERY_TEXT)
            *(const char **)((char *)ret + PARAMETERS[i].offset) = "";
    }
    ret->dry_run = NULL;
    while (*text) {
        size_t len = strcspn(text, "&");
        int r = len ? query_read_parameter(arena, ret, text, len, &read, err) : 0;

        if (r < 0)
            return r;
        text += len + (text[len] == '&');
    }
    return 0;
}

void query_check_dry_run(const char *value, struct field_errors *errors)
{
    if (value && !str_equal(value, "All"))
        field_error(errors, FIELD_ERROR_NOT_SUPPORTED, "dryRun", NULL, "must be \"All\"");
}

void query_check_write(const struct query *query, enum write_type type, struct field_errors *errors)
{
    static const char *const VALIDATIONS[] = { "", "Ignore", "Warn", "Strict", NULL };
    const char *manager = query->field_manager;
    bool printable = true;

    for (size_t i = 0; manager[i]; i++)
        printable = printable && (unsigned char)manager[i] >= ' ' && manager[i] != 0x7f;
    if (type != WRITE_APPLY && query->force_set)
        field_error(errors, FIELD_ERROR_FORBIDDEN, "force", NULL, "is for server-side apply");
    if (type == WRITE_APPLY && !*manager)
        field_error(errors, FIELD_ERROR_REQUIRED, "fieldManager", NULL,
                    "is required for server-side apply");
    if (strlen(manager) > MAX_MANAGER)
        field_error(errors, FIELD_ERROR_TOO_LONG, "fieldManager", NULL,
                    "may not be more than %d bytes", MAX_MANAGER);
    if (!printable)
        field_error(errors, FIELD_ERROR_INVALID, "fieldManager", NULL,
                    "must not have control characters");
    if (!str_is_one_of(query->field_validation, VALIDATIONS))
        field_error(errors, FIELD_ERROR_NOT_SUPPORTED, "fieldValidation", NULL,
                    "must be Ignore, Warn or Strict");
    query_check_dry_run(query->dry_run, errors);
}

/* --- media types ------------------------------------------------------------------------------ */

bool media_type_is(const char *header, const char *type)
{
    size_t len = strlen(type);

    header += strspn(header, " \t");
    if (strncasecmp(header, type, len) != 0)
        return false;
    header += len;
    header += strspn(header, " \t");
    return !*header || *header == ';';
}

/* The value of ";name=" in one element of Accept; NULL: none. */
static const char *format_parameter(struct arena *arena, const char *element, const char *name)
{
    size_t name_len = strlen(name);

    while ((element = strchr(element, ';'))) {
        element += 1 + strspn(element + 1, " ");
        if (strncmp(element, name, name_len) == 0 && element[name_len] == '=')
            return arena_strndup(arena, element + name_len + 1,
                                 strcspn(element + name_len + 1, "; "));
    }
    return NULL;
}

static bool format_read(struct arena *arena, const char *element, struct format *ret)
{
    const char *as = format_parameter(arena, element, "as");
    bool v1;

    if (str_has_prefix(element, "application/com.github.proto-openapi.spec.v2")) {
        *ret = (struct format){ .type = FORMAT_PROTOBUF };
        return true;
    }
    if (!media_type_is(element, "application/json") && !media_type_is(element, "*/*") &&
        !media_type_is(element, "application/*"))
        return false;
    ret->version = format_parameter(arena, element, "v");
    v1 = !ret->version || str_equal(ret->version, "v1");
    if (!as)
        ret->type = FORMAT_OBJECT;
    else if (v1 && str_equal(as, "Table"))
        ret->type = FORMAT_TABLE;
    else if (v1 && str_has_prefix(as, "PartialObjectMetadata"))
        ret->type = FORMAT_METADATA;
    else if (str_equal(as, "APIGroupDiscoveryList"))
        ret->type = FORMAT_AGGREGATED;
    else
        return false;
    return true;
}

struct format format_of(struct arena *arena, const char *accept)
{
    struct format format;

    while (accept && *accept) {
        accept += strspn(accept, " ");

        size_t len = strcspn(accept, ",");

        if (format_read(arena, arena_strndup(arena, accept, len), &format))
            return format;
        accept += len + (accept[len] == ',');
    }
    return (struct format){ 0 };
}
