#include "controller/cache/indexes.h"

#include <string.h>

#include "common/api/names.h"
#include "common/api/proplet.h"
#include "common/api/task.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/object.h"
#include "controller/task/plan/task_dependencies_plan.h"
#include "controller/task/plan/task_run_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/task/plan/task_transition.h"

static const char *task_phase_text(const cJSON *json)
{
    return json_string(json_path(json, "status", "phase", NULL), TASK_PHASE_NAMES[TASK_PENDING]);
}

static const char *task_proplet(const cJSON *json)
{
    return json_string(json_path(json, "status", "assignedProplet", NULL), "");
}

static const char *namespace_of(const cJSON *json)
{
    return json_string(json_path(json, "metadata", "namespace", NULL), "");
}

static const cJSON *task_targets_of(const cJSON *json)
{
    return json_path(json, "status", "broadcastResults", NULL);
}

static bool target_is_open(const cJSON *target)
{
    const char *phase = json_string(json_get(target, "phase"), "");

    return str_equal(phase, TARGET_PHASE_NAMES[TARGET_SCHEDULED]) ||
           str_equal(phase, TARGET_PHASE_NAMES[TARGET_RUNNING]);
}

static bool is_active(const cJSON *json)
{
    const char *phase = task_phase_text(json);

    return str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]) ||
           (str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) &&
            (!str_is_empty(task_proplet(json)) || json_len(task_targets_of(json))));
}

void targets_open(const cJSON *task, target_fn *function, void *ctx)
{
    if (!is_active(task))
        return;
    json_for_each (target, task_targets_of(task)) {
        if (target_is_open(target))
            function(ctx, json_string(json_get(target, "proplet"), ""),
                     json_string(json_get(target, "clientId"), NULL));
    }
}

static const char *task_reason(const cJSON *json)
{
    return json_string(json_path(json, "status", "reason", NULL), "");
}

/* No Proplet could help. */
static bool waits_for_others(const cJSON *json)
{
    switch (reason_of(task_reason(json))) {
    case REASON_DEPENDENCIES:
    case REASON_DEPENDENCY_MISSING:
    case REASON_DEPENDENCY_CYCLE:
    case REASON_SCHEDULE:
    case REASON_SUSPENDED:
        return true;
    default:
        return false;
    }
}

static bool is_waiting(const cJSON *json)
{
    const char *phase = task_phase_text(json);

    return (str_equal(phase, TASK_PHASE_NAMES[TASK_PENDING]) && !waits_for_others(json)) ||
           (str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) && !is_active(json));
}

static void index_active(const cJSON *json, index_add_fn *add, void *ctx)
{
    if (is_active(json))
        add(ctx, "");
}

struct assigned {
    const char *ns;
    index_add_fn *add;
    void *ctx;
};

static void add_assigned(void *ctx, const char *proplet, const char *client_id UNUSED)
{
    const struct assigned *assigned = ctx;
    struct kube_name name;
    char key[KUBE_KEY_LEN];

    if (kube_name_set(&name, assigned->ns, proplet))
        assigned->add(assigned->ctx, kube_name_key(&name, key));
}

static void index_assigned(const cJSON *json, index_add_fn *add, void *ctx)
{
    struct assigned assigned = { .ns = namespace_of(json), .add = add, .ctx = ctx };

    if (is_active(json))
        add_assigned(&assigned, task_proplet(json), NULL);
    targets_open(json, add_assigned, &assigned);
}

static void index_owed(const cJSON *json, index_add_fn *add, void *ctx)
{
    struct assigned owed = { .ns = namespace_of(json), .add = add, .ctx = ctx };

    json_for_each (attempt, json_path(json, "status", "lostAttempts", NULL))
        add_assigned(&owed, json_string(json_get(attempt, "proplet"), ""), NULL);
}

static void index_waiting(const cJSON *json, index_add_fn *add, void *ctx)
{
    if (is_waiting(json))
        add(ctx, namespace_of(json));
}

static void index_dependents(const cJSON *json, index_add_fn *add, void *ctx)
{
    struct kube_name name;
    char key[KUBE_KEY_LEN];

    if (!str_equal(task_phase_text(json), TASK_PHASE_NAMES[TASK_PENDING]))
        return;
    json_for_each (item, json_path(json, "spec", "dependsOn", NULL)) {
        if (kube_name_set(&name, namespace_of(json), json_string(item, "")))
            add(ctx, kube_name_key(&name, key));
    }
}

static void index_owner(const cJSON *json, index_add_fn *add, void *ctx)
{
    const char *uid = kube_controller_uid(json);

    if (uid)
        add(ctx, uid);
}

