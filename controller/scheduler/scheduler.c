#include "controller/scheduler/scheduler.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/names.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/workload/task_workload_manifest.h"

const char *const SCHEDULER_NAMES[] = { "round-robin", "priority", "least-loaded", NULL };

const struct scheduler *scheduler_by_name(const char *name)
{
    static const struct scheduler *const ALL[] = { &SCHEDULER_ROUND_ROBIN, &SCHEDULER_PRIORITY,
                                                   &SCHEDULER_LEAST_LOADED };

    for (size_t i = 0; i < ARRAY_LEN(ALL); i++) {
        if (str_equal(ALL[i]->name, name))
            return ALL[i];
    }
    return NULL;
}

static bool strings_have(const struct str_list *list, const char *value)
{
    for (size_t i = 0; i < list->len; i++) {
        if (str_equal(list->items[i], value))
            return true;
    }
    return false;
}

static bool type_fits(const struct task_spec *task, const struct candidate *candidate)
{
    enum proplet_type type = candidate->proplet->spec.type;

    switch (task->preferred_proplet_type) {
    case PREFER_K8S:
        return type == PROPLET_K8S;
    case PREFER_EXTERNAL:
        return type == PROPLET_EXTERNAL;
    default:
        return true;
    }
}

static bool labels_fit(const cJSON *wanted, const cJSON *labels)
{
    json_for_each (label, wanted) {
        if (!str_equal(json_string(json_get(labels, label->string), NULL),
                       json_string(label, NULL)))
            return false;
    }
    return true;
}

static bool has_capability(const struct candidate *candidate, const char *capability)
{
    const struct proplet_external *external = candidate->proplet->spec.external;

    if (external && strings_have(&external->capabilities, capability))
        return true;

    char label[sizeof(LABEL_CAPABILITY_PREFIX) + 64];
    size_t len = strlen(capability);
    if (len > 63)
        return false;
    memcpy(label, LABEL_CAPABILITY_PREFIX, sizeof(LABEL_CAPABILITY_PREFIX) - 1);
    memcpy(label + sizeof(LABEL_CAPABILITY_PREFIX) - 1, capability, len + 1);
    return json_get(candidate->labels, label) != NULL;
}

static bool capabilities_fit(const struct str_list *wanted, const struct candidate *candidate)
{
    for (size_t i = 0; i < wanted->len; i++) {
        if (!has_capability(candidate, wanted->items[i]))
            return false;
    }
    return true;
}

static bool device_type_fits(const struct str_list *wanted, const struct candidate *candidate)
{
    const struct proplet_external *external = candidate->proplet->spec.external;

    return !wanted->len ||
           (external && external->device_type && strings_have(wanted, external->device_type));
}

/* A Task that is pinned to it is not kept from it, as no other Proplet can run it: its start is refused,
 * and it fails with what is wrong. */
static bool dialect_fits(const struct task_spec *task, const struct candidate *candidate)
{
    return !task->beyond_embedded || task_pinned_proplet(task) ||
           proplet_dialect(&candidate->proplet->spec) != DIALECT_EMBEDDED;
}

/* A pod that is ready may not have reached the broker yet, and hears nothing; a Job of its own does
 * not ask it. Of several devices one that is heard will do, whatever the other pods are. */
static bool is_ready(const struct candidate *candidate, const struct task_spec *task)
{
    if (candidate->proplet->spec.type != PROPLET_K8S || task_workload_is_for(task))
        return candidate->ready;
    if (proplet_is_indexed(&candidate->proplet->spec))
        return candidate->device_count > 0;
    return candidate->ready && candidate->connected;
}

static bool is_less_used(const struct candidate_device *a, const struct candidate_device *b)
{
    return a->active != b->active ? a->active < b->active : a->total < b->total;
}

const char *schedule_device(const struct task_spec *task, const struct candidate *candidate)
{
    const struct candidate_device *best = candidate->devices;

    if (!candidate->device_count || task_workload_is_for(task))
        return NULL;
    for (size_t i = 1; i < candidate->device_count; i++) {
        if (is_less_used(&candidate->devices[i], best))
            best = &candidate->devices[i];
    }
    return best->client_id;
}

static bool has_capacity(const struct candidate *candidate)
{
    const struct proplet_external *external = candidate->proplet->spec.external;

    return !external || !external->max_tasks.set || candidate->active < external->max_tasks.value;
}

bool task_fits_until(int64_t need_s, int64_t close_us, int64_t now_us)
{
    return !need_s || !close_us || need_s <= (close_us - now_us) / 1000000;
}

