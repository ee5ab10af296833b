#include "common/kube/watch_internal.h"

#include <assert.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/status.h"

int watch_keep(watch_project_fn *project, cJSON *tree, const struct kube_kind *kind,
               struct kube_object **ret, struct error *err)
{
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(tree, "metadata");

    if (!metadata)
        return error_set(err, ERROR_INVALID, "no object with metadata");
    json_remove(metadata, "managedFields");
    if (project)
        project(tree);
    return kube_object_create_with(tree, kind, ret, err);
}

static int check_version(const char *version, struct error *err)
{
    if (str_is_empty(version))
        return error_set(err, ERROR_INVALID, "no metadata.resourceVersion");
    if (strlen(version) > WATCH_MAX_VERSION)
        return error_set(err, ERROR_INVALID, "metadata.resourceVersion is over %d bytes",
                         WATCH_MAX_VERSION);
    return 0;
}

/* The tree was parsed for this alone, so it may be changed. */
static int keep(const struct watch_machine *machine, const cJSON *tree, struct kube_object **ret,
                struct error *err)
{
    int r = watch_keep(machine->options.project, (cJSON *)(uintptr_t)tree, machine->options.kind,
                       ret, err);
    if (r < 0)
        return r;

    assert(*ret);
    r = check_version((*ret)->resource_version, err);
    if (r < 0)
        kube_object_unref(TAKE(*ret));
    return r;
}

static void begin_set(struct watch_machine *machine)
{
    if (machine->in_set)
        return;
    machine->in_set = true;
    machine->sink(machine->ctx, WATCH_INIT, NULL, NULL);
}

/* Uids in the text of one object: its own, those of its owners. More than some nobody has. */
#define MAX_UIDS 16
#define MAX_UID 64

/* The text is not readable as a tree, so its uid is looked for among all that it holds. A wrong one
 * keeps an object that is gone until the next list, a missed one would drop what the program keeps
 * for an object that is there. */
static void keep_unreadable(struct watch_machine *machine, const char *text, size_t len)
{
    static const char KEY[] = "\"uid\":\"";
    const char *end = text + len;
    char uid[MAX_UID + 1];

    for (int i = 0; i < MAX_UIDS; i++) {
        const char *at = memmem(text, (size_t)(end - text), KEY, strlen(KEY));
        if (!at)
            return;
        text = at + strlen(KEY);
        const char *quote = memchr(text, '"', (size_t)(end - text));
        if (!quote || quote - text > MAX_UID)
            continue;
        memcpy(uid, text, (size_t)(quote - text));
        uid[quote - text] = '\0';
        machine->sink(machine->ctx, WATCH_INIT_KEEP, NULL, uid);
    }
}

/* Of the object that the text begins with: a member that is an object; NULL: none. key: as it stands in
 * the text, with its quotes and colon. For text that has too many levels for the parser. */
static const char *find_object(const char *text, size_t len, const char *key, size_t *ret_len)
{
    const char *end = text + len;
    const char *found = NULL;
    bool in_string = false;
    size_t depth = 0;

    for (const char *at = text; at < end; at++) {
        if (in_string) {
            in_string = *at != '"';
            at += *at == '\\' && at + 1 < end;
        } else if (*at == '"') {
            if (depth == 1 && (size_t)(end - at) > strlen(key) && !memcmp(at, key, strlen(key)) &&
                at[strlen(key)] == '{')
                found = at + strlen(key);
            in_string = true;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if ((*at == '}' || *at == ']') && --depth == 1 && found) {
            *ret_len = (size_t)(at + 1 - found);
            return found;
        }
    }
    return NULL;
}

/* An object that is being deleted need not be readable: to remove its finalizer takes its metadata alone. NULL:
 * it is not being deleted, or not even that can be read. */
static struct kube_object *keep_metadata(const struct watch_machine *machine, struct arena *arena,
                                         const char *text, size_t len)
{
    struct kube_object *object = NULL;
    const cJSON *metadata = NULL;
    struct error err = { 0 };

    text = find_object(text, len, "\"metadata\":", &len);
    if (!text || json_parse(arena, text, len, &metadata, &err) < 0 ||
        str_is_empty(json_string(json_get(metadata, "deletionTimestamp"), NULL)))
        return NULL;

    cJSON *tree = json_object(arena);
    json_set_copy(tree, "metadata", metadata);
    return keep(machine, tree, &object, &err) < 0 ? NULL : object;
}

static int on_item(struct watch_machine *machine, struct arena *arena, const char *text, size_t len)
{
    struct error why = { 0 };
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    const struct json_reading reading = { .unread = machine->unread_of_item,
                                          .texts = machine->options.kind->texts };
    const cJSON *tree = NULL;

    begin_set(machine);
    if (!text) {
        log_warn("an object is larger than the limit and is omitted", "resource", machine->resource,
                 "bytes", LOG_INT((int64_t)len), "limit", LOG_INT(WATCH_MAX_ITEM), NULL);
        machine->sink(machine->ctx, WATCH_INIT_KEEP, NULL, NULL);
        return 0;
    }
    if (json_parse_with(arena, text, len, &reading, &tree, &why) < 0 ||
        keep(machine, tree, &object, &why) < 0) {
        log_warn("an object cannot be read and is omitted", "resource", machine->resource, "error",
                 ERROR_TEXT(&why), NULL);
        object = keep_metadata(machine, arena, text, len);
        if (!object) {
            keep_unreadable(machine, text, len);
            return 0;
        }
    }
    machine->sink(machine->ctx, WATCH_INIT_APPLY, object, NULL);
    return 0;
}

static int on_envelope(struct watch_machine *machine, struct arena *arena, const char *text,
                       size_t len, struct error *err)
{
    const cJSON *list = NULL;

    int r = json_parse(arena, text, len, &list, err);
    if (r < 0)
        return r;

    const char *version = json_string(json_path(list, "metadata", "resourceVersion", NULL), "");
    const char *page = json_string(json_path(list, "metadata", "continue", NULL), "");
    r = check_version(version, err);
    if (r < 0)
        return r;
    if (strlen(page) > WATCH_MAX_TOKEN)
        return error_set(err, ERROR_INVALID, "metadata.continue is over %u bytes", WATCH_MAX_TOKEN);

    begin_set(machine);
    machine->reply.complete = true;
    if (!machine->set_version)
        watch_set_string(&machine->set_version, version);
    watch_set_string(&machine->page, *page ? page : NULL);
    if (machine->page)
        return 0;

    watch_set_string(&machine->version, machine->set_version);
    machine->in_set = false;
    watch_no_problem(machine);
    machine->sink(machine->ctx, WATCH_INIT_DONE, NULL, machine->version);
    return 0;
}

static void tell(struct watch_machine *machine, enum watch_event_type type,
                 struct kube_object *object, const char *version)
{
    machine->reply.told = true;
    machine->must_tell = false;
    watch_no_problem(machine);
    watch_set_string(&machine->version, version);
    machine->sink(machine->ctx, type, object, machine->version);
}

static int on_change(struct watch_machine *machine, enum watch_event_type type, const cJSON *tree,
                     struct error *err)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;

    int r = keep(machine, tree, &object, err);
    if (r < 0)
        return r;
    tell(machine, type, object, object->resource_version);
    return 0;
}

