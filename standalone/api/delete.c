#include "standalone/api/delete.h"

#include <string.h>

#include "common/base/str.h"
#include "standalone/api/options.h"
#include "standalone/api/read.h"
#include "standalone/api/stored.h"
#include "standalone/schema/object_meta.h"

/* Deletions of a collection whose writes share a sync; at most so many, of objects of about so many bytes. */
#define MAX_BATCH 256
#define MAX_BATCH_BYTES ((size_t)1 << 20)

/* What is to be done about one object, decided on it as it is. */
struct deletion {
    enum delete_outcome outcome; /* when the change is made */
    cJSON *object;               /* as delete_object gives it */
    struct kv_change *change;    /* NULL: none */
    size_t bytes;                /* of what was read */
};

static bool is_namespaces(const struct resource *resource)
{
    return str_equal(resource->storage, "core/namespaces");
}

/* As the plugin NamespaceLifecycle has them. */
static bool is_immortal(const struct resource *resource, const char *name)
{
    static const char *const NAMES[] = { "default", "kube-system", "kube-public" };

    for (size_t i = 0; i < ARRAY_LEN(NAMES) && is_namespaces(resource); i++) {
        if (str_equal(NAMES[i], name))
            return true;
    }
    return false;
}

static void plan(struct api *api, struct arena *arena, const struct resource *resource,
                 const struct kv_value *value, const struct delete_options *options,
                 struct kv_change *room, struct deletion *deletion)
{
    struct kv_change change = { .key = value->key, .expected = value->revision };
    cJSON *marked = NULL;

    switch (delete_plan(arena, deletion->object, options, clock_wall_us(api->clock), &marked)) {
    case DELETE_NOW:
        deletion->outcome = DELETE_DONE;
        break;
    case DELETE_NOTHING:
        deletion->outcome = DELETE_PENDING;
        return;
    case DELETE_MARK:
        deletion->outcome = DELETE_PENDING;
        deletion->object = marked;
        change.text = stored_text(arena, resource, arena_own(arena, json_copy(marked), json_free),
                                  &change.len);
        stored_set_version(marked, value->revision); /* until it is written */
        break;
    }
    if (options->dry_run)
        return;
    *room = change;
    deletion->change = room;
}

/* Any failure is final; else the change, which is in the room, is to be made, and settled. */
static void decide(struct api *api, struct arena *arena, const struct resource *resource,
                   const char *ns, const char *name, const struct delete_options *options,
                   struct kv_change *room, struct deletion *ret, struct error *err)
{
    struct kv_value value;
    cJSON *object = NULL;

    *ret = (struct deletion){ .outcome = DELETE_FAILED };

    int r = kv_get(api->kv, arena, stored_key(arena, resource, ns, name), 0, &value, err);
    if (r == 0)
        r = stored_tree(arena, resource, &value, 0, &object, err);
    if (r == -ERROR_NOT_FOUND)
        ret->outcome = DELETE_NOT_FOUND;
    if (r < 0)
        return;
    ret->object = object;
    ret->bytes = value.len;
    if (options->uid && !str_equal(options->uid, object_meta_text(object, "uid")))
        ret->outcome = DELETE_UID_DIFFERS;
    else if (options->resource_version &&
             !str_equal(options->resource_version, object_meta_text(object, "resourceVersion")))
        ret->outcome = DELETE_VERSION_DIFFERS;
    else if (is_immortal(resource, name))
        ret->outcome = DELETE_FORBIDDEN;
    else
        plan(api, arena, resource, &value, options, room, ret);
}

/* What came of the change; DELETE_FAILED with a conflict: to be decided anew. */
static void settle(struct deletion *deletion)
{
    const struct kv_change *change = deletion->change;

    if (!change)
        return;
    if (change->r == 0)
        stored_set_version(deletion->object, change->revision);
    else
        deletion->outcome = change->r == -ERROR_NOT_FOUND ? DELETE_NOT_FOUND : DELETE_FAILED;
}

/* DELETE_FAILED with a conflict: somebody else was faster. */
static enum delete_outcome try_delete(struct api *api, struct arena *arena,
                                      const struct resource *resource, const char *ns,
                                      const char *name, const struct delete_options *options,
                                      cJSON **ret_object, struct error *err)
{
    struct deletion deletion;
    struct kv_change change;

    *err = (struct error){ 0 };
    decide(api, arena, resource, ns, name, options, &change, &deletion, err);
    *ret_object = deletion.object;
    if (!deletion.change)
        return deletion.outcome;
    kv_write_all(api->kv, &change, 1);
    settle(&deletion);
    if (deletion.outcome == DELETE_FAILED)
        *err = change.err;
    return deletion.outcome;
}