enum schedule_filter schedule_filter(const struct task_spec *task,
                                     const struct candidate *candidate)
{
    static const struct proplet_selector ANY = { 0 };
    const struct proplet_selector *selector =
        task->proplet_selector ? task->proplet_selector : &ANY;

    if (!str_is_empty(selector->proplet_id) && !str_equal(selector->proplet_id, candidate->name))
        return FILTER_NAME;
    if (!type_fits(task, candidate))
        return FILTER_TYPE;
    if (!labels_fit(selector->match_labels, candidate->labels))
        return FILTER_LABELS;
    if (!device_type_fits(&selector->match_device_types, candidate))
        return FILTER_DEVICE_TYPE;
    if (!capabilities_fit(&selector->match_capabilities, candidate))
        return FILTER_CAPABILITIES;
    if (!dialect_fits(task, candidate))
        return FILTER_DIALECT;
    if (candidate->proplet->spec.unschedulable)
        return FILTER_CORDONED;
    if (candidate->closed)
        return FILTER_CLOSED;
    if (!task_fits_until(task->need_s, candidate->close_us, candidate->now_us))
        return FILTER_TOO_SHORT;
    if (!is_ready(candidate, task))
        return FILTER_NOT_READY;
    if (!has_capacity(candidate))
        return FILTER_CAPACITY;
    return FILTER_PASSED;
}

#define MAX_REFUSAL 1024
/* A message names at most three values of a list, and at most 64 bytes of each. */
#define MAX_VALUES 3
#define MAX_VALUE_BYTES 64

/* The values of one list of a Task, for a message; a label is "key=value". */
struct wishes {
    struct arena *arena;
    const char *text;
    size_t len;
};

static void add_wish(struct wishes *wishes, const char *value)
{
    if (wishes->len++ < MAX_VALUES)
        wishes->text =
            arena_printf(wishes->arena, "%s%s%.*s", wishes->text, wishes->len > 1 ? ", " : "",
                         (int)str_utf8_cut(value, strlen(value), MAX_VALUE_BYTES), value);
}

/* "label a=b", "one of the labels a=b, c=d, e=f and 2 more" */
static const char *wishes_text(const struct wishes *wishes, const char *one, const char *many)
{
    if (wishes->len <= 1)
        return arena_printf(wishes->arena, "%s %s", one, wishes->text);
    return arena_printf(wishes->arena, "%s %s%s", many, wishes->text,
                        wishes->len > MAX_VALUES
                            ? arena_printf(wishes->arena, " and %zu more", wishes->len - MAX_VALUES)
                            : "");
}

static const char *labels_text(struct arena *arena, const cJSON *labels)
{
    struct wishes wishes = { arena, "", 0 };

    json_for_each (label, labels)
        add_wish(&wishes, arena_printf(arena, "%s=%s", label->string, json_string(label, "")));
    return wishes_text(&wishes, "label", "one of the labels");
}

static const char *strings_text(struct arena *arena, const struct str_list *list, const char *one,
                                const char *many)
{
    struct wishes wishes = { arena, "", 0 };

    for (size_t i = 0; i < list->len; i++)
        add_wish(&wishes, list->items[i]);
    return wishes_text(&wishes, one, many);
}

const char *schedule_filter_text(struct arena *arena, const struct task_spec *task,
                                 enum schedule_filter filter, size_t count)
{
    const struct proplet_selector *selector = task->proplet_selector;
    const char *lack = count == 1 ? "lacks" : "lack";
    const char *are = count == 1 ? "is" : "are";

    switch (filter) {
    case FILTER_NAME:
        return arena_printf(arena, "%s not the selected propletId", are);
    case FILTER_TYPE:
        return arena_printf(arena, "%s not of type %s", are,
                            task->preferred_proplet_type == PREFER_K8S ? "k8s" : "external");
    case FILTER_LABELS:
        return arena_printf(arena, "%s %s", lack, labels_text(arena, selector->match_labels));
    case FILTER_DEVICE_TYPE:
        return arena_printf(
            arena, "%s not of %s", are,
            strings_text(arena, &selector->match_device_types, "device type", "a device type of"));
    case FILTER_CAPABILITIES:
        return arena_printf(arena, "%s %s", lack,
                            strings_text(arena, &selector->match_capabilities, "capability",
                                         "one of the capabilities"));
    case FILTER_DIALECT:
        return arena_printf(arena, "%s embedded and cannot run it", are);
    case FILTER_CORDONED:
        return arena_printf(arena, "%s cordoned", are);
    case FILTER_CLOSED:
        return arena_printf(arena, "%s closed", are);
    case FILTER_TOO_SHORT:
        return count == 1 ? "closes too early" : "close too early";
    case FILTER_NOT_READY:
        return arena_printf(arena, "%s not ready", are);
    default:
        return arena_printf(arena, "%s at maxTasks", are);
    }
}

static const char *refusal_message(struct arena *arena, const struct task_spec *task,
                                   const size_t counts[SCHEDULE_FILTERS], size_t len)
{
    struct buf buf = BUF_INIT(MAX_REFUSAL);
    const char *separator = ":";
    bool ok = len == 1 ? buf_append_string(&buf, "the only Proplet does not fit")
                       : buf_printf(&buf, "none of %zu Proplets fits", len);

    for (size_t i = FILTER_NAME; i < SCHEDULE_FILTERS; i++) {
        if (!counts[i])
            continue;
        const char *who = len == 1 ? "it" : arena_printf(arena, "%zu", counts[i]);
        ok =
            ok && buf_printf(&buf, "%s %s %s", separator, who,
                             schedule_filter_text(arena, task, (enum schedule_filter)i, counts[i]));
        separator = ",";
    }
    const char *message = arena_strdup(arena, ok ? buf_string(&buf) : "no Proplet fits");
    buf_release(&buf);
    return message;
}