/* A version that goes back is a lagging server's: what was told is not untold. */
static int on_bookmark(struct watch_machine *machine, const cJSON *tree, struct error *err)
{
    const char *version = json_string(json_path(tree, "metadata", "resourceVersion", NULL), "");

    int r = check_version(version, err);
    if (r < 0)
        return r;
    if (kube_version_compare(version, machine->version) >= 0)
        tell(machine, WATCH_BOOKMARK, NULL, version);
    return 0;
}

/* The stream's status was 200, so this is where a late refusal comes, 410 above all. */
static int on_refusal(const cJSON *status, struct error *err)
{
    const char *reason = json_string(json_get(status, "reason"), "");
    bool is_gone = str_equal(reason, "Expired") || str_equal(reason, "Gone");
    int64_t code = json_int(json_get(status, "code"), 500);

    return kube_status_error(err,
                             is_gone                   ? 410
                             : code > 0 && code < 1000 ? (int)code
                                                       : 500,
                             status);
}

static int on_event(struct watch_machine *machine, const cJSON *event, struct error *err)
{
    const char *type = json_string(json_get(event, "type"), "");
    const cJSON *object = json_get(event, "object");

    if (str_equal(type, "ADDED") || str_equal(type, "MODIFIED"))
        return on_change(machine, WATCH_APPLY, object, err);
    if (str_equal(type, "DELETED"))
        return on_change(machine, WATCH_DELETE, object, err);
    if (str_equal(type, "BOOKMARK"))
        return on_bookmark(machine, object, err);
    log_warn("unknown type of watch event, ignored", "resource", machine->resource, "type", type,
             NULL);
    return 0;
}

/* Of an event that cannot be read. */
static void tell_deleting(struct watch_machine *machine, struct arena *arena, const char *text,
                          size_t len)
{
    static const char GONE[] = "{\"type\":\"DELETED\",";
    bool is_gone = len > strlen(GONE) && !memcmp(text, GONE, strlen(GONE));
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;

    text = find_object(text, len, "\"object\":", &len);
    if (text)
        object = keep_metadata(machine, arena, text, len);
    if (object)
        machine->sink(machine->ctx, is_gone ? WATCH_DELETE : WATCH_APPLY, object, machine->version);
}

static int on_document(struct watch_machine *machine, struct arena *arena, const char *text,
                       size_t len, struct error *err)
{
    const struct json_reading reading = { .unread = machine->unread_of_event,
                                          .texts = machine->texts_of_event };
    struct error why = { 0 };
    const cJSON *event = NULL;

    if (!text)
        return error_set(err, ERROR_TOO_LARGE, "an event of %zu bytes is over the limit of %u", len,
                         WATCH_MAX_ITEM);

    int r = json_parse_with(arena, text, len, &reading, &event, &why);
    if (r == 0 && str_equal(json_string(json_get(event, "type"), ""), "ERROR"))
        return on_refusal(json_get(event, "object"), err);
    if (r == 0)
        r = on_event(machine, event, &why);
    if (r < 0) {
        log_warn("watch event not readable, listing again after this stream", "resource",
                 machine->resource, "error", ERROR_TEXT(&why), NULL);
        machine->reply.list_next = true;
        tell_deleting(machine, arena, text, len);
    }
    return 0;
}

int watch_on_part(void *ctx, enum json_part part, const char *text, size_t len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct watch_machine *machine = ctx;

    switch (part) {
    case JSON_PART_ITEM:
        return on_item(machine, arena, text, len);
    case JSON_PART_ENVELOPE:
        return on_envelope(machine, arena, text, len, err);
    case JSON_PART_DOCUMENT:
        break;
    }
    return on_document(machine, arena, text, len, err);
}
