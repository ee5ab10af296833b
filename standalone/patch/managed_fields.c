#include "standalone/patch/managed_fields.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "standalone/patch/fields.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* Of one object. */
#define MANAGERS_MAX 1024
/* More managers that only update are forgotten, the oldest first. */
#define MANAGERS_MAX_UPDATERS 10

struct manager {
    const char *name;
    const char *subresource; /* "" for none */
    const char *version;     /* apiVersion of the fields */
    bool applies;            /* operation Apply; otherwise Update */
    const char *time;        /* RFC 3339; "": none */
    struct field_set fields;
};

/* In the arena, as all they point to; items have room for two more than were read. */
struct managers {
    struct manager *items;
    size_t len;
};

/* --- managers ---------------------------------------------------------------------------------- */

/* The manager with the same name, operation and subresource, and for Update the same version. NULL: there is none. */
static struct manager *managers_find(const struct managers *managers, const struct manager *id)
{
    for (size_t i = 0; i < managers->len; i++) {
        struct manager *item = &managers->items[i];

        if (item->applies == id->applies && str_equal(item->name, id->name) &&
            str_equal(item->subresource, id->subresource) &&
            (item->applies || str_equal(item->version, id->version)))
            return item;
    }
    return NULL;
}

/* The one that managers_find finds, or a new one. */
static struct manager *managers_get(struct managers *managers, const struct manager *id)
{
    struct manager *known = managers_find(managers, id);

