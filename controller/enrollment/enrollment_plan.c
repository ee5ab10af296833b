#include "controller/enrollment/enrollment_plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/reasons.h"
#include "common/base/map.h"
#include "common/kube/conditions.h"

/* Texts of the metadata of a device; its tags and totalMemoryBytes are apart. */
static const char *const TEXTS[] = { "description", "location", "ip",      "environment",
                                     "os",          "hostname", "cpuArch", "propletVersion",
                                     "wasmRuntime" };

static const char *clean_text(struct arena *arena, const char *text)
{
    char *ret = arena_strndup(arena, text, strnlen(text, ENROLLMENT_MAX_TEXT));

    for (char *at = ret; *at; at++) {
        if (*at < ' ' || *at > '~' || strchr("\"\\<>&", *at))
            *at = '?';
    }
    return ret;
}

static bool has_text(const cJSON *array, const char *text)
{
    json_for_each (item, array) {
        if (str_equal(json_string(item, NULL), text))
            return true;
    }
    return false;
}

static void clean_tags(struct arena *arena, const cJSON *tags, const struct str_list *wanted,
                       cJSON *ret)
{
    if (!json_len(tags))
        return;

    cJSON *list = json_set_array(ret, "tags");

    for (size_t i = 0; i < wanted->len && i < ENROLLMENT_MAX_TAGS; i++) {
        if (has_text(tags, wanted->items[i]))
            json_add_string(list, wanted->items[i]);
    }
    json_for_each (tag, tags) {
        const char *text = clean_text(arena, json_string(tag, ""));

        if (json_len(list) < ENROLLMENT_MAX_TAGS && *text && !has_text(list, text))
            json_add_string(list, text);
    }
}

const cJSON *enrollment_clean(struct arena *arena, const cJSON *metadata,
                              const struct str_list *wanted)
{
    cJSON *ret = json_object(arena);

    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        const char *text = json_string(json_get(metadata, TEXTS[i]), NULL);

        if (text)
            json_set_string(ret, TEXTS[i], clean_text(arena, text));
    }
    clean_tags(arena, json_get(metadata, "tags"), wanted, ret);
    if (json_int(json_get(metadata, "totalMemoryBytes"), 0) > 0)
        json_set_int(ret, "totalMemoryBytes", json_int(json_get(metadata, "totalMemoryBytes"), 0));
    return ret;
}

/* The list as it is made. kept has the values that are stored, fresh those that would be written. */
struct listing {
    struct arena *arena;
    const struct enrollment_observed *observed;
    const struct enrollment_spec *spec;
    const struct str_list *wanted; /* tags */
    struct map *live;              /* client id -> struct heard_device */
    struct map *listed;            /* client ids */
    size_t limit, len;
    struct pending_device *kept, *fresh;
    bool has_changed; /* more than times and what listed devices say */
    bool overflow;
    bool is_due; /* a heartbeat is so much later than its stored time */
    int64_t look_us;
};

static void look_at(struct listing *listing, int64_t time_us)
{
    if (!listing->look_us || time_us < listing->look_us)
        listing->look_us = time_us;
}

static bool is_wanted(const struct listing *listing, const char *client_id, const char *channel_id,
                      const cJSON *metadata)
{
    const struct enrollment_observed *observed = listing->observed;

    if (observed->older || !enrollment_takes(listing->spec, client_id, channel_id) ||
        observed->has_proplet(observed->ctx, channel_id, client_id))
        return false;
    for (size_t i = 0; i < listing->wanted->len; i++) {
        if (!has_text(json_get(metadata, "tags"), listing->wanted->items[i]))
            return false;
    }
    return true;
}

/* false: it is not listed, because nothing was received of it for long. */
static bool note_times(struct listing *listing, const struct pending_device *kept,
                       const struct pending_device *fresh)
{
    int64_t forget_us =
        (listing->spec->forget_after_seconds.set ? listing->spec->forget_after_seconds.value
                                                 : ENROLLMENT_DEFAULT_FORGET_SECONDS) *
        1000000;

    if (fresh->last_seen_us + forget_us <= listing->observed->now_us)
        return false;
    look_at(listing, fresh->last_seen_us + forget_us);
    /* stored times are whole seconds */
    if (fresh->last_seen_us - kept->last_seen_us < 1000000 &&
        json_equal(fresh->metadata, kept->metadata))
        return true;
    listing->is_due |= listing->observed->now_us - kept->last_seen_us >= ENROLLMENT_REFRESH_US;
    look_at(listing, kept->last_seen_us + ENROLLMENT_REFRESH_US);
    return true;
}

