#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/cache/indexes.h"
#include "controller/enrollment/enrollment.h"
#include "controller/enrollment/enrollment_plan.h"
#include "controller/shared/device_plane.h"
#include "controller/shared/status_writer.h"

/* A connection that is down for less time, as when this process starts, is not reported. */
#define CUT_OFF_MS 10000
/* After the API server refused a Proplet. */
#define REFUSED_MS 60000
/* Writes of the list alone: as many at once, and one in this time for long. */
#define LIST_WRITES 60
#define LIST_SHARE_MS 10000

static struct metric PENDING = { .type = METRIC_GAUGE,
                                 .name = "propeller_enrollment_pending",
                                 .help = "Number of devices that wait for approval." };

/* --- notes ------------------------------------------------------------------------------------ */

struct note {
    size_t pending;
    unsigned refusals;  /* in a row */
    int64_t refused_ms; /* the last one; monotonic */
    char refusal[256];
    int64_t created_ms[ENROLLMENT_PER_MINUTE]; /* of the last Proplets; 0: none */
    size_t next;                               /* the oldest of them */
    int64_t list_paid_until_ms;                /* by LIST_SHARE_MS for each write of the list */
};

struct enrollment_notes {
    pthread_mutex_t lock; /* leaf: guards the rest */
    struct map *map;      /* struct note by name */
    size_t pending;
    int64_t cut_off_ms; /* the connection was down then, and has not been up since; 0: it is up */
};

struct enrollment_notes *enrollment_notes_create(void)
{
    struct enrollment_notes *notes = xcalloc(1, sizeof(*notes));

    notes->map = map_create(free);
    pthread_mutex_init(&notes->lock, NULL);
    return notes;
}

void enrollment_notes_destroy(struct enrollment_notes *notes)
{
    if (!notes)
        return;
    map_destroy(notes->map);
    pthread_mutex_destroy(&notes->lock);
    free(notes);
}

/* Locked. */
static struct note *note_of(struct enrollment_notes *notes, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];
    struct note *note = map_get(notes->map, kube_name_key(name, key));

    if (!note) {
        note = xcalloc(1, sizeof(*note));
        map_set(notes->map, key, note);
    }
    return note;
}

static void note_pending(struct enrollment_notes *notes, const struct kube_name *name, size_t count)
{
    pthread_mutex_lock(&notes->lock);
    struct note *note = note_of(notes, name);
    notes->pending += count - note->pending;
    note->pending = count;
    metric_set(&PENDING, (double)notes->pending, NULL);
    pthread_mutex_unlock(&notes->lock);
}

static void notes_drop(struct enrollment_notes *notes, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];

    note_pending(notes, name, 0);
    pthread_mutex_lock(&notes->lock);
    (void)map_remove(notes->map, kube_name_key(name, key));
    pthread_mutex_unlock(&notes->lock);
}

/* Returns 0 if the list may be written now, which counts; otherwise the time until it may. */
static int64_t note_list_write(struct enrollment_notes *notes, const struct kube_name *name,
                               int64_t now_ms)
{
    pthread_mutex_lock(&notes->lock);
    struct note *note = note_of(notes, name);
    if (note->list_paid_until_ms < now_ms)
        note->list_paid_until_ms = now_ms;
    int64_t wait_ms =
        note->list_paid_until_ms - now_ms - (int64_t)(LIST_WRITES - 1) * LIST_SHARE_MS;
    if (wait_ms <= 0)
        note->list_paid_until_ms += LIST_SHARE_MS;
    pthread_mutex_unlock(&notes->lock);
    return wait_ms > 0 ? wait_ms : 0;
}

/* A Proplet was created, or may have been. */
static void note_created(struct enrollment_notes *notes, const struct kube_name *name,
                         int64_t now_ms)
{
    pthread_mutex_lock(&notes->lock);
    struct note *note = note_of(notes, name);
    note->created_ms[note->next] = now_ms;
    note->next = (note->next + 1) % ENROLLMENT_PER_MINUTE;
    pthread_mutex_unlock(&notes->lock);
}

/* message NULL: it was created. */
static void note_creation(struct enrollment_notes *notes, const struct kube_name *name,
                          const char *message, int64_t now_ms)
{
    pthread_mutex_lock(&notes->lock);
    struct note *note = note_of(notes, name);
    note->refusals = message ? note->refusals + 1 : 0;
    note->refused_ms = now_ms;
    (void)snprintf(note->refusal, sizeof(note->refusal), "%s", message ? message : "");
    pthread_mutex_unlock(&notes->lock);
}

