/* The kinds that Kubernetes brings along, as far as they are served here; for this folder only. */
#pragma once

#include "standalone/schema/resource.h"

/* The functions and switches of each kind, by group and plural; the rest is in kinds.yaml. */
extern const struct resource BUILTIN_RESOURCES[];
extern const size_t BUILTIN_RESOURCES_LEN;

/* What the strategies of kube-apiserver do with each. */
/* Members that Go's structs of a kind always write. */
#define EVENT_ALWAYS                                                                               \
    "{\"involvedObject\":{},\"source\":{},\"firstTimestamp\":null,\"lastTimestamp\":null,"         \
    "\"eventTime\":null,\"reportingComponent\":\"\",\"reportingInstance\":\"\"}"
#define EVENT_V1_ALWAYS                                                                            \
    "{\"eventTime\":null,\"regarding\":{},\"deprecatedSource\":{},"                                \
    "\"deprecatedFirstTimestamp\":null,\"deprecatedLastTimestamp\":null}"
#define LEASE_ALWAYS "{\"spec\":{}}"
#define NAMESPACE_ALWAYS "{\"spec\":{},\"status\":{}}"
void ensure_members(struct arena *arena, cJSON *object, const char *always);
/* Of a struct of Go that leaves out all its texts while they are empty; what is no object has none. In place. */
void drop_empty_texts(cJSON *object);

resource_prepare_fn lease_fill;
resource_prepare_fn namespace_fill;
resource_prepare_fn namespace_prepare;
resource_prepare_fn secret_fill;
resource_prepare_fn service_account_fill;
resource_prepare_fn service_account_prepare;
resource_prepare_fn event_fill;
validate_fn namespace_validate;
validate_fn configmap_validate;
validate_fn secret_validate;
validate_fn service_account_validate;
validate_fn lease_validate;
validate_fn event_validate;        /* core */
validate_fn event_v1_validate;     /* events.k8s.io */
resource_convert_fn event_to_core; /* of an events.k8s.io/v1 Event */
resource_convert_fn event_from_core;

resource_cells_fn namespace_cells;
resource_cells_fn configmap_cells;
resource_cells_fn secret_cells;
resource_cells_fn service_account_cells;
resource_cells_fn lease_cells;
resource_cells_fn event_cells;
