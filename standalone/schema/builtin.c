#include "standalone/schema/builtin.h"

#include <ctype.h>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/schema/members.h"
#include "standalone/schema/name_rules.h"
#include "standalone/schema/table.h"

/* Of a Secret or ConfigMap: all values together. */
#define MAX_DATA (1u << 20)
#define MAX_EVENT_TEXT 128
#define MAX_NOTE 1024
#define ACCOUNT_ANNOTATION "kubernetes.io/service-account.name"
#define NAMESPACE_LABEL "kubernetes.io/metadata.name"

/* Members that kube-apiserver always writes, also where a client leaves them out. */
#define NAMESPACE_ALWAYS "{\"spec\":{},\"status\":{}}"
#define LEASE_ALWAYS "{\"spec\":{}}"
#define EVENT_ALWAYS                                                                               \
    "{\"involvedObject\":{},\"source\":{},\"firstTimestamp\":null,\"lastTimestamp\":null,"         \
    "\"eventTime\":null,\"reportingComponent\":\"\",\"reportingInstance\":\"\"}"
#define EVENT_V1_ALWAYS                                                                            \
    "{\"eventTime\":null,\"regarding\":{},\"deprecatedSource\":{},"                                \
    "\"deprecatedFirstTimestamp\":null,\"deprecatedLastTimestamp\":null}"

static const char *text_at(const cJSON *object, const char *name)
{
    return json_string(json_get(object, name), "");
}

/* The member as a tree that may be changed; it is made if it is not there. */
static cJSON *member_of(cJSON *object, const char *name)
{
    cJSON *member = cJSON_DetachItemFromObjectCaseSensitive(object, name);

    if (!cJSON_IsObject(member)) {
        json_free(member);
        member = cJSON_CreateObject();
    }
    json_set(object, name, member);
    return member;
}

static void ensure_members(struct arena *arena, cJSON *object, const char *always)
{
    const cJSON *members = NULL;

    if (json_parse(arena, always, strlen(always), &members, NULL) < 0)
        return;
    json_for_each (member, members) {
        if (!json_get(object, member->string))
            json_set_copy(object, member->string, member);
    }
}

static void drop_empty_texts(const cJSON *object)
{
    for (cJSON *member = cJSON_IsObject(object) ? object->child : NULL, *next; member;
         member = next) {
        next = member->next;
        if (str_equal(json_string(member, NULL), ""))
            json_free(cJSON_DetachItemViaPointer((cJSON *)(uintptr_t)object, member));
    }
}

static void require(const struct validation *validation, const char *path)
{
    field_error_plain(validation->errors, FIELD_ERROR_REQUIRED, path, NULL);
}

static void require_unchanged(const struct validation *validation, const char *path,
                              const cJSON *value, const cJSON *old)
{
    if (!json_equal(value, old))
        field_error(validation->errors, FIELD_ERROR_INVALID, path, value, "field is immutable");
}

/* --- namespaces ------------------------------------------------------------------------------- */

static void namespace_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    cJSON *metadata = member_of(object, "metadata");

    (void)old;
    ensure_members(arena, object, NAMESPACE_ALWAYS);
    if (*text_at(metadata, "name"))
        json_set_string(member_of(metadata, "labels"), NAMESPACE_LABEL, text_at(metadata, "name"));
}

/* The finalizer keeps the namespace until it is empty; a client changes neither spec nor status. */
static void namespace_prepare(struct arena *arena, cJSON *object, const cJSON *old)
{
    (void)arena;
    if (old) {
        json_set_copy(object, "status", json_get(old, "status"));
        json_set_copy(object, "spec", json_get(old, "spec"));
        return;
    }

    cJSON *spec = member_of(object, "spec"), *status = cJSON_CreateObject();
    cJSON *finalizers = cJSON_DetachItemFromObjectCaseSensitive(spec, "finalizers");
    bool has = false;

    json_set_string(status, "phase", "Active");
    json_set(object, "status", status);
    if (!cJSON_IsArray(finalizers)) {
        json_free(finalizers);
        finalizers = cJSON_CreateArray();
    }
    json_for_each (finalizer, finalizers)
        has = has || str_equal(json_string(finalizer, ""), "kubernetes");
    if (!has)
        json_add_string(finalizers, "kubernetes");
    json_set(spec, "finalizers", finalizers);
}

static void namespace_validate(const struct validation *validation)
{
    json_for_each (finalizer, json_path(validation->object, "spec", "finalizers", NULL))
        check_qualified_name(validation->errors, "spec.finalizers", json_string(finalizer, ""),
                             json_string(finalizer, ""));
}

