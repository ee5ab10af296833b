/* Names that other parties see: finalizers, labels, annotations, and how children are called. */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/compiler.h"

#define API_GROUP "propeller.propeller.abstractmachines.fr"
#define API_VERSION API_GROUP "/v1"

#define FINALIZER_TASK API_GROUP "/task-finalizer"
#define FINALIZER_PROPLET API_GROUP "/finalizer"

#define LABEL_MANAGED_BY "app.kubernetes.io/managed-by"
#define LABEL_MANAGED_BY_VALUE "propeller"
#define LABEL_JOB API_GROUP "/job"
#define LABEL_PROPLET API_GROUP "/proplet"
#define LABEL_TASK API_GROUP "/task"
#define LABEL_ROUND API_GROUP "/round"
/* On what a Task runs as in the cluster, and on its pods: whose it is, and of which attempt. */
#define LABEL_TASK_UID API_GROUP "/task-uid"
#define LABEL_ATTEMPT API_GROUP "/attempt"
/* Selector of the pods of a Proplet: the one that existing Deployments have. */
#define LABEL_PROPLET_SELECTOR "propeller.absmach.fr/proplet"
/* capability…/NAME on a Proplet: it counts as having the capability NAME. */
#define LABEL_CAPABILITY_PREFIX "capability." API_GROUP "/"

#define ANNOTATION_SPEC_NAME API_GROUP "/spec-name"
#define ANNOTATION_SPEC_INDEX API_GROUP "/spec-index"
#define ANNOTATION_RESTART API_GROUP "/restart"
#define ANNOTATION_RESULT API_GROUP "/result"
#define ANNOTATION_STEADY_SINCE API_GROUP "/clock-steady-since" /* of the Lease */
/* On the pod template of a Proplet: what was wanted when it was written; the version of the Secret
 * with the key of spec.connectionConfig.clientKey, so that a new key starts new pods. */
#define ANNOTATION_TEMPLATE_HASH API_GROUP "/template-hash"
#define ANNOTATION_KEY_VERSION API_GROUP "/client-key-version"

/* spec.managedBy of a PropellerJob that is ours, like an empty one. */
#define MANAGED_BY_CONTROLLER API_GROUP "/controller"

/* Objects that make pods: their name becomes a label value and a host name. */
#define NAME_MAX_POD_OWNER 63
#define NAME_MAX_OBJECT 253
#define LABEL_VALUE_MAX 63

/*
 * A name for a child, the same for the same input for ever: the formatted text in lower case, with
 * everything that an object's name may not hold (also '_' and blanks) as '-'. If that changed
 * anything, or the text is longer than max, it is cut and ends in a hash of the whole text, so that
 * "a_b" and "a-b" stay two names. max is at least 16.
 */
char *child_name(struct arena *arena, size_t max, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same for a label value: case, '_' and dots stay. "" gives "". */
char *label_value(struct arena *arena, const char *text);
