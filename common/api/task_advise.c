/* Warnings about workloads: what runs, and is probably not what was meant. */
#include <ctype.h>
#include <string.h>

#include "common/api/module_reference.h"
#include "common/api/names.h"
#include "common/api/proplet.h"
#include "common/api/quantity.h"
#include "common/api/validate_internal.h"
#include "common/base/str.h"

static void advise(const struct spec_view *view, const char *field, const char *text)
{
    field_warning(view->validation->errors, spec_path(view, field), "%s", text);
}

static void advise_file(const struct spec_view *view, const struct task_spec *spec)
{
    /* The first twelve characters are the first nine bytes: magic, version. */
    static const char *const VERSIONS[] = { "AGFzbQEAAA", "AGFzbQ0AAQ" }; /* module, component */
    size_t len = spec->file ? strlen(spec->file) : 0;
    bool known = false;

    if (!len)
        return;
    if (len > VALIDATE_LARGE_WASM)
        advise(view, "file",
               "above 180 KiB client-side kubectl apply refuses it (256 KiB of annotations); "
               "kubectl apply --server-side and kubectl create work");
    for (size_t i = 0; i < ARRAY_LEN(VERSIONS); i++)
        known = known || str_has_prefix(spec->file, VERSIONS[i]);
    if (!known)
        advise(view, "file", "neither a WebAssembly module of version 1 nor a component");
    if (spec->preferred_proplet_type == PREFER_K8S && str_is_empty(spec->image_url))
        advise(view, "preferredPropletType",
               "without imageUrl no Job is made: the module goes to the Proplet's pod over MQTT");
}

/* As the API server wants those of containers. */
static bool is_usual_variable(const char *name)
{
    if (!*name || isdigit((unsigned char)*name))
        return false;
    for (; *name; name++) {
        if (!isalnum((unsigned char)*name) && !strchr("_.-", *name))
            return false;
    }
    return true;
}

static void advise_env(const struct spec_view *view, const struct task_spec *spec)
{
    json_for_each (variable, spec->env) {
        if (!is_usual_variable(variable->string)) {
            advise(view, "env",
                   "a name has other characters than letters, digits, _, . and -, or "
                   "begins with a digit");
            return;
        }
    }
}

static void advise_selector(const struct spec_view *view, const struct task_spec *spec)
{
    const struct proplet_selector *selector = spec->proplet_selector;

    if (!selector)
        return;
    advise_proplet_name(view, "propletSelector.propletId", selector->proplet_id);
    json_for_each (label, selector->match_labels) {
        if (!str_is_label_key(label->string) || !str_is_label_value(json_string(label, ""))) {
            advise(view, "propletSelector.matchLabels", "no Proplet can carry such a label");
            break;
        }
    }
    if (selector->match_device_types.len && spec->preferred_proplet_type == PREFER_K8S)
        advise(view, "propletSelector.matchDeviceTypes",
               "Proplets of type k8s have no device type: none will match");
}

/* The image is a container's, not a module that a device fetches. */
static bool may_be_a_job(const struct task_spec *spec)
{
    return !str_is_empty(spec->image_url) && !str_has_prefix(spec->image_url, "http://") &&
           !str_has_prefix(spec->image_url, "https://") &&
           spec->preferred_proplet_type != PREFER_EXTERNAL;
}

/* As the API server wants them of containers: its own, or "domain/name" of whole amounts. */
static const char *resource_problem(const cJSON *amount)
{
    static const char *const OWN[] = { "cpu", "memory", "ephemeral-storage", NULL };
    const char *name = amount->string;
    struct quantity quantity;

    if (!quantity_of(amount, &quantity))
        return "an amount is no quantity, which pods need";
    if (str_is_one_of(name, OWN) || str_has_prefix(name, "hugepages-"))
        return NULL;
    if (!strchr(name, '/') || str_has_prefix(name, "requests.") || !str_is_label_key(name))
        return "a name is no resource of a container, and its pod is refused: such as "
               "example.com/camera";
    return quantity.nano ? "an amount of a resource with a domain is not whole, and its pod is "
                           "refused"
                         : NULL;
}

void advise_resources(const struct spec_view *view, const char *field, const cJSON *amounts)
{
    json_for_each (amount, amounts) {
        const char *problem = resource_problem(amount);
        if (problem) {
            advise(view, field, problem);
            return;
        }
    }
}

static void advise_dependencies(const struct spec_view *view, const struct task_spec *spec)
{
    advise_duplicates(view, "dependsOn", &spec->depends_on);
    if (!spec->depends_on.len && spec->run_if != RUN_IF_UNSET)
        advise(view, "runIf", "without dependsOn it means nothing");
}

static void advise_times(const struct spec_view *view, const struct task_spec *spec)
{
    if (str_is_empty(spec->schedule) && !str_is_empty(spec->timezone))
        advise(view, "timezone", "without schedule it means nothing");
    if (spec->is_recurring && spec->daemon && task_concurrency_policy(spec) != CONCURRENCY_REPLACE)
        advise(view, "isRecurring",
               "a daemon never ends: without concurrencyPolicy Replace there is no second run");
    if (spec->is_recurring && spec->ttl_seconds_after_finished.set)
        advise(view, "ttlSecondsAfterFinished", "a recurring Task is never deleted by it");
    if (spec->is_recurring && spec->starting_deadline_seconds.set &&
        spec->starting_deadline_seconds.value < 10)
        advise(view, "startingDeadlineSeconds",
               "with less than 10 a run is missed whenever the controller is a little late");
    if (spec->is_recurring)
        return;
    if (spec->concurrency_policy != CONCURRENCY_UNSET)
        advise(view, "concurrencyPolicy", "without isRecurring it means nothing");
    if (spec->starting_deadline_seconds.set)
        advise(view, "startingDeadlineSeconds", "without isRecurring it means nothing");
}

