/* The flags of the extension, its caches, and what wakes a ScheduledMachine. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "common/kube/conditions.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/machine/machine.h"
#include "controller/shared/census.h"
#include "controller/shared/options.h"

#define FLAG(flag, member)                                                                         \
    .name = (flag), .type = OPTION_BOOL, .offset = offsetof(struct machine_flags, member),         \
    .fallback = "false"
static const struct option FLAG_TABLE[] = {
    { FLAG("enable-scheduled-machines", is_enabled),
      .help = "reconcile the ScheduledMachines of 5spot.finos.org; requires Cluster API, "
              "crds/optional and rbac/scheduled-machines" },
    { FLAG("force-finalizer-on-timeout", force_release),
      .help = "release a deleted ScheduledMachine after 10 minutes, although objects of it are "
              "left" },
};

static int check(const struct controller_settings *settings, const void *own, struct error *err)
{
    const struct machine_flags *flags = own;

    if (flags->is_enabled && settings->namespaces.len)
        return error_set(err, ERROR_INVALID,
                         "--enable-scheduled-machines: not together with --namespace, since Nodes "
                         "belong to no namespace");
    return 0;
}

static const struct module_flags FLAGS = { FLAG_TABLE, ARRAY_LEN(FLAG_TABLE),
                                           sizeof(struct machine_flags), check };

/* --- caches ------------------------------------------------------------------------------------ */

/* A name that ends with a slash is a prefix. */
static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (str_equal(name, *list) || (str_has_suffix(*list, "/") && str_has_prefix(name, *list)))
            return true;
    }
    return false;
}

/* Of a map of annotations or labels all may go, and it stays: a patch adds to it. */
static void keep_members(cJSON *object, const char *const *kept)
{
    cJSON *next;

    for (cJSON *item = object ? object->child : NULL; item; item = next) {
        next = item->next;
        if (!is_one_of(item->string, kept))
            cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
    }
}

static cJSON *member(cJSON *object, const char *name)
{
    return (cJSON *)(uintptr_t)json_get(object, name);
}

static void keep_ready(cJSON *conditions)
{
    static const char *const KEPT[] = { "type", "status", "reason", "message", NULL };
    const cJSON *ready = condition_get(conditions, "Ready");
    cJSON *next;

    for (cJSON *item = conditions ? conditions->child : NULL; item; item = next) {
        next = item->next;
        if (item == ready)
            keep_members(item, KEPT);
        else
            cJSON_Delete(cJSON_DetachItemViaPointer(conditions, item));
    }
}

static void project_node(cJSON *object)
{
    static const char *const SPEC[] = { "providerID", "taints", "unschedulable", NULL };
    static const char *const STATUS[] = { "conditions", NULL };
    static const char *const KEYS[] = { SCHEDULEDMACHINE_GROUP "/", NODE_ANNOTATION_MACHINE,
                                        NODE_ANNOTATION_MACHINE_NS, NODE_ANNOTATION_CLUSTER, NULL };

    keep_members(member(object, "spec"), SPEC);
    keep_members(member(object, "status"), STATUS);
    keep_ready(member(member(object, "status"), "conditions"));
    keep_members(member(member(object, "metadata"), "annotations"), KEYS);
    keep_members(member(member(object, "metadata"), "labels"), KEYS);
}

static void project_machine(cJSON *object)
{
    static const char *const SPEC[] = { "providerID", "clusterName", NULL };
    static const char *const STATUS[] = { "nodeRef", "conditions", NULL };

    keep_members(member(object, "spec"), SPEC);
    keep_members(member(object, "status"), STATUS);
    keep_ready(member(member(object, "status"), "conditions"));
}

static void index_node(const cJSON *json, index_add_fn *add, void *ctx)
{
    const char *name = machine_node_name(json);

    if (!str_is_empty(name))
        add(ctx, name);
}

static void add_machine_indexes(struct store *store)
{
    store_add_index(store, INDEX_MACHINE_NODE, index_node);
}

static const char *const NODE_UNREAD[] = { "status.images", "status.addresses", "status.nodeInfo",
                                           "status.volumesAttached", NULL };
