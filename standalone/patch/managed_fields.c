#include "standalone/patch/managed_fields.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "standalone/patch/fields.h"
#include "standalone/patch/managers.h"
#include "standalone/schema/decode.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* One write of an object. */
struct managing {
    struct arena *arena;
    const struct managed_fields_write *write;
    const struct schema *schema;
    const char *version; /* apiVersion of the resource */
    const char *now;     /* RFC 3339 */
    struct managers managers;
};

static struct managing managing_of(struct arena *arena, const struct managed_fields_write *write)
{
    char now[RFC3339_LEN];

    return (struct managing){
        .arena = arena,
        .write = write,
        .schema = write->resource->schema,
        .version = resource_api_version(arena, write->resource),
        .now = arena_strdup(arena, rfc3339_format(write->now_us, now)),
    };
}

/* --- fields that are special ------------------------------------------------------------------ */

static struct field_set managing_constant(const struct managing *managing, const char *text)
{
    struct field_set set = { 0 };
    const cJSON *fields = NULL;

    if (json_parse(managing->arena, text, strlen(text), &fields, NULL) == 0)
        (void)field_set_read(managing->arena, fields, &set);
    return set;
}

/* Without the fields that have no manager. */
static struct field_set managing_managed(const struct managing *managing,
                                         const struct field_set *set)
{
    const struct field_set unmanaged = managing_constant(
        managing, "{\"f:apiVersion\":{},\"f:kind\":{},\"f:metadata\":{\".\":{},\"f:name\":{},"
                  "\"f:namespace\":{},\"f:creationTimestamp\":{},\"f:selfLink\":{},\"f:uid\":{},"
                  "\"f:generation\":{},\"f:resourceVersion\":{}}}");

    return field_set_difference(managing->arena, set, &unmanaged);
}

/* Without what the endpoint does not write, and managedFields. */
static struct field_set managing_written(const struct managing *managing,
                                         const struct field_set *set)
{
    const struct managed_fields_write *write = managing->write;
    const char *other = !write->resource->has_status ? ""
                        : *write->subresource        ? ",\"f:spec\":{}"
                                                     : ",\"f:status\":{}";
    const struct field_set unwritten = managing_constant(
        managing,
        arena_printf(managing->arena, "{\"f:metadata\":{\"f:managedFields\":{}}%s}", other));

    return field_set_without(managing->arena, set, &unwritten);
}

/* An object that is not there as Go has it: its kind, and members that are always written. */
static const cJSON *managing_nothing(const struct managing *managing)
{
    const struct resource *resource = managing->write->resource;
    const cJSON *always = NULL;
    cJSON *object = json_object(managing->arena);

    json_set_string(object, "apiVersion", managing->version);
    json_set_string(object, "kind", resource->kind.kind);
    if (!resource->custom)
        json_set_object(object, "metadata");
    if (resource->always && json_parse(managing->arena, resource->always, strlen(resource->always),
                                       &always, NULL) == 0) {
        json_for_each (member, always)
            json_set_copy(object, member->string, member);
    }
    return object;
}

/* --- update ----------------------------------------------------------------------------------- */

const char *managed_fields_manager(struct arena *arena, const char *field_manager,
                                   const char *user_agent)
{
    size_t len;

    if (!str_is_empty(field_manager))
        return arena_strdup(arena, field_manager);
    if (str_is_empty(user_agent))
        return "unknown";
    len = str_utf8_cut(user_agent, strcspn(user_agent, "/"), FIELD_MANAGER_MAX);
    return len ? arena_strndup(arena, user_agent, len) : "unknown";
}

static struct fields_change managing_compare(const struct managing *managing,
                                             const struct field_set *old,
                                             const struct field_set *new)
{
    struct fields_change change = fields_compare(managing->arena, old, new);

    change.changed = managing_written(managing, &change.changed);
    change.removed = managing_written(managing, &change.removed);
    return change;
}

/* Managers of another version of the kind are left alone: their fields have other names. own NULL: none. */
static bool managing_is_other(const struct managing *managing, const struct manager *manager,
                              const struct manager *own)
{
    return str_equal(manager->version, managing->version) &&
           !(own && own->applies == manager->applies && str_equal(own->name, manager->name) &&
             str_equal(own->subresource, manager->subresource));
}

/* The other managers lose what was changed or removed. Those of the other group of an Event lose all, as they do on a
 * cluster. */