static struct note note_get(struct enrollment_notes *notes, const struct kube_name *name)
{
    pthread_mutex_lock(&notes->lock);
    struct note note = *note_of(notes, name);
    pthread_mutex_unlock(&notes->lock);
    return note;
}

/* Returns for how long the connection has been down; 0: it is up. */
static int64_t note_connection(struct enrollment_notes *notes, bool connected, int64_t now_ms)
{
    pthread_mutex_lock(&notes->lock);
    if (connected)
        notes->cut_off_ms = 0;
    else if (!notes->cut_off_ms)
        notes->cut_off_ms = now_ms;
    int64_t down_ms = connected ? 0 : now_ms - notes->cut_off_ms + 1;
    pthread_mutex_unlock(&notes->lock);
    return down_ms;
}

/* --- observe ---------------------------------------------------------------------------------- */

struct look {
    const struct enrollment_deps *deps;
    struct reconcile *rc;
    const struct enrollment_spec *spec;
};

static bool has_proplet(void *ctx, const char *channel_id, const char *client_id)
{
    const struct look *look = ctx;
    char channel[CHANNEL_KEY_LEN], key[FLEET_KEY_LEN];

    return channel_key(look->spec->domain_id, channel_id, channel) &&
           fleet_key(channel, client_id, key) &&
           store_count(informer_store(look->deps->proplets), INDEX_IDENTITY, key);
}

static bool is_taken(void *ctx, const char *proplet)
{
    const struct look *look = ctx;
    struct kube_name name;

    if (!kube_name_set(&name, look->rc->name.ns, proplet))
        return true;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(look->deps->proplets), &name);
    return object != NULL;
}

static const cJSON *metadata_of(const struct look *look, const char *channel, const char *client_id)
{
    struct fleet_device device;
    const cJSON *metadata = NULL;
    char key[FLEET_KEY_LEN];

    if (!fleet_key(channel, client_id, key))
        return NULL;
    fleet_get(look->deps->fleet, look->rc->arena, key, &device);
    if (device.metadata &&
        json_parse(look->rc->arena, device.metadata, strlen(device.metadata), &metadata, NULL) < 0)
        return NULL;
    return metadata;
}

static void observe_heard(const struct look *look, const char *channel,
                          struct enrollment_observed *ret)
{
    struct arena *arena = look->rc->arena;
    int64_t now_ms = clock_monotonic_ms(look->rc->clock);
    struct stranger_seen *seen;
    size_t len = strangers_list(fleet_strangers(look->deps->fleet), arena, channel, now_ms, &seen);
    struct heard_device *heard = arena_array(arena, struct heard_device, len + 1);
    char own[CHANNEL_KEY_LEN];

    for (size_t i = 0; i < len; i++) {
        const char *channel_id =
            look->spec->channel_per_device ? seen[i].client_id : look->spec->channel_id;

        if (!channel_key(look->spec->domain_id, channel_id, own))
            continue;
        heard[ret->heard_len++] =
            (struct heard_device){ .client_id = seen[i].client_id,
                                   .channel_id = channel_id,
                                   .first_us = ret->now_us - (now_ms - seen[i].first_ms) * 1000,
                                   .last_us = ret->now_us - (now_ms - seen[i].last_ms) * 1000,
                                   .metadata = metadata_of(look, own, seen[i].client_id) };
    }
    ret->heard = heard;
}

static const char *enrolled_key(struct arena *arena, const struct kube_name *name)
{
    return arena_printf(arena, "%s/%s", name->ns, label_value(arena, name->name));
}

static void observe_enrolled(const struct look *look, struct enrollment_observed *ret)
{
    struct object_list list =
        store_find(informer_store(look->deps->proplets), look->rc->arena, INDEX_ENROLLED,
                   enrolled_key(look->rc->arena, &look->rc->name));

    ret->enrolled = (int64_t)list.len;
    for (size_t i = 0; i < list.len; i++) {
        int64_t until_us = list.items[i]->created_us + ENROLLMENT_MINUTE_US;

        if (until_us <= ret->now_us)
            continue;
        ret->enrolled_lately++;
        if (!ret->next_enrolled_us || until_us < ret->next_enrolled_us)
            ret->next_enrolled_us = until_us;
    }
}

