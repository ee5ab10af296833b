/*
 * This module has the names that other programs see: finalizers, labels, annotations and the names
 * of children. Strings that functions return are in the arena. Pure: any thread, and nothing fails.
 */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/compiler.h"

#define API_GROUP "propeller.propeller.abstractmachines.fr"
#define API_VERSION API_GROUP "/v1"
#define VMAFX_GROUP "vmafx.dev"

#define FINALIZER_TASK API_GROUP "/task-finalizer"
#define FINALIZER_PROPLET API_GROUP "/finalizer"

#define LABEL_MANAGED_BY "app.kubernetes.io/managed-by"
#define LABEL_MANAGED_BY_VALUE "propeller"
#define LABEL_JOB API_GROUP "/job"
#define LABEL_PROPLET API_GROUP "/proplet"
#define LABEL_TASK API_GROUP "/task"
#define LABEL_ROUND API_GROUP "/round"
#define LABEL_ENROLLMENT API_GROUP "/enrollment"
/* On a Task of a PropellerJob with a queue: its podSet in status.quota of the job. */
#define LABEL_PODSET API_GROUP "/podset"
/* On a PropellerJob: the LocalQueue of Kueue that it waits in. */
#define LABEL_QUEUE "kueue.x-k8s.io/queue-name"
#define LABEL_PRIORITY_CLASS "kueue.x-k8s.io/priority-class"
#define LABEL_MAX_EXEC_TIME "kueue.x-k8s.io/max-exec-time-seconds"
/* On the Job or Deployment of a Task and on its pods: the Task and the attempt. */
#define LABEL_TASK_UID API_GROUP "/task-uid"
#define LABEL_ATTEMPT API_GROUP "/attempt"
/* Selector of the pods of a Proplet: the one that existing Deployments have. */
#define LABEL_PROPLET_SELECTOR "propeller.absmach.fr/proplet"
/* A Proplet with the label capability…/NAME has the capability NAME. */
#define LABEL_CAPABILITY_PREFIX "capability." API_GROUP "/"

#define ANNOTATION_SPEC_NAME API_GROUP "/spec-name"
#define ANNOTATION_SPEC_INDEX API_GROUP "/spec-index"
#define ANNOTATION_RESTART API_GROUP "/restart"
#define RESTART_VALUE_MAX 128 /* bytes; of a longer one the status has a digest */
/* On a Proplet, "true": its owner wants the machine back. */
#define ANNOTATION_RECLAIM API_GROUP "/reclaim-requested"
/* Beside it, for people. */
#define ANNOTATION_RECLAIM_REASON API_GROUP "/reclaim-reason"
#define ANNOTATION_RECLAIM_AT API_GROUP "/reclaim-requested-at"
#define RECLAIM_REASON_MAX 256 /* bytes that are kept of it */
#define ANNOTATION_RESULT API_GROUP "/result"
#define ANNOTATION_STEADY_SINCE API_GROUP "/clock-steady-since" /* of the Lease */
/* On the pod template of a Proplet: the hash of the wanted template when it was written, and the
 * version of the Secret with spec.connectionConfig.clientKey, so that a new key starts new pods. */
#define ANNOTATION_TEMPLATE_HASH API_GROUP "/template-hash"
#define ANNOTATION_KEY_VERSION API_GROUP "/client-key-version"

/* spec.managedBy of a PropellerJob that the controller reconciles; an empty one means the same. */
#define MANAGED_BY_CONTROLLER API_GROUP "/controller"

/* Lengths in bytes. Names of objects that make pods become label values and host names. */
#define NAME_MAX_POD_OWNER 63
#define NAME_MAX_OBJECT 253
#define LABEL_VALUE_MAX 63

/*
 * Returns a name for a child, which is always the same for the same input: the formatted text in
 * lower case, with '-' for all that a name may not hold (also '_' and blanks). If that changed the
 * text, or the text is longer than max, it is cut and ends in a hash of the whole text, so that
 * "a_b" and "a-b" stay two names. max is at least 16.
 */
char *child_name(struct arena *arena, size_t max, const char *format, ...) PRINTF_LIKE(3, 4);

/* As child_name, for a label value: case, '_' and dots stay. "" gives "". */
char *label_value(struct arena *arena, const char *text);