enum delete_outcome delete_object(struct api *api, struct arena *arena,
                                  const struct resource *resource, const char *ns, const char *name,
                                  const struct delete_options *options, cJSON **ret_object,
                                  struct error *err)
{
    CLEANUP(turn_endp)
    struct turn turn = { .turns = &api->turns, .key = stored_key(arena, resource, ns, name) };
    bool waits = !options->resource_version && !options->dry_run;
    enum delete_outcome outcome;

    if (waits && turn_is_due(&turn))
        (void)turn_take(&turn);
    do {
        struct arena *own = arena_create(); /* what a try that was for nothing leaves is freed */

        outcome = try_delete(api, own, resource, ns, name, options, ret_object, err);
        if (outcome != DELETE_FAILED || err->code != ERROR_CONFLICT) {
            arena_adopt(arena, own);
            return outcome;
        }
        arena_destroy(own);
        *ret_object = NULL;
    } while (!waits || turn_take(&turn)); /* a version that was named is another one now */
    return outcome;
}

/* --- requests --------------------------------------------------------------------------------- */

static int reply_deleted(struct api_call *call, cJSON *object)
{
    cJSON *status = json_object(call->arena);
    const struct kube_kind *kind = &call->resource->kind;

    if (call->resource->returns_deleted)
        return present_object(call, 200, object);
    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_object(status, "metadata");
    json_set_string(status, "status", "Success");

    cJSON *details = json_set_object(status, "details");

    json_set_string(details, "name", call->route.name);
    if (*kind->group)
        json_set_string(details, "group", kind->group);
    json_set_string(details, "kind", kind->plural);
    json_set_string(details, "uid", object_meta_text(object, "uid"));
    return call_reply(call, 200, status);
}

/* rest.BeforeDelete, which names the kind instead of the resource. */
static int fail_precondition(struct api_call *call, const char *name, const char *what,
                             const char *wanted, const char *is, const char *meaning)
{
    struct kube_kind kind = call->resource->kind;

    /* Events are deleted as the core group has them, whichever way they were asked for. */
    if (str_equal(call->resource->storage, "core/events"))
        kind.group = "";

    const char *resource =
        *kind.group ? arena_printf(call->arena, "%s.%s", kind.kind, kind.group) : kind.kind;
    const char *message = arena_printf(
        call->arena,
        "Operation cannot be fulfilled on %s \"%s\": the %s in the precondition (%s) does not "
        "match the %s in record (%s). The object might have been %s",
        resource, name, what, wanted, what, is, meaning);

    return call_fail_kind(call, 409, "Conflict", &kind, name, message);
}

/* Whatever is not a deletion. */
static int refuse(struct api_call *call, enum delete_outcome outcome, const char *name,
                  const struct delete_options *options, const cJSON *object,
                  const struct error *err)
{
    switch (outcome) {
    case DELETE_NOT_FOUND:
        return call_fail_not_found(call, name);
    case DELETE_UID_DIFFERS:
        return fail_precondition(call, name, "UID", options->uid, object_meta_text(object, "uid"),
                                 "deleted and then recreated");
    case DELETE_VERSION_DIFFERS:
        return fail_precondition(call, name, "ResourceVersion", options->resource_version,
                                 object_meta_text(object, "resourceVersion"), "modified");
    case DELETE_FORBIDDEN:
        return call_fail_named(call, 403, "Forbidden", name,
                               "%s \"%s\" is forbidden: this namespace may not be deleted",
                               call_resource_name(call), name);
    default:
        return err->code == ERROR_CONFLICT ? call_fail_changed(call, name)
                                           : call_fail_store(call, err);
    }
}

int call_delete(struct api_call *call)
{
    struct delete_options options;
    struct error err = { 0 };
    cJSON *object;

    if (options_read_delete(call, &options) < 0 || call_check_name(call) < 0)
        return -1;

    enum delete_outcome outcome =
        delete_object(call->api, call->arena, call->resource, call->route.ns, call->route.name,
                      &options, &object, &err);

    if (outcome == DELETE_DONE)
        return reply_deleted(call, object);
    if (outcome == DELETE_PENDING)
        return present_object(call, options.orphan_dependents == 0 ? 202 : 200, object);
    return refuse(call, outcome, call->route.name, &options, object, &err);
}