/* Also those that are deleted already, and whatever the clock of the API server says. */
static void observe_created(const struct note *note, int64_t now_ms,
                            struct enrollment_observed *ret)
{
    size_t lately = 0;
    int64_t first_ms = now_ms;

    for (size_t i = 0; i < ENROLLMENT_PER_MINUTE; i++) {
        int64_t created_ms = note->created_ms[i];

        if (!created_ms || created_ms + ENROLLMENT_MINUTE_US / 1000 <= now_ms)
            continue;
        lately++;
        if (created_ms < first_ms)
            first_ms = created_ms;
    }
    if (lately <= ret->enrolled_lately)
        return;
    ret->enrolled_lately = lately;
    ret->next_enrolled_us = ret->now_us + ENROLLMENT_MINUTE_US - (now_ms - first_ms) * 1000;
}

/* The oldest Enrollment of the channel, "<ns>/<name>"; NULL: this one. */
static const char *older_of(const struct look *look, const struct kube_object *object,
                            const char *channel)
{
    struct arena *arena = look->rc->arena;
    struct object_list list =
        store_find(informer_store(look->deps->enrollments), arena, INDEX_LISTEN, channel);
    const struct kube_object *oldest = object;

    for (size_t i = 0; i < list.len; i++) {
        if (kube_object_is_older(list.items[i], oldest))
            oldest = list.items[i];
    }
    return oldest == object ? NULL : kube_object_key(oldest, arena_alloc(arena, 1, KUBE_KEY_LEN));
}

static void observe_broker(const struct look *look, const char *channel,
                           struct enrollment_observed *ret)
{
    const struct enrollment_deps *deps = look->deps;
    int64_t now_ms = clock_monotonic_ms(look->rc->clock);
    char why[128];

    ret->mqtt_configured = deps->bridge != NULL;
    if (!deps->bridge)
        return;
    ret->channel = bridge_channel_state(deps->bridge, channel);

    bool connected = ret->channel.since_ms || bridge_connected(deps->bridge, why, sizeof(why));
    int64_t down_ms = note_connection(deps->notes, connected, now_ms);

    ret->is_cut_off = down_ms > CUT_OFF_MS;
    if (down_ms && !ret->is_cut_off)
        reconcile_again_after(look->rc, CUT_OFF_MS + 1 - down_ms);
}

static int observe(struct look *look, const struct kube_object *object, const cJSON *json,
                   struct enrollment_observed *ret, struct error *err)
{
    char channel[CHANNEL_KEY_LEN];
    int64_t now_ms = clock_monotonic_ms(look->rc->clock);
    int r = enrollment_decode(look->rc->arena, json, &ret->enrollment, err);
    if (r < 0)
        return r;
    if (!enrollment_channel_of(json, channel))
        return error_set(err, ERROR_INVALID, "spec: has no channel");

    look->spec = &ret->enrollment.spec;
    ret->generation = object->generation;
    ret->now_us = timeline_now_us(look->deps->timeline, NULL);
    ret->has_proplet = has_proplet;
    ret->is_taken = is_taken;
    ret->ctx = look;
    ret->older = older_of(look, object, channel);
    observe_broker(look, channel, ret);
    observe_heard(look, channel, ret);
    observe_enrolled(look, ret);

    struct note note = note_get(look->deps->notes, &look->rc->name);
    observe_created(&note, now_ms, ret);
    ret->refusals = note.refusals;
    if (note.refusals && now_ms - note.refused_ms < REFUSED_MS) {
        ret->refusal = arena_strdup(look->rc->arena, note.refusal);
        reconcile_again_after(look->rc, note.refused_ms + REFUSED_MS - now_ms);
    }
    return 0;
}

/* --- act -------------------------------------------------------------------------------------- */

/* The API server's word on a Proplet is kept, other errors are returned. */
static int create_proplet(const struct look *look, const struct pending_device *device,
                          struct error *err)
{
    struct arena *arena = look->rc->arena;
    const struct enrollment_identity identity = {
        .enrollment = look->rc->name.name,
        .name = enrollment_proplet_name(arena, look->spec, device->client_id),
        .ns = look->rc->name.ns,
        .channel_id = device->channel_id,
        .client_id = device->client_id,
    };
    cJSON *reply = NULL;