static const struct module_cache CACHES[] = {
    { { .kind = &KIND_SCHEDULEDMACHINE }, NULL },
    { { .kind = &KIND_MACHINE,
        .other = &KIND_MACHINE_V1BETA1,
        .label_selector = MACHINE_LABEL,
        .project = project_machine },
      add_machine_indexes },
    { { .kind = &KIND_NODE, .project = project_node, .unread = NODE_UNREAD }, NULL },
    { .add_indexes = NULL },
};

/* --- sources ----------------------------------------------------------------------------------- */

/* Without its version, which changes more often than what a turn reads. */
static const char *node_text(struct arena *arena, const struct kube_object *object)
{
    cJSON *copy = json_object(arena);

    if (!object)
        return "";
    json_set_copy(copy, "node", kube_object_json(arena, object));
    json_remove_path(copy, "node.metadata.resourceVersion");
    return json_text(arena, copy, NULL);
}

/* Through its Machine, which tenants cannot write. */
static void map_node(void *self, struct kube_object *old, struct kube_object *current,
                     struct workqueue *queue)
{
    const struct machine_deps *deps = self;
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct object_list machines =
        store_find(informer_store(deps->machines), arena, INDEX_MACHINE_NODE,
                   current ? current->name : old->name);

    if (!machines.len || str_equal(node_text(arena, old), node_text(arena, current)))
        return;
    for (size_t i = 0; i < machines.len; i++) {
        const struct kube_name name = kube_object_name(machines.items[i]);

        workqueue_add(queue, &name);
    }
}

/* A Machine has the name of its ScheduledMachine. */
static const struct module_source SOURCES[] = {
    { &KIND_SCHEDULEDMACHINE, map_self, NULL },
    { &KIND_MACHINE, map_self, NULL },
    { &KIND_NODE, map_node, NULL },
    { .kind = NULL },
};

/* --- census ------------------------------------------------------------------------------------ */

static size_t class_of(const cJSON *json)
{
    return machine_phase_of(json_string(json_path(json, "status", "phase", NULL), NULL));
}

static const char *phase_of(size_t class)
{
    return class == MACHINE_NEW ? "Pending" : MACHINE_PHASE_NAMES[class];
}

static void report(const size_t *counts)
{
    static struct metric machines = { .type = METRIC_GAUGE,
                                      .name = "fivespot_machines_by_phase",
                                      .help = "Number of ScheduledMachines in each phase.",
                                      .labels = { "phase" } };

    for (size_t i = MACHINE_NEW + 1; i < MACHINE_PHASES; i++)
        metric_set(&machines, (double)(counts[i] + (i == MACHINE_PENDING ? counts[0] : 0)),
                   MACHINE_PHASE_NAMES[i], NULL);
}

static const struct module_census CENSUS = { class_of, MACHINE_PHASES, report, phase_of };

static struct metric SERVED = { .type = METRIC_GAUGE,
                                .name = PRODUCT_METRICS "scheduled_machines_served",
                                .help = "1 while ScheduledMachines, Machines and Nodes can be "
                                        "watched, else 0." };

/* --- the module -------------------------------------------------------------------------------- */

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    struct machine_deps *deps = arena_new(host->arena, struct machine_deps);

    *deps = (struct machine_deps){ .objects = module_host_informer(host, &KIND_SCHEDULEDMACHINE),
                                   .machines = module_host_informer(host, &KIND_MACHINE),
                                   .nodes = module_host_informer(host, &KIND_NODE),
                                   .ns = host->ns,
                                   .flags = module_host_flags(host, &SCHEDULEDMACHINE_MODULE),
                                   .discovery = machine_discovery_create(host->clock),
                                   .notes = machine_notes_create() };
    *ret = deps;
    return 0;
}

static void destroy(void *self)
{
    struct machine_deps *deps = self;

    machine_discovery_destroy(deps->discovery);
    machine_notes_destroy(deps->notes);
}

const struct module SCHEDULEDMACHINE_MODULE = {
    .name = "scheduledmachine",
    .kind = &KIND_SCHEDULEDMACHINE,
    .extension = "scheduled-machines",
    .workers = 2,
    .flags = &FLAGS,
    .caches = CACHES,
    .sources = SOURCES,
    .census = &CENSUS,
    .served = &SERVED,
    .create = create,
    .reconcile = machine_reconcile,
    .destroy = destroy,
};