static void managing_take(struct managing *managing, const struct fields_change *change,
                          const struct manager *own)
{
    const struct field_set both[] = { change->changed, change->removed };
    const struct field_set taken = field_set_union(managing->arena, both, ARRAY_LEN(both));
    bool event = str_equal(managing->write->resource->storage, "core/events");

    for (size_t i = 0; i < managing->managers.len; i++) {
        struct manager *manager = &managing->managers.items[i];

        if (managing_is_other(managing, manager, own))
            manager->fields = field_set_difference(managing->arena, &manager->fields, &taken);
        else if (event && !str_equal(manager->version, managing->version))
            manager->fields = (struct field_set){ 0 };
    }
}

/* The manager gets what changed, and the time. */
static void managing_update(struct managing *managing, const struct field_set *old,
                            const struct field_set *new, const char *name)
{
    const struct fields_change change = managing_compare(managing, old, new);
    struct manager manager = { .name = name,
                               .subresource = managing->write->subresource,
                               .version = managing->version,
                               .time = managing->now,
                               .fields = managing_managed(managing, &change.changed) };
    struct manager *known;

    managing_take(managing, &change, NULL);
    if (field_set_is_empty(&manager.fields))
        return;
    known = managers_find(&managing->managers, &manager);
    if (known) {
        const struct field_set both[] = { manager.fields, known->fields };

        known->fields = field_set_union(managing->arena, both, ARRAY_LEN(both));
        known->time = managing->now;
    } else {
        managers_add(managing->arena, &managing->managers, &manager);
    }
}

static void managing_set(struct managing *managing, cJSON *object)
{
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(object, "metadata");

    if (!metadata)
        metadata = json_set_object(object, "metadata");
    json_set(metadata, "managedFields", managers_write(managing->arena, &managing->managers));
}

/* A list with an entry that says nothing; for built-in kinds also an empty one. */
static bool managing_is_reset(const struct managing *managing, const cJSON *managed_fields)
{
    if (!cJSON_IsArray(managed_fields))
        return false;
    if (!json_first(managed_fields))
        return !managing->write->resource->custom;
    return json_len(managed_fields) == 1 && json_len(json_first(managed_fields)) == 0;
}

/* Those that the client sent, or those of the live object; none if they cannot be read. */
static void managing_read(struct managing *managing, const cJSON *live, const cJSON *object)
{
    const cJSON *sent = json_path(object, "metadata", "managedFields", NULL);
    const cJSON *known = json_path(live, "metadata", "managedFields", NULL);

    if (!*managing->write->subresource &&
        (managing_is_reset(managing, sent) ||
         (json_len(sent) && managers_read(managing->arena, sent, &managing->managers))))
        return;
    (void)managers_read(managing->arena, known, &managing->managers);
}

void managed_fields_update(struct arena *arena, const struct managed_fields_write *write,
                           const cJSON *live, cJSON *object)
{
    struct managing managing = managing_of(arena, write);
    struct field_set old, new;

    managing_read(&managing, live, object);
    if (fields_of(arena, managing.schema, object, true, &new, NULL) < 0) {
        managing.managers = (struct managers){ 0 };
    } else if (managing.managers.len || !live) {
        (void)!fields_of(arena, managing.schema, live ? live : managing_nothing(&managing), true,
                         &old, NULL);
        managing_update(&managing, &old, &new, write->manager);
    }
    managing_set(&managing, object);
}

/* --- apply ------------------------------------------------------------------------------------ */

struct applying {
    struct managing managing; /* with the new fields of this manager */
    const cJSON *live;        /* never NULL */
    const cJSON *applied;
    struct field_set live_fields, applied_fields;
    struct manager own;    /* as it is after this write */
    struct field_set last; /* what it applied before */
};

/* All fields that a manager manages. */
static struct field_set applying_held(const struct applying *applying)
{
    const struct managers *managers = &applying->managing.managers;
    struct field_set *sets =
        arena_array(applying->managing.arena, struct field_set, managers->len + 1);
    size_t len = 0;

    for (size_t i = 0; i < managers->len; i++) {
        if (str_equal(managers->items[i].version, applying->managing.version))
            sets[len++] = managers->items[i].fields;
    }
    return field_set_union(applying->managing.arena, sets, len);
}

/* Fields that kubectl may take without force: it wrote them by client-side apply before. */
static struct field_set applying_allowed(const struct applying *applying)
{
    const struct managing *managing = &applying->managing;
    struct arena *arena = managing->arena;
    const char *last =
        json_string(json_path(applying->live, "metadata", "annotations", LAST_APPLIED, NULL), "");
    struct field_set set = { 0 };
    const cJSON *object;