static void list_device(struct listing *listing, const struct pending_device *kept,
                        const struct pending_device *fresh)
{
    if (listing->len == listing->limit) {
        listing->overflow = true;
        return;
    }
    if (!note_times(listing, kept, fresh))
        return;
    listing->kept[listing->len] = *kept;
    listing->fresh[listing->len] = *fresh;
    map_set(listing->listed, fresh->client_id, &listing->fresh[listing->len++]);
}

static void list_stored(struct listing *listing, const struct pending_device *stored)
{
    const struct heard_device *live = map_get(listing->live, stored->client_id);
    struct pending_device fresh = *stored;

    if (map_get(listing->listed, stored->client_id))
        return;
    if (live && live->metadata)
        fresh.metadata = enrollment_clean(listing->arena, live->metadata, listing->wanted);
    if (live && live->last_us > stored->last_seen_us)
        fresh.last_seen_us = live->last_us;
    if (!is_wanted(listing, stored->client_id, stored->channel_id, fresh.metadata))
        return;
    listing->has_changed |= fresh.metadata && !stored->metadata;
    list_device(listing, stored, &fresh);
}

static void list_heard(struct listing *listing, const struct heard_device *heard)
{
    struct pending_device fresh = { .client_id = heard->client_id,
                                    .channel_id = heard->channel_id,
                                    .first_seen_us = heard->first_us,
                                    .last_seen_us = heard->last_us };

    if (map_get(listing->listed, heard->client_id))
        return;
    if (heard->metadata)
        fresh.metadata = enrollment_clean(listing->arena, heard->metadata, listing->wanted);
    if (is_wanted(listing, heard->client_id, heard->channel_id, fresh.metadata))
        list_device(listing, &fresh, &fresh);
}

static int by_first_heartbeat(const void *left, const void *right)
{
    const struct heard_device *const *a = left, *const *b = right;

    if ((*a)->first_us != (*b)->first_us)
        return (*a)->first_us < (*b)->first_us ? -1 : 1;
    return strcmp((*a)->client_id, (*b)->client_id);
}

static void list_all(struct listing *listing)
{
    const struct enrollment_observed *observed = listing->observed;
    const struct json_objects *stored = &observed->enrollment.status.pending;
    const struct pending_device *items = stored->items;
    const struct heard_device **heard =
        arena_array(listing->arena, const struct heard_device *, observed->heard_len + 1);
    bool is_same;

    for (size_t i = 0; i < observed->heard_len; i++) {
        heard[i] = &observed->heard[i];
        map_set(listing->live, heard[i]->client_id, (void *)(uintptr_t)heard[i]);
    }
    qsort(heard, observed->heard_len, sizeof(struct heard_device *), by_first_heartbeat);
    for (size_t i = 0; i < stored->len; i++)
        list_stored(listing, &items[i]);
    is_same = listing->len == stored->len;
    for (size_t i = 0; i < observed->heard_len; i++)
        list_heard(listing, heard[i]);
    listing->has_changed |= !is_same || listing->len != stored->len;
}

struct ready {
    enum condition_status status;
    enum reason reason;
    const char *message;
};

/* false: it stays as it is. */
static bool plan_ready(struct arena *arena, const struct enrollment_observed *observed,
                       struct ready *ret)
{
    *ret = (struct ready){ CONDITION_FALSE, REASON_NONE, NULL };
    if (!observed->mqtt_configured) {
        ret->reason = REASON_NO_MQTT;
    } else if (observed->older) {
        ret->reason = REASON_CONFLICT;
        ret->message = arena_printf(arena, "the older Enrollment '%s' listens on the same channel",
                                    observed->older);
    } else if (observed->channel.refused) {
        ret->reason = REASON_SUBSCRIPTION_REFUSED;
    } else if (!observed->channel.since_ms) {
        ret->reason = REASON_BROKER_UNAVAILABLE;
        return observed->is_cut_off;
    } else if (observed->enrollment.spec.approval == APPROVAL_AUTOMATIC && observed->refusal) {
        ret->reason = REASON_NOT_ALLOWED;
        ret->message = observed->refusal;
    } else {
        *ret = (struct ready){ CONDITION_TRUE, REASON_LISTENING, NULL };
    }
    return true;
}