/* --- configmaps and secrets ------------------------------------------------------------------- */

static size_t decoded_len(const char *text)
{
    size_t len = strlen(text);

    while (len && text[len - 1] == '=')
        len--;
    return len * 3 / 4;
}

static size_t check_keys(const struct validation *validation, const char *bag, const char *other,
                         bool encoded)
{
    const struct members theirs =
        members_of(validation->arena, json_get(validation->object, other));
    size_t size = 0;

    json_for_each (item, json_get(validation->object, bag)) {
        const char *path = arena_printf(validation->arena, "%s[%s]", bag, item->string);
        const char *value = json_string(item, "");

        check_config_key(validation->errors, path, item->string);
        if (members_get(&theirs, item->string))
            invalid_text(validation->errors, path, item->string,
                         arena_printf(validation->arena, "duplicate of key present in %s", other));
        size += encoded ? decoded_len(value) : strlen(value);
    }
    return size;
}

/* immutable cannot be taken back, and then nothing of these changes. */
static void check_immutable(const struct validation *validation, const char *const *bags)
{
    if (!json_bool(json_get(validation->old, "immutable"), false))
        return;
    for (; *bags; bags++) {
        if (!json_equal(json_get(validation->object, *bags), json_get(validation->old, *bags)))
            field_error(validation->errors, FIELD_ERROR_FORBIDDEN, *bags, NULL,
                        "the object is immutable");
    }
}

static void configmap_validate(const struct validation *validation)
{
    static const char *const BAGS[] = { "data", "binaryData", "immutable", NULL };
    size_t size = check_keys(validation, "data", "binaryData", false) +
                  check_keys(validation, "binaryData", "data", true);

    if (size > MAX_DATA)
        field_error(validation->errors, FIELD_ERROR_TOO_LONG, "", NULL,
                    "may not be more than %u bytes", MAX_DATA);
    if (validation->old)
        check_immutable(validation, BAGS);
}

/* members: of data, before. */
static void set_data(struct arena *arena, cJSON *data, const struct members *members,
                     const cJSON *item)
{
    const char *text = json_string(item, "");
    cJSON *old = members_get(members, item->string);
    cJSON *value = cJSON_CreateString(base64_encode(arena, text, strlen(text)));

    if (old)
        members_replace(data, old, value);
    else
        members_append(data, item->string, value);
}

static void secret_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    (void)old;
    if (json_len(json_get(object, "stringData"))) {
        cJSON *data = member_of(object, "data");
        const struct members members = members_of(arena, data);

        json_for_each (item, json_get(object, "stringData"))
            set_data(arena, data, &members, item);
    }
    json_remove(object, "stringData");
    if (!*text_at(object, "type"))
        json_set_string(object, "type", "Opaque");
}

/* The value is JSON with passwords: it is not shown. */
static void secret_check_docker(const struct validation *validation, const char *key)
{
    const char *text = json_string(json_path(validation->object, "data", key, NULL), NULL);
    const char *path = arena_printf(validation->arena, "data[%s]", key);
    const cJSON *config = NULL;
    struct error err;
    size_t len;

    if (!text) {
        require(validation, path);
        return;
    }

    const char *bytes = base64_decode(validation->arena, text, strlen(text), &len);

    if (bytes && len > MAX_DATA)
        return; /* refused for its size, and not worth a tree */
    if (!bytes || json_parse(validation->arena, bytes, len, &config, &err) < 0 ||
        !(cJSON_IsObject(config) || cJSON_IsNull(config)))
        field_error(validation->errors, FIELD_ERROR_INVALID, path, NULL, "must be a JSON object");
}

static void secret_check_type(const struct validation *validation, const char *type)
{
    const cJSON *data = json_get(validation->object, "data");
    const cJSON *annotations = json_path(validation->object, "metadata", "annotations", NULL);

    if (str_equal(type, "service-account-token") && !*text_at(annotations, ACCOUNT_ANNOTATION))
        require(validation, "metadata.annotations[" ACCOUNT_ANNOTATION "]");
    if (str_equal(type, "dockercfg"))
        secret_check_docker(validation, ".dockercfg");
    if (str_equal(type, "dockerconfigjson"))
        secret_check_docker(validation, ".dockerconfigjson");
    if (str_equal(type, "basic-auth") && !json_get(data, "username") &&
        !json_get(data, "password")) {
        require(validation, "data[username]");
        require(validation, "data[password]");
    }
    if (str_equal(type, "ssh-auth") && !*text_at(data, "ssh-privatekey"))
        require(validation, "data[ssh-privatekey]");
    if (str_equal(type, "tls") && !json_get(data, "tls.crt"))
        require(validation, "data[tls.crt]");
    if (str_equal(type, "tls") && !json_get(data, "tls.key"))
        require(validation, "data[tls.key]");
}