    note_created(look->deps->notes, &look->rc->name, clock_monotonic_ms(look->rc->clock));

    int r = kube_create(look->rc->client, arena, &KIND_PROPLET,
                        enrollment_proplet(arena, look->spec, &identity, false), &reply, err);

    if (r == -ERROR_FORBIDDEN || r == -ERROR_INVALID) {
        log_warn("the API server refuses a Proplet", "proplet", identity.name, "error",
                 err->message, NULL);
        note_creation(look->deps->notes, &look->rc->name, err->message,
                      clock_monotonic_ms(look->rc->clock));
        return 1;
    }
    if (r < 0)
        return error_wrap(err, "create Proplet '%s'", identity.name);
    log_info("Proplet created for a device", "proplet", identity.name, NULL);
    note_creation(look->deps->notes, &look->rc->name, NULL, 0);
    if (reply)
        informer_observed(look->deps->proplets, reply);
    return 0;
}

static int create_proplets(const struct look *look, const struct enrollment_plan *plan,
                           struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < plan->create_len && r == 0; i++)
        r = create_proplet(look, plan->create[i], err);
    reconcile_again_after(look->rc, 0); /* with the new Proplets, or the refusal */
    return r < 0 ? r : 0;
}

static int write_status(const struct look *look, const struct kube_object *object,
                        const cJSON *json, const struct enrollment_plan *plan, struct error *err)
{
    const struct refresh_limits limits = { .qps = look->deps->settings->refresh.qps };
    int64_t now_ms = clock_monotonic_ms(look->rc->clock);
    bool written;

    int64_t wait_ms = 0;

    if (plan->only_list)
        wait_ms = note_list_write(look->deps->notes, &look->rc->name, now_ms);
    else if (plan->write == ENROLLMENT_WRITE_REFRESH)
        wait_ms = refresh_budget_reserve(look->deps->budget, object->uid, false, &limits, now_ms) -
                  now_ms;
    if (wait_ms > 0) {
        reconcile_again_after(look->rc, wait_ms);
        return 0;
    }
    int r = status_write(look->rc, look->deps->enrollments, &KIND_ENROLLMENT, json,
                         enrollment_status_encode(look->rc->arena, &plan->status), &written, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return error_wrap(err, "write status");
    refresh_budget_release(look->deps->budget, object->uid);
    return 0;
}

int enrollment_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    struct look look = { .deps = self, .rc = rc };
    struct enrollment_observed observed = { 0 };
    struct error problem;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(look.deps->enrollments), &rc->name);

    if (!object || object->deleting) {
        notes_drop(look.deps->notes, &rc->name);
        return 0;
    }
    const cJSON *json = kube_object_json(rc->arena, object);
    int r = observe(&look, object, json, &observed, err);
    if (r < 0)
        return r;

    const struct enrollment_plan plan = enrollment_plan(rc->arena, &observed);

    int created = plan.create_len ? create_proplets(&look, &plan, err) : 0;
    if (plan.create_len && created >= 0)
        return 0; /* with the new Proplets, or the refusal, it looks again */
    note_pending(look.deps->notes, &rc->name, plan.status.pending.len);
    if (plan.look_us && plan.write != ENROLLMENT_WRITE_REFRESH && !plan.only_list)
        reconcile_again_after(rc, (plan.look_us - observed.now_us) / 1000 + 1);
    if (plan.write != ENROLLMENT_WRITE_NOTHING)
        r = write_status(&look, object, json, &plan, created < 0 ? &problem : err);
    return created < 0 ? created : r;
}

/* --- what wakes it ---------------------------------------------------------------------------- */

static void read_channel(struct arena *arena, const struct kube_object *object,
                         char ret[static CHANNEL_KEY_LEN])
{
    if (!object || !enrollment_channel_of(kube_object_json(arena, object), ret))
        ret[0] = '\0';
}

static void wake_listeners(const struct enrollment_deps *deps, struct arena *arena,
                           const char *channel, struct workqueue *queue)
{
    struct object_list list =
        store_find(informer_store(deps->enrollments), arena, INDEX_LISTEN, channel);

    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(queue, list.items[i]);
}

