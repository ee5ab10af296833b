/* Proplets as a module of the process. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/cache/indexes.h"
#include "controller/proplet/proplet_availability.h"
#include "controller/proplet/proplet_pods.h"
#include "controller/shared/census.h"
#include "controller/shared/device_plane.h"
#include "controller/workload/workload.h"

static struct metric PROPLETS = {
    .type = METRIC_GAUGE,
    .name = "propeller_proplets",
    .help = "Number of Proplets of each type in each phase.",
    .labels = { "type", "phase" },
};

static struct metric AVAILABILITY = {
    .type = METRIC_GAUGE,
    .name = "propeller_proplets_availability",
    .help = "Number of Proplets with a status.availability in each state.",
    .labels = { "state" },
};

/* The phases of type external, and then those of type k8s, for each state. */
#define CLASSES_OF_STATE ((size_t)2 * PROPLET_PHASES)

static size_t state_of(const cJSON *object)
{
    const char *state =
        json_string(json_path(object, "status", "availability", "state", NULL), NULL);

    for (size_t i = AVAILABILITY_OPEN; state && i < AVAILABILITY_STATES; i++) {
        if (str_equal(AVAILABILITY_STATE_NAMES[i], state))
            return i;
    }
    return AVAILABILITY_UNSET;
}

static size_t class_of(const cJSON *object)
{
    const char *type = json_string(json_path(object, "spec", "type", NULL), "");
    size_t class = state_of(object) * CLASSES_OF_STATE + census_phase(object, PROPLET_PHASE_NAMES);

    return str_equal(type, PROPLET_TYPE_NAMES[PROPLET_K8S]) ? PROPLET_PHASES + class : class;
}

static void report(const size_t *counts)
{
    size_t of_phase[CLASSES_OF_STATE] = { 0 };
    size_t of_state[AVAILABILITY_STATES] = { 0 };

    for (size_t i = 0; i < AVAILABILITY_STATES * CLASSES_OF_STATE; i++) {
        of_phase[i % CLASSES_OF_STATE] += counts[i];
        of_state[i / CLASSES_OF_STATE] += counts[i];
    }
    for (size_t i = 0; i < PROPLET_PHASES; i++) {
        metric_set(&PROPLETS, (double)of_phase[i], PROPLET_TYPE_NAMES[PROPLET_EXTERNAL],
                   PROPLET_PHASE_NAMES[i], NULL);
        metric_set(&PROPLETS, (double)of_phase[PROPLET_PHASES + i], PROPLET_TYPE_NAMES[PROPLET_K8S],
                   PROPLET_PHASE_NAMES[i], NULL);
    }
    for (size_t i = AVAILABILITY_OPEN; i < AVAILABILITY_STATES; i++)
        metric_set(&AVAILABILITY, (double)of_state[i], AVAILABILITY_STATE_NAMES[i], NULL);
}

static const char *phase_of(size_t class)
{
    return PROPLET_PHASE_NAMES[class % PROPLET_PHASES];
}

static const struct module_census CENSUS = { class_of, AVAILABILITY_STATES *CLASSES_OF_STATE,
                                             report, phase_of };

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_PROPLET, .project = project_proplet, .unread = UNREAD_OF_PROPLET },
      indexes_add_proplet },
    { { .kind = &KIND_PROPLET }, indexes_add_proplet_label },
    { { .kind = &KIND_DEPLOYMENT,
        .label_selector = WORKLOAD_SELECTOR,
        .project = project_workload },
      NULL },
    { { .kind = &KIND_STATEFULSET,
        .label_selector = WORKLOAD_SELECTOR,
        .project = project_workload },
      NULL },
    { { .kind = &KIND_POD, .label_selector = WORKLOAD_SELECTOR, .project = project_pod },
      indexes_add_proplet_pod },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_PROPLET, proplet_map_proplet, NULL },
    { &KIND_DEPLOYMENT, proplet_map_workload, NULL },
    { &KIND_STATEFULSET, proplet_map_workload, NULL },
    { &KIND_POD, proplet_map_pod, NULL },
    { .kind = NULL },
};

static int proplet_create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    const struct device_plane *plane = device_plane_of(host);
    struct proplet_deps *deps = arena_new(host->arena, struct proplet_deps);

    *deps = (struct proplet_deps){
        .settings = host->settings,
        .clock = host->clock,
        .timeline = host->timeline,
        .tasks = module_host_informer(host, &KIND_TASK),
        .proplets = module_host_informer(host, &KIND_PROPLET),
        .deployments = module_host_informer(host, &KIND_DEPLOYMENT),
        .statefulsets = module_host_informer(host, &KIND_STATEFULSET),
        .pods = module_host_informer(host, &KIND_POD),
        .fleet = plane->fleet,
        .brake = plane->brake,
        .budget = plane->budget,
        .availabilities = plane->availabilities,
        .openings = plane->openings,
        .placements = plane->placements,
        .attempts = plane->attempts,
        .bridge = plane->bridge,
        .mailbox = plane->mailbox,
        .task_queue = module_host_queue(host, &KIND_TASK),
        .queue = module_host_queue(host, &KIND_PROPLET),
    };
    if (host->settings->debug_endpoint)
        health_add_page(host->health, "/debug/proplets", proplet_debug_page, deps);
    proplet_metrics_begin();
    *ret = deps;
    return 0;
}

static void proplet_started_leading(void *self)
{
    proplet_availability_fill(self);
}

const struct module PROPLET_MODULE = {
    .name = "proplet",
    .kind = &KIND_PROPLET,
    .workers = 2,
    .caches = CACHES,
    .sources = SOURCES,
    .census = &CENSUS,
    .create = proplet_create,
    .started_leading = proplet_started_leading,
    .reconcile = proplet_reconcile,
};