static void secret_validate(const struct validation *validation)
{
    static const char *const BAGS[] = { "data", "immutable", NULL };
    static const char PREFIX[] = "kubernetes.io/";
    const char *type = text_at(validation->object, "type");

    if (validation->old) {
        require_unchanged(validation, "type", json_get(validation->object, "type"),
                          json_get(validation->old, "type"));
        check_immutable(validation, BAGS);
    }
    if (check_keys(validation, "data", "", true) > MAX_DATA)
        field_error(validation->errors, FIELD_ERROR_TOO_LONG, "data", NULL,
                    "may not be more than %u bytes", MAX_DATA);
    if (str_has_prefix(type, PREFIX))
        secret_check_type(validation, type + strlen(PREFIX));
}

/* --- service accounts and leases -------------------------------------------------------------- */

static void service_account_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    (void)arena;
    (void)old;
    json_for_each (item, json_get(object, "secrets"))
        drop_empty_texts(item);
    json_for_each (item, json_get(object, "imagePullSecrets"))
        drop_empty_texts(item);
}

/* A reference to a Secret keeps its name only. */
static void service_account_prepare(struct arena *arena, cJSON *object, const cJSON *old)
{
    cJSON *named = cJSON_CreateArray();

    (void)arena;
    (void)old;
    json_for_each (secret, json_get(object, "secrets")) {
        cJSON *reference = json_add_object(named);

        if (*text_at(secret, "name"))
            json_set_string(reference, "name", text_at(secret, "name"));
    }
    if (json_first(named))
        json_set(object, "secrets", named);
    else
        json_free(named);
}

static void service_account_validate(const struct validation *validation)
{
    (void)validation; /* its metadata is all */
}

static void lease_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    (void)old;
    ensure_members(arena, object, LEASE_ALWAYS);
}

static void lease_validate(const struct validation *validation)
{
    const cJSON *spec = json_get(validation->object, "spec");
    const cJSON *seconds = json_get(spec, "leaseDurationSeconds");
    const cJSON *transitions = json_get(spec, "leaseTransitions");

    if (seconds && json_int(seconds, 1) <= 0)
        field_error(validation->errors, FIELD_ERROR_INVALID, "spec.leaseDurationSeconds", seconds,
                    "must be greater than 0");
    if (transitions && json_int(transitions, 0) < 0)
        field_error(validation->errors, FIELD_ERROR_INVALID, "spec.leaseTransitions", transitions,
                    "must be greater than or equal to 0");
}

/* --- events ----------------------------------------------------------------------------------- */

/* An Event has two forms, v1 and events.k8s.io/v1, and one place in the store, where it has the form of v1. */
static const struct {
    const char *core, *v1;
} EVENT_NAMES[] = {
    { "involvedObject", "regarding" },
    { "message", "note" },
    { "source", "deprecatedSource" },
    { "firstTimestamp", "deprecatedFirstTimestamp" },
    { "lastTimestamp", "deprecatedLastTimestamp" },
    { "count", "deprecatedCount" },
    { "reportingComponent", "reportingController" },
};

/* A member of either form by its name in v1. */
static const cJSON *event_member(const cJSON *event, const char *name)
{
    const cJSON *member = json_get(event, name);

    for (size_t i = 0; i < ARRAY_LEN(EVENT_NAMES) && !member; i++) {
        if (str_equal(EVENT_NAMES[i].core, name))
            member = json_get(event, EVENT_NAMES[i].v1);
    }
    return member;
}

static const char *event_text(const cJSON *event, const char *name)
{
    return json_string(event_member(event, name), "");
}

static bool event_is_core(const cJSON *event)
{
    return str_equal(text_at(event, "apiVersion"), "v1");
}

/* The form of v1 leaves out a count of 0; both have the time. */
static void event_fill_series(struct arena *arena, cJSON *event, bool core)
{
    cJSON *series = (cJSON *)(uintptr_t)json_get(event, "series");

    if (!cJSON_IsObject(series))
        return;
    if (core && json_int(json_get(series, "count"), 1) == 0)
        json_remove(series, "count");
    ensure_members(arena, series,
                   core ? "{\"lastObservedTime\":null}"
                        : "{\"count\":0,\"lastObservedTime\":null}");
}