static void index_member(const cJSON *task, index_add_fn *add, void *ctx)
{
    const char *proplet = json_string(json_path(task, "status", "assignedProplet", NULL), "");
    const char *uid = kube_controller_uid(task);
    char key[MEMBER_KEY_LEN];

    if (uid && !str_is_empty(proplet) && member_key(uid, proplet, key))
        add(ctx, key);
}

bool member_key(const char *owner_uid, const char *proplet, char ret[static MEMBER_KEY_LEN])
{
    int len = snprintf(ret, MEMBER_KEY_LEN, "%s/%s", owner_uid, proplet);

    return len >= 0 && len < MEMBER_KEY_LEN;
}

void indexes_add_task(struct store *store)
{
    store_add_index(store, INDEX_MEMBER, index_member);
    store_add_index(store, INDEX_ACTIVE, index_active);
    store_add_index(store, INDEX_ASSIGNED, index_assigned);
    store_add_index(store, INDEX_OWED, index_owed);
    store_add_index(store, INDEX_WAITING, index_waiting);
    store_add_index(store, INDEX_DEPENDENTS, index_dependents);
    store_add_index(store, INDEX_OWNER, index_owner);
}

static const char *connection_string(const cJSON *json, const char *key)
{
    return json_string(json_path(json, "spec", "connectionConfig", key, NULL), "");
}

bool proplet_channel_of(const cJSON *json, char ret[static CHANNEL_KEY_LEN])
{
    const char *domain = connection_string(json, "domainId");
    const char *channel = connection_string(json, "channelId");

    return !str_is_empty(domain) && !str_is_empty(channel) && channel_key(domain, channel, ret);
}

bool proplet_identity_of(const cJSON *json, const char *client_id, char ret[static FLEET_KEY_LEN])
{
    char channel[CHANNEL_KEY_LEN];

    return proplet_channel_of(json, channel) &&
           fleet_key(channel, client_id ? client_id : connection_string(json, "clientId"), ret);
}

void proplet_identities(const cJSON *json, identity_fn *function, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct proplet proplet = { 0 };
    char key[FLEET_KEY_LEN];

    if (!json_path(json, "spec", "k8s", "indexedClientIds",
                   NULL)) { /* most of them, without a decode */
        if (proplet_identity_of(json, NULL, key))
            function(ctx, connection_string(json, "clientId"), key);
        return;
    }
    if (proplet_decode(arena, json, &proplet, NULL) < 0)
        return;

    size_t count = proplet_device_count(&proplet.spec);
    for (size_t i = 0; i < count; i++) {
        const char *client_id = proplet_device_id(arena, &proplet.spec, i);
        if (proplet_identity_of(json, client_id, key))
            function(ctx, client_id, key);
    }
}

struct identity_index {
    index_add_fn *add;
    void *ctx;
};

static void add_identity(void *ctx, const char *client_id UNUSED, const char *identity)
{
    const struct identity_index *index = ctx;

    index->add(index->ctx, identity);
}

static void index_identity(const cJSON *json, index_add_fn *add, void *ctx)
{
    proplet_identities(json, add_identity, &(struct identity_index){ add, ctx });
}

static void index_channel(const cJSON *json, index_add_fn *add, void *ctx)
{
    char key[CHANNEL_KEY_LEN];

    if (proplet_channel_of(json, key))
        add(ctx, key);
}

enum proplet_dialect proplet_dialect_of(const cJSON *json)
{
    const char *dialect = json_string(json_path(json, "spec", "external", "dialect", NULL), "");

    return str_equal(dialect, PROPLET_DIALECT_NAMES[DIALECT_EMBEDDED]) ? DIALECT_EMBEDDED
                                                                       : DIALECT_STANDARD;
}

static void index_embedded(const cJSON *json, index_add_fn *add, void *ctx)
{
    if (proplet_dialect_of(json) == DIALECT_EMBEDDED)
        index_channel(json, add, ctx);
}

static void index_unheard(const cJSON *json, index_add_fn *add, void *ctx)
{
    const cJSON *conditions = json_path(json, "status", "conditions", NULL);
    const cJSON *ready = condition_get(conditions, "Ready");

    if (reason_of(json_string(json_get(ready, "reason"), "")) == REASON_FIRST_HEARTBEAT)
        index_channel(json, add, ctx);
}

static void index_client(const cJSON *proplet, index_add_fn *add, void *ctx)
{
    const char *client_id = connection_string(proplet, "clientId");

    if (!str_is_empty(client_id))
        add(ctx, client_id);
}

