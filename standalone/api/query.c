#include "standalone/api/query.h"

#include <stddef.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/api/route.h"

enum parameter_type { TEXT, BOOLEAN, NUMBER, DRY_RUN, ORPHAN };

static const struct {
    const char *name;
    enum parameter_type type;
    size_t offset;
} PARAMETERS[] = {
    { "watch", BOOLEAN, offsetof(struct query, watch) },
    { "allowWatchBookmarks", BOOLEAN, offsetof(struct query, allow_bookmarks) },
    { "sendInitialEvents", BOOLEAN, offsetof(struct query, send_initial_events) },
    { "labelSelector", TEXT, offsetof(struct query, label_selector) },
    { "fieldSelector", TEXT, offsetof(struct query, field_selector) },
    { "resourceVersion", TEXT, offsetof(struct query, resource_version) },
    { "resourceVersionMatch", TEXT, offsetof(struct query, resource_version_match) },
    { "limit", NUMBER, offsetof(struct query, limit) },
    { "continue", TEXT, offsetof(struct query, continue_token) },
    { "timeoutSeconds", NUMBER, offsetof(struct query, timeout_s) },
    { "dryRun", DRY_RUN, offsetof(struct query, dry_run) },
    { "fieldManager", TEXT, offsetof(struct query, field_manager) },
    { "fieldValidation", TEXT, offsetof(struct query, field_validation) },
    { "force", BOOLEAN, offsetof(struct query, force) },
    { "propagationPolicy", TEXT, offsetof(struct query, propagation_policy) },
    { "orphanDependents", ORPHAN, offsetof(struct query, orphan_dependents) },
    { "gracePeriodSeconds", TEXT, offsetof(struct query, grace_period) },
    { "includeObject", TEXT, offsetof(struct query, include_object) },
    { "timeout", TEXT, offsetof(struct query, timeout) },
    { "uid", TEXT, offsetof(struct query, uid) },
};

/* "watch" and "watch=" are true, as the API server's conversion has it. */
static bool read_bool(const char *value)
{
    return !str_equal(value, "false") && !str_equal(value, "0");
}

/* Digits too many are told before what is behind them. */
const char *query_number_fault(const char *text)
{
    uint64_t value = 0;

    if (!*text)
        return "invalid syntax";
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return "invalid syntax";
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            break;
    }
    return "value out of range";
}

const char *query_number(const char *text, int64_t *ret)
{
    const char *digits = text + (*text == '+' || *text == '-');

    if (str_to_int64(*text == '-' ? text : digits, ret) && *digits != '-')
        return NULL;
    return query_number_fault(digits);
}

static int read_value(struct query *query, size_t index, const char *value, struct error *err)
{
    void *field = (char *)query + PARAMETERS[index].offset;
    const char *fault;

    switch (PARAMETERS[index].type) {
    case TEXT:
        *(const char **)field = value;
        return 0;
    case BOOLEAN:
        *(bool *)field = read_bool(value);
        return 0;
    case ORPHAN:
        *(int *)field = read_bool(value);
        return 0;
    case DRY_RUN:
        query->dry_run_value = value;
        *(bool *)field = str_equal(value, "All");
        return 0;
    case NUMBER:
        break;
    }
    fault = query_number(value, field);
    return fault
               ? error_set(err, ERROR_INVALID, "strconv.ParseInt: parsing \"%s\": %s", value, fault)
               : 0;
}

/* read: a bit a parameter; of one that comes again the first counts. */
static int read_parameter(struct arena *arena, struct query *query, const char *text, size_t len,
                          uint32_t *read, struct error *err)
{
    size_t name_len = strcspn(text, "=&");

    if (name_len > len)
        name_len = len;

    const char *name = percent_decode(arena, text, name_len, true);
    const char *value =
        name_len < len ? percent_decode(arena, text + name_len + 1, len - name_len - 1, true) : "";

    if (!name || !value)
        return error_set(err, ERROR_INVALID, "the query cannot be decoded");
    for (size_t i = 0; i < ARRAY_LEN(PARAMETERS); i++) {
        if (!str_equal(PARAMETERS[i].name, name))
            continue;
        if (*read & 1u << i)
            return 0;
        *read |= 1u << i;
        if (str_equal(name, "sendInitialEvents"))
            query->send_initial_events_set = true;
        if (str_equal(name, "force"))
            query->force_set = true;
        return read_value(query, i, value, err);
    }
    return 0;
}

int query_check_timeout(const struct query *query, struct error *err)
{
    const char *timeout = query->timeout;
    int64_t ms;

    if (!*timeout || str_to_duration_ms(timeout + (*timeout == '-'), &ms))
        return 0;
    return error_set(err, ERROR_INVALID,
                     "invalid timeout specified in the request URL - time: %s \"%s\"",
                     strspn(timeout, "0123456789.") == strlen(timeout) ? "missing unit in duration"
                                                                       : "invalid duration",
                     timeout);
}

int query_parse(struct arena *arena, const char *text, struct query *ret, struct error *err)
{
    *ret = (struct query){ .label_selector = "",
                           .field_selector = "",
                           .resource_version = "",
                           .resource_version_match = "",
                           .continue_token = "",
                           .field_manager = "",
                           .field_validation = "",
                           .propagation_policy = "",
                           .include_object = "",
                           .timeout = "",
                           .uid = "",
                           .orphan_dependents = -1 };
    uint32_t read = 0;

    while (*text) {
        size_t len = strcspn(text, "&");
        int r = len ? read_parameter(arena, ret, text, len, &read, err) : 0;

        if (r < 0)
            return r;
        text += len + (text[len] == '&');
    }
    return 0;
}