    if (!str_equal(managing->write->manager, "kubectl") || !*last ||
        json_parse(arena, last, strlen(last), &object, NULL) < 0 ||
        !str_equal(json_string(json_get(object, "apiVersion"), ""), managing->version) ||
        fields_of(arena, managing->schema, object, false, &set, NULL) < 0)
        return (struct field_set){ 0 };

    const struct fields_change change = fields_compare(arena, &set, &applying->live_fields);
    set = field_set_difference(arena, &set, &change.changed);
    return field_set_difference(arena, &set, &change.removed);
}

/* --- conflicts -------------------------------------------------------------------------------- */

/* The words of all conflicts of one apply; what does not fit is left out. */
#define MAX_CONFLICTS_TEXT (64u << 10)

struct conflicts {
    struct arena *arena;
    const char *manager; /* in words */
    cJSON *causes;
    struct buf lines;
};

static void conflicts_add(struct conflicts *conflicts, const struct field_set *set,
                          const struct field_path *path)
{
    for (size_t i = 0; i < set->len; i++) {
        const struct field_path inner = { .parent = path, .field = &set->children[i] };
        const char *text = inner.field->member ? field_path_text(conflicts->arena, &inner) : NULL;

        if (text && buf_printf(&conflicts->lines, "\n- %s: %s", conflicts->manager, text)) {
            cJSON *cause = json_add_object(conflicts->causes);

            json_set_string(cause, "reason", "FieldManagerConflict");
            json_set_string(cause, "message",
                            arena_printf(conflicts->arena, "conflict with %s", conflicts->manager));
            json_set_string(cause, "field", text);
        }
        conflicts_add(conflicts, inner.field, &inner);
    }
}

static const char *conflicts_manager(struct arena *arena, const struct manager *manager)
{
    const char *text = arena_printf(arena, "\"%s\"", manager->name);

    if (*manager->subresource)
        text = arena_printf(arena, "%s with subresource \"%s\"", text, manager->subresource);
    return manager->applies ? text : arena_printf(arena, "%s using %s", text, manager->version);
}

/* The Status; NULL: no other manager has a field that changes. */
static const cJSON *applying_conflicts(const struct applying *applying,
                                       const struct field_set *changed)
{
    const struct managing *managing = &applying->managing;
    const struct field_set allowed = applying_allowed(applying), root = { 0 };
    struct conflicts conflicts = { .arena = managing->arena,
                                   .causes = json_array(managing->arena),
                                   .lines = BUF_INIT(MAX_CONFLICTS_TEXT) };
    cJSON *status = json_object(managing->arena);

    for (size_t i = 0; i < managing->managers.len; i++) {
        const struct manager *other = &managing->managers.items[i];
        struct field_set set;

        if (!managing_is_other(managing, other, &applying->own))
            continue;
        set = field_set_intersection(managing->arena, &other->fields, changed);
        set = field_set_difference(managing->arena, &set, &allowed);
        conflicts.manager = conflicts_manager(managing->arena, other);
        conflicts_add(&conflicts, &set, &(struct field_path){ .field = &root });
    }
    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_object(status, "metadata");
    json_set_string(status, "status", "Failure");
    json_set_string(status, "message",
                    arena_printf(managing->arena,
                                 "Apply failed, other managers have fields with other values:%s",
                                 buf_string(&conflicts.lines)));
    json_set_string(status, "reason", "Conflict");
    json_set_copy(json_set_object(status, "details"), "causes", conflicts.causes);
    json_set_int(status, "code", 409);
    buf_release(&conflicts.lines);
    return json_len(conflicts.causes) ? status : NULL;
}

/* --- one apply -------------------------------------------------------------------------------- */

/* The annotation of client-side apply goes on saying what was applied. */
static void applying_refresh_annotation(const struct applying *applying, cJSON *object)
{
    struct arena *arena = applying->managing.arena;
    const cJSON *annotations = json_path(object, "metadata", "annotations", NULL);
    cJSON *copy;

    if (!str_equal(applying->managing.write->manager, "kubectl") ||
        !*json_string(json_get(annotations, LAST_APPLIED), ""))
        return;
    copy = arena_own(arena, json_copy(applying->applied), json_free);
    json_remove((cJSON *)(uintptr_t)json_path(copy, "metadata", "annotations", NULL), LAST_APPLIED);
    json_set_string((cJSON *)(uintptr_t)annotations, LAST_APPLIED,
                    arena_printf(arena, "%s\n", json_text(arena, copy, NULL)));
}