/* --- collections ------------------------------------------------------------------------------ */

/* The list as it was before is the answer; of it only the text is kept, and the names. */
struct collection {
    struct api_call *call;
    struct list_writer answer;
    struct delete_options options;
    size_t prefix_len; /* of keys, before the name */
    const char **names;
    size_t len, room;
};

static void collection_release(struct collection *collection)
{
    list_writer_release(&collection->answer);
}
DEFINE_CLEANUP_OF(struct collection, collection_release)

static int take_listed(void *ctx, struct arena *arena, const struct kv_value *value, cJSON *tree)
{
    struct collection *collection = ctx;
    struct arena *kept = collection->call->arena;

    if (collection->len == collection->room) {
        size_t room = collection->room ? collection->room * 2 : 64;
        const char **names = arena_array(kept, const char *, room);

        if (collection->len)
            memcpy(names, collection->names, collection->len * sizeof(*names));
        collection->names = names;
        collection->room = room;
    }
    collection->names[collection->len++] = arena_strdup(kept, value->key + collection->prefix_len);
    return list_writer_add(&collection->answer, arena, value, tree);
}

static void forget_listed(void *ctx)
{
    struct collection *collection = ctx;

    collection->len = 0;
    list_writer_forget(&collection->answer);
}

static bool is_good(enum delete_outcome outcome)
{
    return outcome == DELETE_DONE || outcome == DELETE_PENDING || outcome == DELETE_NOT_FOUND;
}

/* What somebody changed in between goes alone. undecided: why there is no change. */
static int finish(struct collection *collection, struct arena *arena, struct deletion *deletion,
                  const char *name, const struct error *undecided)
{
    struct api_call *call = collection->call;
    struct error err;

    settle(deletion);
    err = deletion->change ? deletion->change->err : *undecided;
    if (deletion->outcome == DELETE_FAILED && err.code == ERROR_CONFLICT)
        deletion->outcome = delete_object(call->api, arena, call->resource, call->route.ns, name,
                                          &collection->options, &deletion->object, &err);
    if (is_good(deletion->outcome))
        return 0;
    return refuse(call, deletion->outcome, name, &collection->options, deletion->object, &err);
}

/* Those from the first one on: how many were; -1 after a refusal. Nothing is decided behind one that is refused. */
static int delete_batch(struct collection *collection, size_t first)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct api_call *call = collection->call;
    struct deletion *deletions = arena_array(arena, struct deletion, MAX_BATCH);
    struct kv_change *changes = arena_array(arena, struct kv_change, MAX_BATCH);
    size_t len = 0, changes_len = 0, bytes = 0;
    const char *const *names = collection->names + first;
    struct error err = { 0 };
    bool good = true;

    while (good && len < MAX_BATCH && first + len < collection->len && bytes < MAX_BATCH_BYTES) {
        struct deletion *deletion = &deletions[len];

        decide(call->api, arena, call->resource, call->route.ns, names[len], &collection->options,
               &changes[changes_len], deletion, &err);
        changes_len += deletion->change != NULL;
        bytes += deletion->bytes;
        good = is_good(deletion->outcome);
        len++;
    }
    kv_write_all(call->api->kv, changes, changes_len);
    for (size_t i = 0; i < len; i++) {
        if (finish(collection, arena, &deletions[i], names[i], &err) < 0)
            return -1;
    }
    return (int)len;
}

int call_delete_collection(struct api_call *call)
{
    CLEANUP(collection_releasep) struct collection collection = { .call = call };
    const struct list_taker taker = { take_listed, forget_listed, &collection };
    struct selection selection;
    struct list_end end;

    list_writer_begin(&collection.answer, call);
    collection.prefix_len = strlen(stored_key(call->arena, call->resource, call->route.ns, NULL));
    if (selection_read(call, &selection) < 0 ||
        options_read_delete(call, &collection.options) < 0 ||
        list_read(call, &selection, &taker, &end) < 0)
        return -1;
    for (size_t done = 0; done < collection.len;) {
        int r = delete_batch(&collection, done);

        if (r < 0)
            return r;
        done += (size_t)r;
    }
    return list_writer_end(&collection.answer, &end);
}