static void event_convert(struct arena *arena, cJSON *event, bool to_core)
{
    event_fill_series(arena, event, to_core);
    for (size_t i = 0; i < ARRAY_LEN(EVENT_NAMES); i++) {
        const char *from = to_core ? EVENT_NAMES[i].v1 : EVENT_NAMES[i].core;
        cJSON *value = cJSON_DetachItemFromObjectCaseSensitive(event, from);

        if (value)
            json_set(event, to_core ? EVENT_NAMES[i].core : EVENT_NAMES[i].v1, value);
    }
    json_set_string(event, "apiVersion", to_core ? "v1" : "events.k8s.io/v1");
}

static void event_to_core(struct arena *arena, cJSON *event)
{
    event_convert(arena, event, true);
}

static void event_from_core(struct arena *arena, cJSON *event)
{
    static const char *const OMITTED[] = { "reportingController", "reportingInstance" };

    event_convert(arena, event, false);
    for (size_t i = 0; i < ARRAY_LEN(OMITTED); i++) {
        if (!*json_string(json_get(event, OMITTED[i]), "?"))
            json_remove(event, OMITTED[i]);
    }
}

static void event_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    bool core = event_is_core(object);

    (void)old;
    drop_empty_texts(object);
    drop_empty_texts(event_member(object, "involvedObject"));
    drop_empty_texts(event_member(object, "source"));
    drop_empty_texts(json_get(object, "related"));
    if (json_int(event_member(object, "count"), 1) == 0)
        json_remove(object, core ? "count" : "deprecatedCount");
    event_fill_series(arena, object, core);
    ensure_members(arena, object, core ? EVENT_ALWAYS : EVENT_V1_ALWAYS);
}

static bool event_has_time(const struct validation *validation)
{
    return json_string(json_get(validation->object, "eventTime"), NULL) != NULL;
}

static void event_check_text(const struct validation *validation, const char *name, size_t max)
{
    const char *value = event_text(validation->object, name);

    if (!*value && !str_equal(name, "message"))
        require(validation, name);
    if (strlen(value) > max)
        invalid_text(validation->errors, name, "",
                     arena_printf(validation->arena, "can have at most %zu characters", max));
}

static void event_check_namespace(const struct validation *validation)
{
    const cJSON *event = validation->object;
    const char *own = json_string(json_path(event, "metadata", "namespace", NULL), "");
    const char *theirs = text_at(event_member(event, "involvedObject"), "namespace");
    bool fits = *theirs || str_equal(own, "default") || str_equal(own, "kube-system");

    if (!event_has_time(validation))
        fits = str_equal(own, *theirs ? theirs : "default");
    if (!fits)
        invalid_text(validation->errors, "involvedObject.namespace", theirs,
                     "does not match event.namespace");
}

static void event_validate(const struct validation *validation)
{
    const cJSON *event = validation->object;
    const char *path = event_is_core(event) ? "reportingComponent" : "reportingController";
    const char *name = event_text(event, "reportingComponent");

    event_check_namespace(validation);
    if (!event_has_time(validation))
        return;
    if (!*name)
        require(validation, path);
    else
        check_qualified_name(validation->errors, path, name, name);
    event_check_text(validation, "reportingInstance", MAX_EVENT_TEXT);
    event_check_text(validation, "action", MAX_EVENT_TEXT);
    event_check_text(validation, "reason", MAX_EVENT_TEXT);
    event_check_text(validation, "message", MAX_NOTE);
}

static void event_check_series(const struct validation *validation)
{
    const cJSON *series = json_get(validation->object, "series");

    if (!cJSON_IsObject(series) ||
        (validation->old && json_equal(series, json_get(validation->old, "series"))))
        return;
    if (json_int(json_get(series, "count"), 0) < 2)
        invalid_text(validation->errors, "series.count", "", "should be at least 2");
    if (!*text_at(series, "lastObservedTime"))
        require(validation, "series.lastObservedTime");
}

static void event_check_new(const struct validation *validation)
{
    static const char *const UNSET[] = { "firstTimestamp", "lastTimestamp", "count", "source" };
    const char *type = event_text(validation->object, "type");

    if (!event_has_time(validation))
        require(validation, "eventTime");
    if (!str_equal(type, "Normal") && !str_equal(type, "Warning"))
        invalid_text(validation->errors, "type", type, "must be Normal or Warning");
    for (size_t i = 0; i < ARRAY_LEN(UNSET); i++) {
        const cJSON *value = event_member(validation->object, UNSET[i]);

        if (*json_string(value, "") || json_int(value, 0) || json_len(value))
            invalid_text(validation->errors, UNSET[i], "", "needs to be unset");
    }
}

