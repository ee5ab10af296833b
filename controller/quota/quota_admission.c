#include "controller/quota/quota_admission.h"

#include <inttypes.h>

#include "common/base/str.h"

const cJSON *quota_assignment(const cJSON *workload, const char *podset)
{
    json_for_each (item, json_path(workload, "status", "admission", "podSetAssignments", NULL)) {
        if (str_equal(json_get_string(item, "name"), podset))
            return item;
    }
    return NULL;
}

const char *quota_cluster_queue(const cJSON *workload)
{
    return json_string(json_path(workload, "status", "admission", "clusterQueue", NULL), "");
}

static const char *name_of(const cJSON *workload)
{
    return json_string(json_path(workload, "metadata", "name", NULL), "");
}

/* Tasks of the podSet that are admitted: all, if Kueue names no number. */
static int64_t count_of(struct arena *arena, const struct quota_observed *observed, size_t index)
{
    const char *name = job_podset_name(arena, index);

    return json_int(json_get(quota_assignment(observed->workload, name), "count"),
                    observed->podsets->counts[index]);
}

const char *quota_unassigned(struct arena *arena, const struct quota_observed *observed)
{
    for (size_t i = 0; i < observed->podsets->len; i++) {
        const char *name = job_podset_name(arena, i);
        if (!quota_assignment(observed->workload, name))
            return name;
    }
    return NULL;
}

const char *quota_shortage(struct arena *arena, const struct quota_observed *observed)
{
    for (size_t i = 0; i < observed->podsets->len; i++) {
        int64_t most = observed->podsets->counts[i];
        int64_t needed = observed->unfinished[i] < most ? observed->unfinished[i] : most;
        int64_t count = count_of(arena, observed, i);

        if (count < needed)
            return arena_printf(arena,
                                "podSet '%s' is admitted for %" PRId64 " Tasks and needs %" PRId64,
                                job_podset_name(arena, i), count, needed);
    }
    return NULL;
}

bool quota_is_same(struct arena *arena, const struct quota_observed *observed)
{
    const cJSON *quota = json_path(observed->job, "status", "quota", NULL);
    const cJSON *shown = json_first(json_get(quota, "podSets"));

    if (!str_equal(json_get_string(quota, "workload"), name_of(observed->workload)) ||
        !str_equal(json_get_string(quota, "clusterQueue"), quota_cluster_queue(observed->workload)))
        return false;
    for (size_t i = 0; i < observed->podsets->len; i++) {
        if (json_int(json_get(shown, "count"), -1) != count_of(arena, observed, i))
            return false;
        shown = shown->next;
    }
    return !shown;
}

/* Adds the labels of `from` to `to`. false: two values of one label. */
static bool merge_labels(cJSON *to, const cJSON *from, const char **ret_conflict)
{
    json_for_each (label, from) {
        const char *there = json_string(json_get(to, label->string), NULL);

        if (there && !str_equal(there, json_string(label, ""))) {
            *ret_conflict = label->string;
            return false;
        }
        json_set_string(to, label->string, json_string(label, ""));
    }
    return true;
}

/* The labels of the flavors and of the admission checks of this podSet. */
static bool labels_of_podset(struct arena *arena, const struct quota_observed *observed,
                             size_t index, const char *name, cJSON *ret, const char **ret_conflict)
{
    cJSON *all = json_object(arena);

    if (!merge_labels(all, observed->podsets->labels[index], ret_conflict))
        return false;
    json_for_each (labels, observed->flavors[index]) {
        if (!merge_labels(all, labels, ret_conflict) || !merge_labels(ret, labels, ret_conflict))
            return false;
    }
    json_for_each (check, json_path(observed->workload, "status", "admissionChecks", NULL)) {
        json_for_each (update, json_get(check, "podSetUpdates")) {
            const cJSON *labels = json_get(update, "nodeSelector");

            if (!str_equal(json_get_string(update, "name"), name))
                continue;
            if (!merge_labels(all, labels, ret_conflict) ||
                !merge_labels(ret, labels, ret_conflict))
                return false;
        }
    }
    return true;
}

const cJSON *quota_of(struct arena *arena, const struct quota_observed *observed,
                      const char **ret_conflict)
{
    cJSON *quota = json_object(arena);

    json_set_string(quota, "workload", name_of(observed->workload));
    json_set_string(quota, "clusterQueue", quota_cluster_queue(observed->workload));
    cJSON *list = json_set_array(quota, "podSets");
    for (size_t i = 0; i < observed->podsets->len; i++) {
        const char *name = job_podset_name(arena, i);
        cJSON *podset = json_add_object(list);
        const char *conflict = NULL;

        json_set_string(podset, "name", name);
        json_set_int(podset, "count", count_of(arena, observed, i));
        cJSON *labels = json_set_object(podset, "matchLabels");
        if (!labels_of_podset(arena, observed, i, name, labels, &conflict)) {
            *ret_conflict = arena_printf(
                arena, "podSet '%s' would need two values of the label '%s'", name, conflict);
            return NULL;
        }
        if (!json_len(labels))
            json_remove(podset, "matchLabels");
    }
    return quota;
}