    if (known)
        return known;
    managers->items[managers->len] = *id;
    return &managers->items[managers->len++];
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool managers_read_entry(struct arena *arena, const cJSON *entry, struct manager *ret)
{
    const char *operation = json_get_string(entry, "operation");
    const cJSON *fields = json_get(entry, "fieldsV1");

    *ret = (struct manager){
        .name = json_get_string(entry, "manager"),
        .subresource = json_get_string(entry, "subresource"),
        .version = json_get_string(entry, "apiVersion"),
        .applies = str_equal(operation, "Apply"),
        .time = json_get_string(entry, "time"),
    };
    if ((!ret->applies && !str_equal(operation, "Update")) || !*ret->version ||
        !str_equal(json_get_string(entry, "fieldsType"), "FieldsV1"))
        return false;
    return !fields || field_set_read(arena, fields, &ret->fields);
}

/* false: an entry cannot be read; *ret is not changed. */
static bool managers_read(struct arena *arena, const cJSON *managed_fields, struct managers *ret)
{
    struct managers managers = {
        .items = arena_array(arena, struct manager, json_len(managed_fields) + 2),
    };

    if (json_len(managed_fields) > MANAGERS_MAX)
        return false;
    json_for_each (entry, managed_fields) {
        struct manager manager;

        if (!managers_read_entry(arena, entry, &manager))
            return false;
        *managers_get(&managers, &manager) = manager; /* of the same the last one counts */
    }
    *ret = managers;
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Those that apply come first, and then the older ones: this server writes all times in one zone. */
static int managers_compare(const void *a, const void *b)
{
    const struct manager *one = a, *other = b;
    int order = (int)other->applies - (int)one->applies;

    if (!order)
        order = strcmp(one->time, other->time);
    if (!order)
        order = strcmp(one->name, other->name);
    if (!order)
        order = strcmp(one->version, other->version);
    return order ? order : strcmp(one->subresource, other->subresource);
}

/* Orders them as the API server does, without those that have no fields, and without the oldest of those that only
 * update, which come last: fields that no manager has are free to take. Returns an array, the caller's; NULL: there are
 * none. */
static cJSON *managers_write(struct arena *arena, struct managers *managers)
{
    size_t kept = 0, updaters = 0;
    cJSON *entries;

    for (size_t i = 0; i < managers->len; i++) {
        const struct manager manager = managers->items[i];

        if (field_set_is_empty(&manager.fields))
            continue;
        managers->items[kept++] = manager;
        updaters += !manager.applies;
    }
    if (!kept)
        return NULL;
    qsort(managers->items, kept, sizeof(*managers->items), managers_compare);
    entries = cJSON_CreateArray();
    for (size_t i = 0; i < kept; i++) {
        const struct manager *manager = &managers->items[i];
        cJSON *entry;

        if (!manager->applies && updaters-- > MANAGERS_MAX_UPDATERS)
            continue;
        entry = json_add_object(entries);
        if (*manager->name)
            json_set_string(entry, "manager", manager->name);
        json_set_string(entry, "operation", manager->applies ? "Apply" : "Update");
        json_set_string(entry, "apiVersion", manager->version);
        if (*manager->time)
            json_set_string(entry, "time", manager->time);
        json_set_string(entry, "fieldsType", "FieldsV1");
        json_set(entry, "fieldsV1", field_set_write(arena, &manager->fields));
        if (*manager->subresource)
            json_set_string(entry, "subresource", manager->subresource);
    }
    return entries;
}

/* One write of an object. */
struct managing {
    struct arena *arena;
    const struct managed_fields_write *write;
    const struct schema *schema;
    const char *now; /* RFC 3339 */
    struct managers managers;
    struct manager own; /* without fields: this manager */
    /* Of an apply: */
    const cJSON *live; /* an empty object if there is none */
    const cJSON *applied;
    struct field_set live_fields, applied_fields;
    struct field_set last; /* what this manager applied before */
};

static struct managing managing_of(struct arena *arena, const struct managed_fields_write *write)
{
    char now[RFC3339_LEN];

    return (struct managing){
        .arena = arena,
        .write = write,
        .schema = write->resource->schema,
        .now = arena_strdup(arena, rfc3339_format(write->now_us, now)),
        .own = { .name = write->manager,
                 .subresource = write->subresource,
                 .version = resource_api_version(arena, write->resource),
                 .time = "" },
        .managers = { .items = arena_array(arena, struct manager, 2) },
    };
}

/* --- fields that are special ------------------------------------------------------------------ */

static struct field_set managing_constant(const struct managing *self, const char *text)
{
    struct field_set set = { 0 };
    const cJSON *fields = NULL;

    if (json_parse(self->arena, text, strlen(text), &fields, NULL) == 0)
        (void)field_set_read(self->arena, fields, &set);
    return set;
}

/* Without the fields that have no manager. */
static struct field_set managing_managed(const struct managing *self, const struct field_set *set)
{
    const struct field_set unmanaged = managing_constant(
        self, "{\"f:apiVersion\":{},\"f:kind\":{},\"f:metadata\":{\".\":{},\"f:name\":{},"
              "\"f:namespace\":{},\"f:creationTimestamp\":{},\"f:selfLink\":{},\"f:uid\":{},"
              "\"f:generation\":{},\"f:resourceVersion\":{}}}");

    return field_set_part(self->arena, set, &unmanaged, KEEP_OTHERS);
}

/* Without managedFields, and without what the endpoint does not write. */
static struct field_set managing_written(const struct managing *self, const struct field_set *set)
{
    const char *other = *self->write->subresource ? "spec" : "status";
    const struct field_set unwritten = managing_constant(
        self, arena_printf(self->arena, "{\"f:metadata\":{\"f:managedFields\":{}},\"f:%s\":{}}",
                           self->write->resource->has_status ? other : ""));

    return field_set_part(self->arena, set, &unwritten, KEEP_OUTSIDE);
}

/* An object that is not there; one of a built-in kind has its spec. */
static const cJSON *managing_nothing(const struct managing *self)
{
    cJSON *object = json_object(self->arena);

    if (!self->write->resource->custom && schema_field(self->schema, "spec"))
        json_set_object(object, "spec");
    return object;
}

/* --- update ----------------------------------------------------------------------------------- */

const char *managed_fields_manager(struct arena *arena, const char *field_manager,
                                   const char *user_agent)
{
    const char *agent = user_agent ? user_agent : "";
    size_t len = str_utf8_cut(agent, strcspn(agent, "/"), FIELD_MANAGER_MAX);

    if (!str_is_empty(field_manager))
        return arena_strdup(arena, field_manager);
    return len ? arena_strndup(arena, agent, len) : "unknown";
}

static struct fields_change managing_compare(const struct managing *self,
                                             const struct field_set *old,
                                             const struct field_set *new)
{
    struct fields_change change = fields_compare(self->arena, old, new);

    change.changed = managing_written(self, &change.changed);
    change.removed = managing_written(self, &change.removed);
    return change;
}

/* Managers of another version of the kind are no others: their fields have other names. */
static bool managing_is_other(const struct managing *self, const struct manager *manager)
{
    return str_equal(manager->version, self->own.version) &&
           !(self->own.applies && manager->applies && str_equal(self->own.name, manager->name) &&
             str_equal(self->own.subresource, manager->subresource));
}

/* The other managers lose what was changed or removed. Those of the other group of an Event lose all, as they do on a
 * cluster. */
static void managing_take(struct managing *self, const struct fields_change *change)
{
    const struct field_set both[] = { change->changed, change->removed };
    const struct field_set taken = field_set_union(self->arena, both, ARRAY_LEN(both));
    bool event = str_equal(self->write->resource->storage, "core/events");

    for (size_t i = 0; i < self->managers.len; i++) {
        struct manager *manager = &self->managers.items[i];

        if (managing_is_other(self, manager))
            manager->fields = field_set_part(self->arena, &manager->fields, &taken, KEEP_OTHERS);
        else if (event && !str_equal(manager->version, self->own.version))
            manager->fields = (struct field_set){ 0 };
    }
}

/* The manager of this name gets what changed, and the time. */
static void managing_update(struct managing *self, const struct field_set *old,
                            const struct field_set *new, const char *name)
{
    const struct fields_change change = managing_compare(self, old, new);
    struct manager updater = self->own, *known;
    struct field_set both[] = { managing_managed(self, &change.changed), { 0 } };

    updater.name = name;
    updater.applies = false;
    managing_take(self, &change);
    if (field_set_is_empty(&both[0]))
        return;
    known = managers_get(&self->managers, &updater);
    both[1] = known->fields;
    known->fields = field_set_union(self->arena, both, ARRAY_LEN(both));
    known->time = self->now;
}

static void managing_set(struct managing *self, cJSON *object)
{
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(object, "metadata");

    if (!metadata)
        metadata = json_set_object(object, "metadata");
    json_set(metadata, "managedFields", managers_write(self->arena, &self->managers));
}

/* The managers are those that the client sent, or those of the live object; none if they cannot be read, or if the
 * client sent one entry that says nothing. */
void managed_fields_update(struct arena *arena, const struct managed_fields_write *write,
                           const cJSON *live, cJSON *object)
{
    struct managing self = managing_of(arena, write);
    const cJSON *sent =
        *write->subresource ? NULL : json_path(object, "metadata", "managedFields", NULL);
    bool is_reset = json_len(sent) == 1 && json_len(json_first(sent)) == 0;
    struct field_set old, new;

    if (!is_reset && !(json_len(sent) && managers_read(arena, sent, &self.managers)))
        (void)managers_read(arena, json_path(live, "metadata", "managedFields", NULL),
                            &self.managers);
    if (fields_of(arena, self.schema, object, true, &new, NULL) < 0) {
        self.managers.len = 0;
    } else if (self.managers.len || !live) {
        (void)!fields_of(arena, self.schema, live ? live : managing_nothing(&self), true, &old,
                         NULL);
        managing_update(&self, &old, &new, write->manager);
    }
    managing_set(&self, object);
}

/* --- conflicts -------------------------------------------------------------------------------- */

/* Causes of one refusal; more conflicts are only counted. */
#define MAX_CAUSES 100

struct conflicts {
    struct arena *arena;
    const char *manager; /* as messages call it */
    cJSON *causes;
    const char *text; /* of the causes */
    size_t count;
};

static void conflicts_add(struct conflicts *conflicts, const struct field_path *path)
{
    const struct field_set *set = path->field;

    if (set->member && conflicts->count < MAX_CAUSES) {
        cJSON *cause = json_add_object(conflicts->causes);
        const char *field = field_path_text(conflicts->arena, path);
        const char *message =
            arena_printf(conflicts->arena, "conflict with %s", conflicts->manager);

        conflicts->text = arena_printf(conflicts->arena, "%s%s%s: %s", conflicts->text,
                                       *conflicts->text ? ", " : "", message, field);
        json_set_string(cause, "reason", "FieldManagerConflict");
        json_set_string(cause, "message", message);
        json_set_string(cause, "field", field);
    }
    conflicts->count += set->member;
    for (size_t i = 0; i < set->len; i++)
        conflicts_add(conflicts, &(struct field_path){ path, &set->children[i] });
}

/* Fields that kubectl may take without force: it wrote them by client-side apply before. */
static struct field_set managing_allowed(const struct managing *self)
{
    const char *last =
        json_string(json_path(self->live, "metadata", "annotations", LAST_APPLIED, NULL), "");
    struct field_set set;
    struct fields_change change;
    const cJSON *object;

    if (!str_equal(self->own.name, "kubectl") || !*last ||
        json_parse(self->arena, last, strlen(last), &object, NULL) < 0 ||
        !str_equal(json_get_string(object, "apiVersion"), self->own.version) ||
        fields_of(self->arena, self->schema, object, false, &set, NULL) < 0)
        return (struct field_set){ 0 };
    change = fields_compare(self->arena, &set, &self->live_fields);
    set = field_set_part(self->arena, &set, &change.changed, KEEP_OTHERS);
    return field_set_part(self->arena, &set, &change.removed, KEEP_OTHERS);
}

/* The Status; NULL: no other manager has a field that changes. */
static const cJSON *managing_conflicts(const struct managing *self, const struct field_set *changed)
{
    const struct field_set allowed = managing_allowed(self);
    cJSON *status = json_object(self->arena);
    struct conflicts conflicts = { .arena = self->arena,
                                   .causes = json_array(self->arena),
                                   .text = "" };

    for (size_t i = 0; i < self->managers.len; i++) {
        const struct manager *other = &self->managers.items[i];
        struct field_set set = field_set_part(self->arena, &other->fields, changed, KEEP_COMMON);

        set = field_set_part(self->arena, &set, &allowed, KEEP_OTHERS);
        if (!managing_is_other(self, other) || field_set_is_empty(&set))
            continue;
        set.member = false;
        conflicts.manager =
            arena_printf(self->arena, "\"%s\"%s%s%s%s%s", other->name,
                         *other->subresource ? " with subresource \"" : "", other->subresource,
                         *other->subresource ? "\"" : "", other->applies ? "" : " using ",
                         other->applies ? "" : other->version);
        conflicts_add(&conflicts, &(struct field_path){ .field = &set });
    }
    if (!conflicts.count)
        return NULL;
    json_set_string(status, "status", "Failure");
    json_set_string(status, "message",
                    arena_printf(self->arena, "Apply failed with %zu conflict%s: %s",
                                 conflicts.count, conflicts.count == 1 ? "" : "s", conflicts.text));
    json_set_string(status, "reason", "Conflict");
    json_set_copy(json_set_object(status, "details"), "causes", conflicts.causes);
    json_set_int(status, "code", 409);
    return status;
}

/* --- apply ------------------------------------------------------------------------------------ */

/* An object may have fields but no managers at all: then "before-first-apply" manages them. */
static int managing_read_live(struct managing *self, const cJSON *live, struct error *err)
{
    const cJSON *known = json_path(live, "metadata", "managedFields", NULL);
    struct error why;

    self->live = live ? live : managing_nothing(self);
    int r = fields_of(self->arena, self->schema, self->live, true, &self->live_fields, &why);
    if (!managers_read(self->arena, known, &self->managers))
        return error_set(err, ERROR_INTERNAL, "metadata.managedFields cannot be read");
    if (self->managers.len || !live)
        return 0;
    if (r < 0)
        return error_set(err, ERROR_INTERNAL, "the object does not fit its schema: %s",
                         why.message);
    managing_update(self, &(struct field_set){ 0 }, &self->live_fields, "before-first-apply");
    return 0;
}

/* The manager gets the fields that are applied now. */
static int managing_read_applied(struct managing *self, struct error *err)
{
    const char *version = json_get_string(self->applied, "apiVersion");
    const char *kind = json_get_string(self->applied, "kind");
    struct manager *known;
    struct error why;

    if (!str_equal(version, self->own.version) ||
        !str_equal(kind, self->write->resource->kind.kind))
        return error_set(err, ERROR_INVALID,
                         "the object is of another kind: apiVersion '%s', kind '%s'", version,
                         kind);
    if (json_path(self->applied, "metadata", "managedFields", NULL))
        return error_set(err, ERROR_INVALID, "metadata.managedFields must be nil");
    if (fields_of(self->arena, self->schema, self->applied, false, &self->applied_fields, &why) < 0)
        return error_set(err, ERROR_INTERNAL, "the applied object does not fit its schema: %s",
                         why.message);
    self->own.applies = true;
    known = managers_get(&self->managers, &self->own);
    self->last = known->fields;
    known->version = self->own.version;
    known->fields = managing_written(self, &self->applied_fields);
    return 0;
}

/* live with what is applied, without what this manager applied before and no manager has any more. */
static cJSON *managing_merge(const struct managing *self, struct field_set *ret_fields)
{
    struct field_set *sets = arena_array(self->arena, struct field_set, self->managers.len + 1);
    struct field_set held;
    cJSON *merged =
        fields_merge(self->arena, self->schema, &self->live_fields, &self->applied_fields);
    size_t len = 0;

    for (size_t i = 0; i < self->managers.len; i++) {
        if (str_equal(self->managers.items[i].version, self->own.version))
            sets[len++] = self->managers.items[i].fields;
    }
    held = field_set_union(self->arena, sets, len);
    fields_prune(self->arena, self->schema, merged, &self->last, &held);
    (void)!fields_of(self->arena, self->schema, merged, true, ret_fields, NULL);
    return merged;
}

/* The annotation of client-side apply goes on saying what was applied. */
static void managing_refresh_annotation(const struct managing *self, cJSON *object)
{
    const cJSON *annotations = json_path(object, "metadata", "annotations", NULL);
    cJSON *copy;

    if (!str_equal(self->own.name, "kubectl") || !*json_get_string(annotations, LAST_APPLIED))
        return;
    copy = arena_own(self->arena, json_copy(self->applied), json_free);
    json_remove((cJSON *)(uintptr_t)json_path(copy, "metadata", "annotations", NULL), LAST_APPLIED);
    json_set_string((cJSON *)(uintptr_t)annotations, LAST_APPLIED,
                    arena_printf(self->arena, "%s\n", json_text(self->arena, copy, NULL)));
}

int managed_fields_apply(struct arena *arena, const struct managed_fields_write *write,
                         const cJSON *live, const cJSON *applied, bool force, cJSON **ret,
                         const cJSON **ret_status, struct error *err)
{
    struct managing self = managing_of(arena, write);
    struct field_set fields;
    struct manager *own;

    self.applied = applied;
    int r = managing_read_live(&self, live, err);
    if (r == 0)
        r = managing_read_applied(&self, err);
    if (r < 0)
        return r;

    cJSON *merged = managing_merge(&self, &fields);
    const struct fields_change change = managing_compare(&self, &self.live_fields, &fields);

    *ret_status = force ? NULL : managing_conflicts(&self, &change.changed);
    if (*ret_status)
        return error_set(err, ERROR_CONFLICT, "other managers have fields with other values");
    managing_take(&self, &change);
    own = managers_find(&self.managers, &self.own);
    own->fields = managing_managed(&self, &own->fields);
    if (!json_equal(merged, self.live))
        own->time = self.now;
    managing_refresh_annotation(&self, merged);
    managing_set(&self, merged);
    *ret = merged;
    return 0;
}
