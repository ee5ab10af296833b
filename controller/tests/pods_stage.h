/* A Proplet "alpha" of type k8s on the stage (stage.h), and a cluster that does with its Deployment
 * what the test says. */
#pragma once

#include "controller/proplet/proplet_pods.h"
#include "controller/tests/outside.h"
#include "controller/tests/stage.h"

/* k8s: further members of spec.k8s, each with a comma behind it; key: of spec.connectionConfig. */
#define PODS_KEY_REF "\"clientKeySecretRef\":{\"name\":\"keys\",\"key\":\"k\"}"
#define PODS_KEY(value) "\"clientKey\":\"" value "\""
void pods_put_proplet(const char *k8s, const char *key);

/* NULL: there is none. */
const cJSON *pods_deployment(void);
const cJSON *pods_secret(void);
const char *pods_image(void);
int64_t pods_replicas(void); /* -1: no Deployment */

/* All pods that the Deployment asks for are ready, or none. */
void pods_report(bool ready);
/* Its only pod waits for this reason. */
void pods_waiting(const char *reason);

/* "Running True PodsReady" of "alpha": phase, and status and reason of Ready. */
const char *pods_told(void);