static void event_v1_validate(const struct validation *validation)
{
    static const char *const FIXED[] = {
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "action",
        "related",
        "reportingInstance",
        "eventTime",
        "reportingComponent",
    };

    event_validate(validation);
    event_check_series(validation);
    if (!validation->old)
        event_check_new(validation);
    for (size_t i = 0; i < ARRAY_LEN(FIXED) && validation->old; i++)
        require_unchanged(
            validation,
            str_equal(FIXED[i], "reportingComponent") ? "reportingController" : FIXED[i],
            event_member(validation->object, FIXED[i]), event_member(validation->old, FIXED[i]));
}

static const char *event_target(struct arena *arena, const cJSON *regarding)
{
    char *kind = arena_strdup(arena, text_at(regarding, "kind"));
    const char *name = text_at(regarding, "name");

    for (char *c = kind; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return *name ? arena_printf(arena, "%s/%s", kind, name) : kind;
}

static const char *event_source(struct arena *arena, const cJSON *event)
{
    const cJSON *source = event_member(event, "source");
    const char *component = text_at(source, "component"), *host = text_at(source, "host");

    if (!*component)
        component = event_text(event, "reportingComponent");
    if (!*host)
        host = text_at(event, "reportingInstance");
    return *host ? arena_printf(arena, "%s, %s", component, host) : component;
}

static const char *event_trimmed(struct arena *arena, const char *text)
{
    size_t len;

    text += strspn(text, " \t\r\n");
    len = strlen(text);
    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    return arena_strndup(arena, text, len);
}

static void event_cells(struct arena *arena, const cJSON *event, int64_t now_us, cJSON *cells)
{
    const cJSON *regarding = event_member(event, "involvedObject");
    const cJSON *first = event_member(event, "firstTimestamp"), *series = json_get(event, "series");
    const cJSON *last = event_member(event, "lastTimestamp");
    int64_t count = json_int(event_member(event, "count"), 0);

    if (!json_string(first, NULL))
        first = json_get(event, "eventTime");
    if (!json_string(last, NULL))
        last = first;
    if (cJSON_IsObject(series)) {
        last = json_get(series, "lastObservedTime");
        count = json_int(json_get(series, "count"), 0);
    } else if (!count) {
        count = 1;
    }
    json_add_string(cells, table_age(arena, last, now_us));
    json_add_string(cells, text_at(event, "type"));
    json_add_string(cells, text_at(event, "reason"));
    json_add_string(cells, event_target(arena, regarding));
    json_add_string(cells, text_at(regarding, "fieldPath"));
    json_add_string(cells, event_source(arena, event));
    json_add_string(cells, event_trimmed(arena, event_text(event, "message")));
    json_add_string(cells, table_age(arena, first, now_us));
    json_add(cells, cJSON_CreateNumber((double)count));
    json_add_string(cells, json_string(json_path(event, "metadata", "name", NULL), ""));
}

/* --- all -------------------------------------------------------------------------------------- */

/* Names, columns and schemas are in kinds.yaml and builtin.json. */
const struct resource BUILTIN_RESOURCES[] = {
    { .kind = { .group = "", .plural = "configmaps" },
      .storage = "core/configmaps",
      .validate = configmap_validate },
    { .kind = { .group = "", .plural = "events" },
      .storage = "core/events",
      .creates_on_update = true,
      .cells = event_cells,
      .always = EVENT_ALWAYS,
      .fill = event_fill,
      .validate = event_validate },
    { .kind = { .group = "", .plural = "namespaces" },
      .storage = "core/namespaces",
      .always = NAMESPACE_ALWAYS,
      .fill = namespace_fill,
      .prepare = namespace_prepare,
      .validate = namespace_validate },
    { .kind = { .group = "", .plural = "secrets" },
      .storage = "core/secrets",
      .fill = secret_fill,
      .validate = secret_validate },
    { .kind = { .group = "", .plural = "serviceaccounts" },
      .storage = "core/serviceaccounts",
      .returns_deleted = true,
      .fill = service_account_fill,
      .prepare = service_account_prepare,
      .validate = service_account_validate },
    { .kind = { .group = "coordination.k8s.io", .plural = "leases" },
      .storage = "coordination.k8s.io/leases",
      .creates_on_update = true,
      .always = LEASE_ALWAYS,
      .fill = lease_fill,
      .validate = lease_validate },
    { .kind = { .group = "events.k8s.io", .plural = "events" },
      .storage = "core/events",
      .creates_on_update = true,
      .cells = event_cells,
      .always = EVENT_V1_ALWAYS,
      .fill = event_fill,
      .validate = event_v1_validate,
      .to_storage = event_to_core,
      .from_storage = event_from_core },
};
const size_t BUILTIN_RESOURCES_LEN = ARRAY_LEN(BUILTIN_RESOURCES);