void enrollment_map_enrollment(void *self, struct kube_object *old, struct kube_object *current,
                               struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct enrollment_deps *deps = self;
    char before[CHANNEL_KEY_LEN], after[CHANNEL_KEY_LEN];

    read_channel(arena, old, before);
    read_channel(arena, current, after);
    workqueue_add_object(queue, current ? current : old);
    if (str_equal(before, after) && old && current && str_equal(old->uid, current->uid))
        return;
    if (deps->bridge && *after)
        bridge_channel_add(deps->bridge, after); /* first: a channel that stays is not left */
    if (deps->bridge && *before)
        bridge_channel_remove(deps->bridge, before);
    wake_listeners(deps, arena, before, queue);
    wake_listeners(deps, arena, after, queue);
}

static const char *label_of(struct arena *arena, const struct kube_object *object)
{
    const cJSON *labels =
        object ? json_path(kube_object_json(arena, object), "metadata", "labels", NULL) : NULL;

    return json_string(json_get(labels, LABEL_ENROLLMENT), "");
}

static void wake_maker(const struct enrollment_deps *deps, struct arena *arena, const char *ns,
                       const char *label, struct workqueue *queue)
{
    struct object_list list = store_list(informer_store(deps->enrollments), arena, ns);

    for (size_t i = 0; i < list.len && *label; i++) {
        if (str_equal(label_value(arena, list.items[i]->name), label))
            workqueue_add_object(queue, list.items[i]);
    }
}

void enrollment_map_proplet(void *self, struct kube_object *old, struct kube_object *current,
                            struct workqueue *queue)
{
    const struct enrollment_deps *deps = self;

    if (!store_count(informer_store(deps->enrollments), NULL, NULL))
        return;

    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_object *object = current ? current : old;
    const char *before = label_of(arena, old), *after = label_of(arena, current);
    char channel[CHANNEL_KEY_LEN];

    if (old && current && str_equal(old->uid, current->uid) && str_equal(before, after))
        return;
    wake_maker(deps, arena, object->ns, before, queue);
    wake_maker(deps, arena, object->ns, after, queue);
    if (!proplet_channel_of(kube_object_json(arena, object), channel))
        return;
    wake_listeners(deps, arena, channel, queue);
    channel[strcspn(channel, "/")] = '\0';
    wake_listeners(deps, arena, arena_printf(arena, "%s" CHANNEL_EACH, channel), queue);
}

/* --- the module ------------------------------------------------------------------------------- */

static void index_enrolled(const cJSON *json, index_add_fn *add, void *ctx)
{
    const cJSON *metadata = json_get(json, "metadata");
    const char *label = json_string(json_path(metadata, "labels", LABEL_ENROLLMENT, NULL), NULL);
    CLEANUP(arena_destroyp) struct arena *arena = label ? arena_create() : NULL;

    if (label)
        add(ctx,
            arena_printf(arena, "%s/%s", json_string(json_get(metadata, "namespace"), ""), label));
}

void indexes_add_enrolled(struct store *store)
{
    store_add_index(store, INDEX_ENROLLED, index_enrolled);
}

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_ENROLLMENT }, indexes_add_enrollment },
    { { .kind = &KIND_PROPLET }, indexes_add_enrolled },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_ENROLLMENT, enrollment_map_enrollment, NULL },
    { &KIND_PROPLET, enrollment_map_proplet, NULL },
    { .kind = NULL },
};

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    const struct device_plane *plane = device_plane_of(host);
    struct enrollment_deps *deps = arena_new(host->arena, struct enrollment_deps);

    *deps = (struct enrollment_deps){ .settings = host->settings,
                                      .timeline = host->timeline,
                                      .enrollments = module_host_informer(host, &KIND_ENROLLMENT),
                                      .proplets = module_host_informer(host, &KIND_PROPLET),
                                      .fleet = plane->fleet,
                                      .bridge = plane->bridge,
                                      .budget = plane->budget,
                                      .notes = enrollment_notes_create() };
    metric_set(&PENDING, 0, NULL);
    *ret = deps;
    return 0;
}

static void destroy(void *self)
{
    const struct enrollment_deps *deps = self;

    enrollment_notes_destroy(deps->notes);
}

const struct module ENROLLMENT_MODULE = {
    .name = "enrollment",
    .kind = &KIND_ENROLLMENT,
    .workers = 1,
    .caches = CACHES,
    .sources = SOURCES,
    .create = create,
    .reconcile = enrollment_reconcile,
    .destroy = destroy,
};