static bool set_condition(cJSON *conditions, const char *type, const struct ready *ready,
                          const struct enrollment_observed *observed)
{
    const char *message =
        reason_message(ready->reason, ready->status == CONDITION_TRUE, ready->message);
    const struct condition condition = { .type = type,
                                         .status = ready->status,
                                         .reason = reason_text(ready->reason),
                                         .message = message ? message : "",
                                         .observed_generation = observed->generation };

    return condition_set(conditions, &condition, observed->now_us);
}

static bool set_ready(struct arena *arena, const struct enrollment_observed *observed,
                      struct enrollment_status *status)
{
    cJSON *conditions = status->conditions
                            ? arena_own(arena, json_copy(status->conditions), json_free)
                            : json_array(arena);
    struct ready ready;

    if (!plan_ready(arena, observed, &ready))
        return false;
    status->conditions = conditions;
    return set_condition(conditions, "Ready", &ready, observed);
}

/* The Proplets that Automatic creates now. A device that was refused does not keep those behind it from their turn. */
static void plan_creations(struct arena *arena, const struct enrollment_observed *observed,
                           struct listing *listing, struct enrollment_plan *plan)
{
    const struct enrollment_spec *spec = listing->spec;
    int64_t quota = (spec->max_proplets.set ? spec->max_proplets.value : 0) - observed->enrolled;

    if (spec->approval != APPROVAL_AUTOMATIC || observed->refusal || quota <= 0 || !listing->len)
        return;
    if (observed->enrolled_lately >= ENROLLMENT_PER_MINUTE) {
        look_at(listing, observed->next_enrolled_us);
        return;
    }
    if (quota > ENROLLMENT_PER_MINUTE - (int64_t)observed->enrolled_lately)
        quota = ENROLLMENT_PER_MINUTE - (int64_t)observed->enrolled_lately;
    if (observed->refusals)
        quota = 1;
    for (size_t i = 0; i < listing->len && plan->create_len < (size_t)quota; i++) {
        const struct pending_device *device =
            &listing->fresh[(i + observed->refusals) % listing->len];
        const char *name = enrollment_proplet_name(arena, spec, device->client_id);

        if (str_is_dns_subdomain(name) && !observed->is_taken(observed->ctx, name))
            plan->create[plan->create_len++] = device;
    }
}

struct enrollment_plan enrollment_plan(struct arena *arena,
                                       const struct enrollment_observed *observed)
{
    static const struct str_list NONE = { 0 };
    const struct enrollment *enrollment = &observed->enrollment;
    int64_t limit =
        enrollment->spec.limit.set ? enrollment->spec.limit.value : ENROLLMENT_DEFAULT_LIMIT;
    struct listing listing = {
        .arena = arena,
        .observed = observed,
        .spec = &enrollment->spec,
        .wanted = enrollment->spec.match ? &enrollment->spec.match->tags : &NONE,
        .live = map_create(NULL),
        .listed = map_create(NULL),
        .limit = limit < ENROLLMENT_MAX_LIMIT ? (size_t)limit : ENROLLMENT_MAX_LIMIT,
    };
    struct enrollment_plan plan = { .status = enrollment->status };

    listing.kept = arena_array(arena, struct pending_device, listing.limit + 1);
    listing.fresh = arena_array(arena, struct pending_device, listing.limit + 1);
    list_all(&listing);
    map_destroy(listing.live);
    map_destroy(listing.listed);

    bool list_has_changed = listing.has_changed || listing.overflow != enrollment->status.overflow;
    bool has_changed = set_ready(arena, observed, &plan.status) ||
                       observed->enrolled != enrollment->status.enrolled_count ||
                       observed->generation != enrollment->status.observed_generation;
    plan.only_list = list_has_changed && !has_changed;
    if (has_changed || list_has_changed)
        plan.write = ENROLLMENT_WRITE_NOW;
    else if (listing.is_due)
        plan.write = ENROLLMENT_WRITE_REFRESH;
    plan_creations(arena, observed, &listing, &plan);
    plan.look_us = listing.look_us;
    plan.status.pending = (struct json_objects){ listing.fresh, listing.len };
    plan.status.pending_count = (int64_t)listing.len;
    plan.status.enrolled_count = observed->enrolled;
    plan.status.overflow = listing.overflow;
    plan.status.observed_generation = observed->generation;
    return plan;
}