const char *scheduler_absence(struct arena *arena, const char *name, const struct proplet *proplet)
{
    const struct connection_config *connection = proplet->spec.connection_config;
    const cJSON *ready = condition_get(proplet->status.conditions, "Ready");
    char since[RFC3339_LEN];

    if (proplet->spec.type == PROPLET_EXTERNAL && connection && connection->client_id &&
        (!ready || reason_of(json_string(json_get(ready, "reason"), "")) == REASON_FIRST_HEARTBEAT))
        return arena_printf(
            arena, "Proplet '%s' has sent no heartbeat yet: client id '%s' on channel '%s/%s'",
            name, connection->client_id, connection->domain_id, connection->channel_id);
    if (proplet->status.offline_since_us)
        return arena_printf(arena, "Proplet '%s' is Offline since %s", name,
                            rfc3339_format(proplet->status.offline_since_us, since));
    return arena_printf(arena, "Proplet '%s' is not ready", name);
}

static const struct candidate *find_candidate(const struct schedule_context *context,
                                              const char *name)
{
    for (size_t i = 0; i < context->len; i++) {
        if (str_equal(context->candidates[i].name, name))
            return &context->candidates[i];
    }
    return NULL;
}

static struct schedule_refusal refuse(struct arena *arena, const struct task_spec *task,
                                      const struct schedule_context *context,
                                      const size_t counts[SCHEDULE_FILTERS])
{
    const char *name = task->proplet_selector ? task->proplet_selector->proplet_id : NULL;
    const struct candidate *pinned = str_is_empty(name) ? NULL : find_candidate(context, name);

    if (!context->len)
        return (struct schedule_refusal){ REASON_NO_PROPLET, "the namespace has no Proplet" };
    if (!str_is_empty(name) && !pinned)
        return (struct schedule_refusal){
            REASON_NO_PROPLET, arena_printf(arena, "Proplet '%s' does not exist", name)
        };
    if (pinned && counts[FILTER_CLOSED])
        return (struct schedule_refusal){ REASON_UNAVAILABLE,
                                          arena_printf(arena, "Proplet '%s' is closed", name) };
    if (pinned && counts[FILTER_NOT_READY])
        return (struct schedule_refusal){
            REASON_OFFLINE, pinned->absence
                                ? pinned->absence
                                : arena_printf(arena, "Proplet '%s' is not connected", name)
        };

    const char *message = refusal_message(arena, task, counts, context->len);
    if (context->len == 1 && counts[FILTER_NOT_READY] && context->candidates[0].absence)
        message = context->candidates[0].absence;
    return (struct schedule_refusal){ counts[FILTER_CAPACITY] ? REASON_NO_CAPACITY
                                                              : REASON_NO_CANDIDATES,
                                      message };
}

/* The first name after the last selected one; context->len if there is none. The candidates are in
 * name order. */
static size_t next_index(const struct schedule_context *context)
{
    size_t low = 0;
    size_t high = context->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(context->candidates[middle].name, context->last_selected) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct candidate *scheduler_pick(const struct scheduler *scheduler, struct arena *arena,
                                       const struct task_spec *task,
                                       const struct schedule_context *context,
                                       struct schedule_refusal *ret_refusal)
{
    size_t counts[SCHEDULE_FILTERS] = { 0 };
    struct schedule_context scored = *context;
    const struct candidate *best = NULL;
    double lowest = 0;

    if (context->known) {
        *ret_refusal = *context->known;
        return NULL;
    }
    scored.next = next_index(context);
    for (size_t i = 0; i < context->len; i++) {
        enum schedule_filter filter = schedule_filter(task, &context->candidates[i]);
        counts[filter]++;
        if (filter != FILTER_PASSED)
            continue;

        double score = scheduler->score(&scored, i);
        if (!best || score < lowest) {
            best = &context->candidates[i];
            lowest = score;
        }
    }
    if (!best)
        *ret_refusal = refuse(arena, task, context, counts);
    return best;
}

/* Distance around the circle of names, in 0 … 1. */
static double distance(const struct schedule_context *context, size_t index)
{
    return (double)((index + context->len - context->next) % context->len) / (double)context->len;
}

const struct scheduler SCHEDULER_ROUND_ROBIN = { .name = "round-robin", .score = distance };

static double load(const struct schedule_context *context, size_t index)
{
    const struct candidate *candidate = &context->candidates[index];
    const struct proplet_external *external = candidate->proplet->spec.external;
    double capacity = SCHEDULER_DEFAULT_CAPACITY;

    if (external && external->max_tasks.set && external->max_tasks.value > 0)
        capacity = (double)external->max_tasks.value;
    if (candidate->device_count)
        capacity *= (double)candidate->device_count;
    return (double)candidate->active / capacity;
}

const struct scheduler SCHEDULER_LEAST_LOADED = { .name = "least-loaded", .score = load };
const struct scheduler SCHEDULER_PRIORITY = { .name = "priority", .score = load };