static int applying_check(const struct applying *applying, struct error *err)
{
    const char *version = json_string(json_get(applying->applied, "apiVersion"), "");
    const char *kind = json_string(json_get(applying->applied, "kind"), "");

    if (!str_equal(version, applying->managing.version) ||
        !str_equal(kind, applying->managing.write->resource->kind.kind))
        return error_set(err, ERROR_INVALID, "invalid object type: %s, Kind=%s", version, kind);
    if (json_path(applying->applied, "metadata", "managedFields", NULL))
        return error_set(err, ERROR_INVALID, "metadata.managedFields must be nil");
    return 0;
}

/* An object may have fields but no managers at all: then "before-first-apply" manages them. */
static int applying_read(struct applying *applying, const cJSON *live, struct error *err)
{
    struct managing *managing = &applying->managing;
    struct field_set nothing;
    struct error why;

    applying->live = live ? live : managing_nothing(managing);
    int r = fields_of(managing->arena, managing->schema, applying->live, true,
                      &applying->live_fields, &why);
    if (!managers_read(managing->arena, json_path(live, "metadata", "managedFields", NULL),
                       &managing->managers))
        return error_set(err, ERROR_INTERNAL, "metadata.managedFields cannot be read");
    if (managing->managers.len || !live)
        return 0;
    if (r < 0)
        return error_set(err, ERROR_INTERNAL, "the object does not fit its schema: %s",
                         why.message);
    (void)!fields_of(managing->arena, managing->schema, managing_nothing(managing), true, &nothing,
                     NULL);
    managing_update(managing, &nothing, &applying->live_fields, "before-first-apply");
    return 0;
}

/* The manager has the fields that are applied now. */
static int applying_own(struct applying *applying, struct error *err)
{
    struct managing *managing = &applying->managing;
    struct manager *known;
    struct error why;

    applying->own = (struct manager){ .name = managing->write->manager,
                                      .subresource = managing->write->subresource,
                                      .version = managing->version,
                                      .applies = true };
    if (fields_of(managing->arena, managing->schema, applying->applied, false,
                  &applying->applied_fields, &why) < 0)
        return error_set(err, ERROR_INTERNAL, "the applied object does not fit its schema: %s",
                         why.message);
    known = managers_find(&managing->managers, &applying->own);
    if (!known)
        known = managers_add(managing->arena, &managing->managers, &applying->own);
    applying->last = known->fields;
    known->version = managing->version;
    known->fields = managing_written(managing, &applying->applied_fields);
    return 0;
}

/* Built-in kinds must be of the Go type again. */
static int applying_check_result(const struct applying *applying, cJSON *object, struct error *err)
{
    const struct resource *resource = applying->managing.write->resource;
    struct error why;

    if (resource->custom ||
        schema_convert(resource->schema, resource->kind.kind, object, &why) == 0)
        return 0;
    return error_set(err, ERROR_INTERNAL, "the result is no %s: %s", resource->kind.kind,
                     why.message);
}

int managed_fields_apply(struct arena *arena, const struct managed_fields_write *write,
                         const cJSON *live, const cJSON *applied, bool force, cJSON **ret,
                         const cJSON **ret_status, struct error *err)
{
    struct applying applying = { .managing = managing_of(arena, write), .applied = applied };
    struct managing *managing = &applying.managing;
    struct field_set merged_fields;
    struct manager *own;

    int r = applying_check(&applying, err);
    if (r == 0)
        r = applying_read(&applying, live, err);
    if (r == 0)
        r = applying_own(&applying, err);
    if (r < 0)
        return r;

    cJSON *merged =
        fields_merge(arena, managing->schema, &applying.live_fields, &applying.applied_fields);
    const struct field_set held = applying_held(&applying);
    fields_prune(arena, managing->schema, merged, &applying.last, &held);
    (void)!fields_of(arena, managing->schema, merged, true, &merged_fields, NULL);

    const struct fields_change change =
        managing_compare(managing, &applying.live_fields, &merged_fields);
    *ret_status = force ? NULL : applying_conflicts(&applying, &change.changed);
    if (*ret_status)
        return error_set(err, ERROR_CONFLICT, "other managers have fields with other values");
    managing_take(managing, &change, &applying.own);

    own = managers_find(&managing->managers, &applying.own);
    own->fields = managing_managed(managing, &own->fields);
    if (!json_equal(merged, applying.live))
        own->time = managing->now;
    r = applying_check_result(&applying, merged, err);
    if (r < 0)
        return r;
    applying_refresh_annotation(&applying, merged);
    managing_set(managing, merged);
    *ret = merged;
    return 0;
}
