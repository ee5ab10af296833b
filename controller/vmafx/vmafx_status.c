#include "controller/vmafx/vmafx_status.h"

#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/kube/guarded_patch.h"

int vmafx_status_read(struct arena *arena, const struct json_struct *table,
                      const struct kube_object *object, void *ret, struct error *err)
{
    const cJSON *status = json_get(kube_object_json(arena, object), "status");
    int r = status ? json_decode(arena, table, status, ret, err) : 0;

    return r < 0 ? error_wrap(err, "status") : 0;
}

/* Members of `to` that `from` has not or otherwise, and null for those that `to` lacks. of: members that count;
 * NULL: all. */
static cJSON *changes(struct arena *arena, const cJSON *from, const cJSON *to, const cJSON *of)
{
    cJSON *ret = json_object(arena);

    json_for_each (member, to) {
        if ((!of || json_get(of, member->string)) &&
            !json_equal(json_get(from, member->string), member))
            json_set_copy(ret, member->string, member);
    }
    json_for_each (member, from) {
        if ((!of || json_get(of, member->string)) && !json_get(to, member->string))
            json_set(ret, member->string, cJSON_CreateNull());
    }
    return ret;
}

static void set_unkept(struct vmafx_note *note, struct arena *arena, const cJSON *members)
{
    free(note->unkept);
    note->unkept = json_len(members) ? xstrdup(json_text(arena, members, NULL)) : NULL;
}

/* A reply that cannot be read says nothing. */
static void look_at_reply(struct arena *arena, const struct vmafx_write *write,
                          struct vmafx_note *note, const cJSON *to, const cJSON *sent,
                          const cJSON *reply)
{
    void *status = arena_alloc(arena, 1, write->table->size);
    struct error err = { 0 };

    if (json_decode(arena, write->table, json_get(reply, "status"), status, &err) == 0)
        set_unkept(note, arena, changes(arena, json_encode(arena, write->table, status), to, sent));
}

/*
 * The API server ignores a uid in a merge patch of a status, so the patch tests it. It names the version only where
 * there is no status yet: the object that holds its members must not replace one that another writer made meanwhile.
 */
static const cJSON *make_patch(struct arena *arena, const cJSON *object, const cJSON *members)
{
    struct json_patch *patch;

    if (json_get(object, "status")) {
        patch = json_patch_create(arena, object);
        json_patch_test(patch, "/metadata/uid",
                        json_copy(json_path(object, "metadata", "uid", NULL)));
    } else {
        patch = guarded_patch_create(arena, object, "status");
    }
    json_for_each (member, members) {
        const char *pointer = arena_printf(arena, "/status/%s", member->string);

        if (cJSON_IsNull(member))
            json_patch_remove(patch, pointer);
        else
            json_patch_set(patch, pointer, json_copy(member));
    }
    return json_patch_operations(patch);
}

int vmafx_status_write(struct reconcile *rc, const struct vmafx_write *write,
                       struct vmafx_note *note, bool *ret_written, struct error *err)
{
    const cJSON *to = json_encode(rc->arena, write->table, write->is);
    cJSON *members = changes(rc->arena, json_encode(rc->arena, write->table, write->was), to, NULL);
    cJSON *reply = NULL;

    *ret_written = false;
    if (!json_len(members) || str_equal(json_text(rc->arena, members, NULL), note->unkept))
        return 0;

    const cJSON *object = kube_object_json(rc->arena, write->object);
    int r = kube_patch(rc->client, rc->arena, write->kind, &rc->name, KUBE_STATUS, KUBE_PATCH_JSON,
                       make_patch(rc->arena, object, members), &reply, err);
    if (r < 0)
        return error_wrap(err, "write status");
    look_at_reply(rc->arena, write, note, to, members, reply);
    informer_observed(write->informer, reply);
    *ret_written = true;
    return 0;
}