static void advise_monitoring(const struct spec_view *view, const struct task_spec *spec)
{
    const struct monitoring_profile *profile = spec->monitoring_profile;
    int64_t ms;

    if (profile && profile->interval && str_to_duration_ms(profile->interval, &ms) &&
        (ms < 1000 || ms % 1000))
        advise(view, "monitoringProfile.interval",
               "devices take whole seconds, at least one: it is rounded");
}

/* What only one of the two ways to run a Task knows. */
static void advise_ways(const struct spec_view *view, const struct task_spec *spec)
{
    const struct resource_amounts *amounts = spec->resource_requirements;

    if (amounts && !may_be_a_job(spec))
        advise(view, "resourceRequirements", "devices do not limit a Task: only a Job has them");
    if (amounts && may_be_a_job(spec))
        advise_resources(view, "resourceRequirements.custom", amounts->custom);
    if (spec->broadcast && spec->lost_attempts_limit.set)
        advise(view, "lostAttemptsLimit",
               "a broadcast is not given to other Proplets: with broadcast it means nothing");
    if (spec->encrypted && may_be_a_job(spec))
        advise(view, "encrypted",
               "a Job runs the image as it is: with preferredPropletType external the Task goes to "
               "devices only");
}

/* Where only devices run the Task: a container image may leave out its registry. */
static void advise_reference(const struct spec_view *view, const struct task_spec *spec)
{
    struct module_reference reference;
    struct error err = { 0 };

    if (spec->preferred_proplet_type == PREFER_EXTERNAL && !str_is_empty(spec->image_url) &&
        !strstr(spec->image_url, "://") &&
        module_reference_parse(view->validation->arena, spec->image_url, &reference, &err) < 0)
        advise(view, "imageUrl", err.message);
}

/* Of the Task itself, or of the job that it is part of: which gives it to its Tasks. */
static int64_t retries_of(const struct spec_view *view, const struct task_spec *spec)
{
    const cJSON *limit = json_path(view->validation->object, "spec", "backoffLimit", NULL);

    return spec->backoff_limit.set ? spec->backoff_limit.value
                                   : json_int(limit, TASK_DEFAULT_BACKOFF_LIMIT);
}

static void advise_restarts(const struct spec_view *view, const struct task_spec *spec)
{
    bool on_failure = spec->restart_policy == RESTART_ON_FAILURE;

    if (spec->daemon && may_be_a_job(spec) && (on_failure || spec->restart_policy == RESTART_NEVER))
        advise(view, "restartPolicy",
               "in the cluster a daemon is a Deployment, which always restarts its pod");
    if (on_failure && retries_of(view, spec) == 0)
        advise(
            view, "restartPolicy",
            "OnFailure alone repeats nothing: backoffLimit is the number of retries, and it is 0");
}

static bool has_string(const struct str_list *strings, const char *value)
{
    for (size_t i = 0; i < strings->len; i++) {
        if (str_equal(strings->items[i], value))
            return true;
    }
    return false;
}

/* As far as the Task tells: what a label or a name stands for only the Proplets know. */
static bool asks_for_embedded(const struct task_spec *spec)
{
    const struct proplet_selector *selector = spec->proplet_selector;
    const char *embedded = PROPLET_DIALECT_NAMES[DIALECT_EMBEDDED];

    if (!selector)
        return false;
    json_for_each (label, selector->match_labels) {
        if (str_equal(json_string(label, NULL), embedded))
            return true;
    }
    return has_string(&selector->match_device_types, embedded) ||
           has_string(&selector->match_capabilities, embedded);
}

/* A start is repeated when no metrics of its Task come. Where none are expected it is sent once. */
static void advise_deadline(const struct spec_view *view, const struct task_spec *spec)
{
    const cJSON *deadline = /* of the Task itself, or of the job that it is part of */
        json_path(view->validation->object, "spec", "activeDeadlineSeconds", NULL);
    bool always_a_job = may_be_a_job(spec) && spec->preferred_proplet_type == PREFER_K8S;

    if (spec->active_deadline_seconds.set || json_is_number(deadline) || always_a_job)
        return;
    if (!task_sends_metrics(spec) || asks_for_embedded(spec))
        advise(view, "activeDeadlineSeconds",
               "devices send no metrics of this Task, so that a lost start is not noticed: without "
               "a deadline the Task stays running although nothing runs");
}

void task_spec_advise(const struct spec_view *view, const struct task_spec *spec)
{
    advise_file(view, spec);
    advise_env(view, spec);
    advise_selector(view, spec);
    advise_ways(view, spec);
    advise_reference(view, spec);
    advise_dependencies(view, spec);
    advise_times(view, spec);
    advise_monitoring(view, spec);
    advise_restarts(view, spec);
    advise_deadline(view, spec);
    if (spec->broadcast_quorum.set && !spec->broadcast)
        advise(view, "broadcastQuorum", "without broadcast it means nothing");
    if (!str_is_empty(spec->kbs_resource_path) && !spec->encrypted)
        advise(view, "kbsResourcePath", "without encrypted it means nothing");
}
