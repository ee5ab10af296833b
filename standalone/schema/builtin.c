#include "standalone/schema/builtin.h"

#define CORE "io.k8s.api.core.v1."
/* The description of a column, where it is a definition's: "<definition>#<property>". */
#define NAME_COLUMN                                                                                \
    {                                                                                              \
        .name = "Name", .type = "string", .format = "name",                                        \
        .description = META_DEFINITION "ObjectMeta#name"                                           \
    }
#define AGE_COLUMN                                                                                 \
    {                                                                                              \
        .name = "Age", .type = "string", .format = "",                                             \
        .description = META_DEFINITION "ObjectMeta#creationTimestamp"                              \
    }
#define COLUMN(column_name, text)                                                                  \
    {                                                                                              \
        .name = (column_name), .type = "string", .format = "", .description = (text)               \
    }
#define WIDE_COLUMN(column_name, column_format, text)                                              \
    {                                                                                              \
        .name = (column_name), .type = "string", .format = (column_format), .description = (text), \
        .priority = 1                                                                              \
    }
#define COLUMNS(table) .columns = (table), .columns_len = ARRAY_LEN(table)

static const struct resource_column NAMESPACE_COLUMNS[] = {
    NAME_COLUMN,
    COLUMN("Status", "The status of the namespace"),
    AGE_COLUMN,
};

static const struct resource_column CONFIGMAP_COLUMNS[] = {
    NAME_COLUMN,
    COLUMN("Data", CORE "ConfigMap#data"),
    AGE_COLUMN,
};

static const struct resource_column SECRET_COLUMNS[] = {
    NAME_COLUMN,
    COLUMN("Type", CORE "Secret#type"),
    COLUMN("Data", CORE "Secret#data"),
    AGE_COLUMN,
};

static const struct resource_column SERVICE_ACCOUNT_COLUMNS[] = {
    NAME_COLUMN,
    COLUMN("Secrets", CORE "ServiceAccount#secrets"),
    AGE_COLUMN,
};

static const struct resource_column LEASE_COLUMNS[] = {
    NAME_COLUMN,
    COLUMN("Holder", "io.k8s.api.coordination.v1.LeaseSpec#holderIdentity"),
    AGE_COLUMN,
};

static const struct resource_column EVENT_COLUMNS[] = {
    COLUMN("Last Seen", CORE "Event#lastTimestamp"),
    COLUMN("Type", CORE "Event#type"),
    COLUMN("Reason", CORE "Event#reason"),
    COLUMN("Object", CORE "Event#involvedObject"),
    WIDE_COLUMN("Subobject", "", CORE "ObjectReference#fieldPath"),
    WIDE_COLUMN("Source", "", CORE "Event#source"),
    COLUMN("Message", CORE "Event#message"),
    WIDE_COLUMN("First Seen", "", CORE "Event#firstTimestamp"),
    WIDE_COLUMN("Count", "", CORE "Event#count"),
    WIDE_COLUMN("Name", "name", META_DEFINITION "ObjectMeta#name"),
};

static const char *const NONE[] = { NULL };
static const char *const NAMESPACE_SHORT[] = { "ns", NULL };
static const char *const CONFIGMAP_SHORT[] = { "cm", NULL };
static const char *const SERVICE_ACCOUNT_SHORT[] = { "sa", NULL };
static const char *const EVENT_SHORT[] = { "ev", NULL };

/* By group and plural. */
const struct resource BUILTIN_RESOURCES[] = {
    { .kind = { "", "v1", "ConfigMap", "configmaps", true, NULL },
      .singular = "configmap",
      .list_kind = "ConfigMapList",
      .short_names = CONFIGMAP_SHORT,
      .categories = NONE,
      .storage = "core/configmaps",
      .definition = CORE "ConfigMap",
      COLUMNS(CONFIGMAP_COLUMNS),
      .cells = configmap_cells,
      .validate = configmap_validate },
    { .kind = { "", "v1", "Event", "events", true, NULL },
      .singular = "event",
      .list_kind = "EventList",
      .short_names = EVENT_SHORT,
      .categories = NONE,
      .storage = "core/events",
      .creates_on_update = true,
      .definition = CORE "Event",
      COLUMNS(EVENT_COLUMNS),
      .cells = event_cells,
      .always = EVENT_ALWAYS,
      .fill = event_fill,
      .validate = event_validate },
    { .kind = { "", "v1", "Namespace", "namespaces", false, NULL },
      .singular = "namespace",
      .list_kind = "NamespaceList",
      .short_names = NAMESPACE_SHORT,
      .categories = NONE,
      .storage = "core/namespaces",
      .has_status = true,
      .definition = CORE "Namespace",
      COLUMNS(NAMESPACE_COLUMNS),
      .cells = namespace_cells,
      .always = NAMESPACE_ALWAYS,
      .fill = namespace_fill,
      .prepare = namespace_prepare,
      .validate = namespace_validate },
    { .kind = { "", "v1", "Secret", "secrets", true, NULL },
      .singular = "secret",
      .list_kind = "SecretList",
      .short_names = NONE,
      .categories = NONE,
      .storage = "core/secrets",
      .definition = CORE "Secret",
      COLUMNS(SECRET_COLUMNS),
      .cells = secret_cells,
      .fill = secret_fill,
      .validate = secret_validate },
    { .kind = { "", "v1", "ServiceAccount", "serviceaccounts", true, NULL },
      .singular = "serviceaccount",
      .list_kind = "ServiceAccountList",
      .short_names = SERVICE_ACCOUNT_SHORT,
      .categories = NONE,
      .storage = "core/serviceaccounts",
      .returns_deleted = true,
      .definition = CORE "ServiceAccount",
      COLUMNS(SERVICE_ACCOUNT_COLUMNS),
      .cells = service_account_cells,
      .fill = service_account_fill,
      .prepare = service_account_prepare,
      .validate = service_account_validate },
    { .kind = { "coordination.k8s.io", "v1", "Lease", "leases", true, NULL },
      .singular = "lease",
      .list_kind = "LeaseList",
      .short_names = NONE,
      .categories = NONE,
      .storage = "coordination.k8s.io/leases",
      .creates_on_update = true,
      .definition = "io.k8s.api.coordination.v1.Lease",
      COLUMNS(LEASE_COLUMNS),
      .cells = lease_cells,
      .always = LEASE_ALWAYS,
      .fill = lease_fill,
      .validate = lease_validate },
    { .kind = { "events.k8s.io", "v1", "Event", "events", true, NULL },
      .singular = "event",
      .list_kind = "EventList",
      .short_names = EVENT_SHORT,
      .categories = NONE,
      .storage = "core/events",
      .creates_on_update = true,
      .definition = "io.k8s.api.events.v1.Event",
      COLUMNS(EVENT_COLUMNS),
      .cells = event_cells,
      .always = EVENT_V1_ALWAYS,
      .fill = event_fill,
      .validate = event_v1_validate,
      .to_storage = event_to_core,
      .from_storage = event_from_core },
};
const size_t BUILTIN_RESOURCES_LEN = ARRAY_LEN(BUILTIN_RESOURCES);