void indexes_add_proplet(struct store *store)
{
    store_add_index(store, INDEX_CLIENT, index_client);
    store_add_index(store, INDEX_IDENTITY, index_identity);
    store_add_index(store, INDEX_CHANNEL, index_channel);
    store_add_index(store, INDEX_EMBEDDED, index_embedded);
    store_add_index(store, INDEX_UNHEARD, index_unheard);
}

bool enrollment_channel_of(const cJSON *json, char ret[static CHANNEL_KEY_LEN])
{
    const cJSON *spec = json_get(json, "spec");
    const char *domain = json_string(json_get(spec, "domainId"), "");
    const char *channel = json_bool(json_get(spec, "channelPerDevice"), false)
                              ? &CHANNEL_EACH[1]
                              : json_string(json_get(spec, "channelId"), "");

    return *domain && *channel && channel_key(domain, channel, ret);
}

static void index_listen(const cJSON *json, index_add_fn *add, void *ctx)
{
    char channel[CHANNEL_KEY_LEN];

    if (enrollment_channel_of(json, channel))
        add(ctx, channel);
}

void indexes_add_enrollment(struct store *store)
{
    store_add_index(store, INDEX_LISTEN, index_listen);
}

/* The tree is the projection's to change; json_get reads it as const like everybody's. */
static cJSON *member(cJSON *object, const char *key)
{
    return (cJSON *)json_get(object, key);
}

void project_restart(cJSON *object)
{
    cJSON *metadata = member(object, "metadata");
    const cJSON *annotations = json_get(metadata, "annotations");
    const char *asked = json_string(json_get(annotations, ANNOTATION_RESTART), NULL);
    cJSON *kept = asked ? cJSON_CreateObject() : NULL;
    char digest[SHA256_HEX_LEN];

    if (asked && strlen(asked) > RESTART_VALUE_MAX)
        asked = sha256_hex(asked, strlen(asked), digest);
    if (kept)
        json_set_string(kept, ANNOTATION_RESTART, asked);
    json_remove(metadata, "annotations");
    if (kept)
        json_set(metadata, "annotations", kept);
}

/* Which kind it is the cache knows. */
const char *const UNREAD_OF_TASK[] = { "apiVersion",
                                       "kind",
                                       "spec.file",
                                       "spec.env",
                                       "spec.cliArgs",
                                       "spec.metadata",
                                       "status.results",
                                       "status.history",
                                       "status.latestMetrics",
                                       "status.error",
                                       "status.broadcastResults.results",
                                       "status.broadcastResults.error",
                                       NULL };
const char *const UNREAD_OF_PROPLET[] = { "apiVersion", "kind", "spec.connectionConfig.clientKey",
                                          NULL };

static void remove_unread(cJSON *object, const char *const *unread)
{
    for (; *unread; unread++)
        json_remove_path(object, *unread);
}

/* Of the labels the podSet stays. */
static void project_podset(cJSON *metadata)
{
    const char *podset = json_string(json_path(metadata, "labels", LABEL_PODSET, NULL), NULL);
    cJSON *kept = podset ? cJSON_CreateObject() : NULL;

    if (kept)
        json_set_string(kept, LABEL_PODSET, podset);
    json_set(metadata, "labels", kept);
}

void project_task(cJSON *object)
{
    remove_unread(object, UNREAD_OF_TASK);
    if (json_get(object, "metadata"))
        project_podset(member(object, "metadata"));
    project_restart(object);
}

/* Those that an Event tells; a person may have written a long reason. */
static cJSON *reclaim_annotations(const cJSON *annotations)
{
    cJSON *kept = cJSON_CreateObject();
    char reason[RECLAIM_REASON_MAX + 1];
    const char *text = json_string(json_get(annotations, ANNOTATION_RECLAIM_REASON), "");
    size_t len = str_utf8_cut(text, strlen(text), RECLAIM_REASON_MAX);

    memcpy(reason, text, len);
    reason[len] = '\0';
    json_set_string(kept, ANNOTATION_RECLAIM, "true");
    if (len)
        json_set_string(kept, ANNOTATION_RECLAIM_REASON, reason);
    json_set_copy(kept, ANNOTATION_RECLAIM_AT, json_get(annotations, ANNOTATION_RECLAIM_AT));
    return kept;
}

void project_proplet(cJSON *object)
{
    cJSON *metadata = member(object, "metadata");
    cJSON *reclaim = NULL;

    if (proplet_is_reclaimed(object))
        reclaim = reclaim_annotations(json_get(metadata, "annotations"));
    remove_unread(object, UNREAD_OF_PROPLET);
    json_remove(metadata, "annotations");
    if (reclaim)
        json_set(metadata, "annotations", reclaim);
}
