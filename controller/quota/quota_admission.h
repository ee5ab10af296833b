/* This module reads what Kueue has admitted of a PropellerJob, and compares it with what the job needs and shows. Pure. */
#pragma once

#include "controller/quota/quota_plan.h"

/* Of observed the job, its podSets, the Workload, the flavors and the unfinished Tasks count. There are at most
 * JOB_MAX_PODSETS podSets. Results are in the arena, or borrowed. */

/* Returns the podSetAssignment of the admission with this name; NULL: there is none. */
const cJSON *quota_assignment(const cJSON *workload, const char *podset);
/* Returns the ClusterQueue of the admission; "": none. */
const char *quota_cluster_queue(const cJSON *workload);
/* Returns the name of a podSet that Kueue has assigned nothing to; NULL: all are assigned. */
const char *quota_unassigned(struct arena *arena, const struct quota_observed *observed);
/* Returns the words for a podSet that is admitted for fewer Tasks than may be active at once; NULL: there is none. */
const char *quota_shortage(struct arena *arena, const struct quota_observed *observed);
/* Whether status.quota of the job names this Workload, this ClusterQueue and these counts. */
bool quota_is_same(struct arena *arena, const struct quota_observed *observed);
/* Returns status.quota of this admission. NULL: labels contradict each other, and *ret_conflict says which. */
const cJSON *quota_of(struct arena *arena, const struct quota_observed *observed,
                      const char **ret_conflict);
