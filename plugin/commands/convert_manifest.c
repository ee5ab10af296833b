#include "plugin/commands/convert_manifest.h"

#include "common/api/admission.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/object.h"
#include "common/schema/schema.h"

#define OTHER_GROUP "propeller.propeller.absmach.eu"
#define OTHER_VERSION OTHER_GROUP "/v1"
/* Of the container of a Proplet's pods, which podTemplate is merged into. */
#define CONTAINER "proplet"

static const struct {
    const char *old_name, *name;
} CONNECTION[] = {
    { "tenantId", "domainId" },
    { "entityId", "clientId" },
    { "apiKey", "clientKey" },
    { "apiKeySecretRef", "clientKeySecretRef" },
};

/* The members of spec.k8s.env and the variables that they set. */
enum variable_type { VARIABLE_TEXT, VARIABLE_BOOL, VARIABLE_INT, VARIABLE_SECONDS };
static const struct {
    const char *field, *variable;
    enum variable_type type;
} VARIABLES[] = {
    { "livelinessInterval", "PROPLET_LIVELINESS_INTERVAL", VARIABLE_SECONDS },
    { "metricsInterval", "PROPLET_METRICS_INTERVAL", VARIABLE_SECONDS },
    { "metricsPort", "PROPLET_METRICS_PORT", VARIABLE_INT },
    { "metricsEnabled", "PROPLET_METRICS_ENABLED", VARIABLE_BOOL },
    { "externalWasmRuntime", "PROPLET_EXTERNAL_WASM_RUNTIME", VARIABLE_TEXT },
    { "halEnabled", "PROPLET_HAL_ENABLED", VARIABLE_BOOL },
    { "httpEnabled", "PROPLET_HTTP_ENABLED", VARIABLE_BOOL },
    { "usbEnabled", "PROPLET_USB_ENABLED", VARIABLE_BOOL },
    { "otelUrl", "PROPLET_OTEL_URL", VARIABLE_TEXT },
    { "traceRatio", "PROPLET_TRACE_RATIO", VARIABLE_TEXT },
    { "tags", "PROPLET_TAGS", VARIABLE_TEXT },
    { "location", "PROPLET_LOCATION", VARIABLE_TEXT },
    { "description", "PROPLET_DESCRIPTION", VARIABLE_TEXT },
    { "kbsUri", "PROPLET_KBS_URI", VARIABLE_TEXT },
    { "aaConfigPath", "PROPLET_AA_CONFIG_PATH", VARIABLE_TEXT },
    { "mqttTlsCaCert", "PROPLET_MQTT_TLS_CA_CERT", VARIABLE_TEXT },
    { "mqttTlsClientCert", "PROPLET_MQTT_TLS_CLIENT_CERT", VARIABLE_TEXT },
    { "mqttTlsClientKey", "PROPLET_MQTT_TLS_CLIENT_KEY", VARIABLE_TEXT },
    { "mqttTlsInsecureSkipVerify", "PROPLET_MQTT_TLS_INSECURE_SKIP_VERIFY", VARIABLE_BOOL },
};

/* Members that the API server sets. */
static const char *const SERVER_FIELDS[] = {
    "status",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.managedFields",
    "metadata.selfLink",
};
/* It holds the manifest as it was, with its keys. */
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* For one object, since a file may hold any number of unknown fields. */
#define MAX_NOTES 200

static void add_note(cJSON *notes, bool lost, const char *field, const char *text)
{
    size_t count = json_len(notes);

    if (count > MAX_NOTES)
        return;
    cJSON *note = json_add_object(notes);
    if (count == MAX_NOTES) {
        field = "spec";
        text = "further fields are not listed";
        lost = true;
    }

    json_set_string(note, "field", field);
    json_set_string(note, "text", text);
    json_set_bool(note, "lost", lost);
}

static bool is_of_other_group(const cJSON *owner)
{
    return str_has_prefix(json_string(json_get(owner, "apiVersion"), ""), OTHER_GROUP "/");
}

/* --- metadata --------------------------------------------------------------------------------- */

/* It would run again. A recurring Task waits for its next time, if it has a schedule. */
static bool has_ended(const cJSON *object)
{
    static const char *const FINAL[] = { "completed", "failed", "skipped", "Completed", "Failed" };
    const char *phase = json_string(json_path(object, "status", "phase", NULL), "");

    for (size_t i = 0; i < ARRAY_LEN(FINAL); i++) {
        if (str_equal(phase, FINAL[i]))
            return !json_bool(json_path(object, "spec", "isRecurring", NULL), false) ||
                   str_is_empty(json_string(json_path(object, "spec", "schedule", NULL), NULL));
    }
    return false;
}

static bool omit(struct arena *arena, const cJSON *object, cJSON *notes)
{
    const cJSON *owner = kube_controller_reference(object);

    if (owner && is_of_other_group(owner))
        add_note(notes, false, "metadata.ownerReferences",
                 arena_printf(arena, "omitted, since %s '%s' makes this object",
                              json_string(json_get(owner, "kind"), ""),
                              json_string(json_get(owner, "name"), "")));
    else if (kube_is_deleting(object))
        add_note(notes, false, "metadata.deletionTimestamp",
                 "omitted, since this object is being deleted");
    else if (has_ended(object))
        add_note(notes, false, "status.phase",
                 "omitted, since this object has ended and would run again");
    else
        return false;
    return true;
}

/* Removes the finalizers and the owners of the other group: the garbage collector would delete the new object together
 * with its old owner. */
static void remove_others(cJSON *metadata, const char *list)
{
    const cJSON *items = json_get(metadata, list);

    if (!items)
        return;
    cJSON *kept = cJSON_CreateArray();
    json_for_each (item, items) {
        if (!str_has_prefix(json_string(item, ""), OTHER_GROUP "/") && !is_of_other_group(item))
            json_add(kept, json_copy(item));
    }
    bool is_empty = !json_first(kept);
    json_set(metadata, list, kept);
    if (is_empty)
        json_remove(metadata, list);
}

static void clean_metadata(cJSON *object)
{
    cJSON *metadata = (cJSON *)json_get(object, "metadata");
    cJSON *annotations = (cJSON *)json_get(metadata, "annotations");

    for (size_t i = 0; i < ARRAY_LEN(SERVER_FIELDS); i++)
        json_remove_path(object, SERVER_FIELDS[i]);
    if (cJSON_IsObject(annotations)) {
        json_remove(annotations, LAST_APPLIED);
        if (!json_first(annotations))
            json_remove(metadata, "annotations");
    }
    remove_others(metadata, "finalizers");
    remove_others(metadata, "ownerReferences");
}

/* --- Proplets --------------------------------------------------------------------------------- */

static int rename_connection(const cJSON *spec, struct error *err)
{
    const cJSON *config = json_get(spec, "connectionConfig");

    for (size_t i = 0; i < ARRAY_LEN(CONNECTION); i++) {
        cJSON *item = (cJSON *)json_get(config, CONNECTION[i].old_name);

        if (!item)
            continue;
        if (json_get(config, CONNECTION[i].name))
            return error_set(err, ERROR_INVALID,
                             "spec.connectionConfig: has %s and %s, which are the same field",
                             CONNECTION[i].old_name, CONNECTION[i].name);
        json_rename(item, CONNECTION[i].name);
    }
    return 0;
}

/* *ret NULL: the variable is not set. */
static int value_of(struct arena *arena, size_t i, const cJSON *item, const char **ret,
                    struct error *err)
{
    static const char *const EXPECTED[] = { "a string", "true or false", "a number",
                                            "a duration such as 10s" };
    const char *text = json_string(item, NULL);
    int64_t ms;

    *ret = NULL;
    switch (VARIABLES[i].type) {
    case VARIABLE_TEXT:
        *ret = text;
        break;
    case VARIABLE_BOOL:
        *ret = cJSON_IsBool(item) ? (cJSON_IsTrue(item) ? "true" : "false") : NULL;
        break;
    case VARIABLE_INT:
        *ret = cJSON_IsNumber(item) ? json_text(arena, item, NULL) : NULL;
        break;
    case VARIABLE_SECONDS: /* devices read whole seconds */
        if (text && str_to_duration_ms(text, &ms))
            *ret = arena_printf(arena, "%lld", (long long)ms / 1000 + (ms % 1000 > 0));
        break;
    }
    if (!*ret)
        return error_set(err, ERROR_INVALID, "spec.k8s.env.%s: must be %s", VARIABLES[i].field,
                         EXPECTED[VARIABLES[i].type]);
    if (!**ret)
        *ret = NULL;
    return 0;
}

static size_t variable_of(const char *field)
{
    size_t i = 0;

    while (i < ARRAY_LEN(VARIABLES) && !str_equal(VARIABLES[i].field, field))
        i++;
    return i;
}

/* The variables, as a list for a container. */
static int collect_variables(struct arena *arena, const cJSON *env, cJSON *variables, cJSON *notes,
                             struct error *err)
{
    json_for_each (item, env) {
        size_t i = variable_of(item->string);
        const char *value;

        if (i == ARRAY_LEN(VARIABLES)) {
            add_note(notes, true, arena_printf(arena, "spec.k8s.env.%s", item->string),
                     "the Go operator has no such field");
            continue;
        }
        if (cJSON_IsNull(item))
            continue;
        int r = value_of(arena, i, item, &value, err);
        if (r < 0)
            return r;
        if (!value)
            continue;
        cJSON *variable = json_add_object(variables);
        json_set_string(variable, "name", VARIABLES[i].variable);
        json_set_string(variable, "value", value);
    }
    return 0;
}

static int convert_env(struct arena *arena, const cJSON *spec, cJSON *notes, struct error *err)
{
    cJSON *k8s = (cJSON *)json_get(spec, "k8s");
    const cJSON *env = json_get(k8s, "env");
    cJSON *variables = json_array(arena);

    if (!env)
        return 0;
    if (!cJSON_IsObject(env) && !cJSON_IsNull(env))
        return error_set(err, ERROR_INVALID, "spec.k8s.env: must be an object");
    if (json_get(k8s, "podTemplate"))
        return error_set(err, ERROR_INVALID,
                         "spec.k8s: has env and podTemplate, which would set "
                         "the same variables");
    int r = collect_variables(arena, env, variables, notes, err);
    if (r < 0)
        return r;
    json_remove(k8s, "env");
    if (!json_first(variables))
        return 0;
    cJSON *pod = json_set_object(json_set_object(k8s, "podTemplate"), "spec");
    cJSON *container = json_add_object(json_set_array(pod, "containers"));
    json_set_string(container, "name", CONTAINER);
    json_set_copy(container, "env", variables);
    add_note(notes, false, "spec.k8s.podTemplate",
             "has the variables of env, which requires --allow-pod-template of the controller");
    return 0;
}

/* --- all kinds -------------------------------------------------------------------------------- */

/* Removes the fields that the CRD of this operator does not know. */
static void prune(const struct schema *schema, struct arena *arena, cJSON *spec, cJSON *notes)
{
    cJSON *unknown = json_array(arena);
    size_t count = 0;

    schema_prune_part(schema, "spec", spec, unknown);
    json_for_each (path, unknown) {
        add_note(notes, true, json_string(path, ""), "this operator has no such field");
        count++;
    }
    if (count == SCHEMA_MAX_UNKNOWN)
        add_note(notes, true, "spec", "there may be more such fields");
}

/* NULL: the Go operator has no such kind. */
static const struct schema *schema_of(struct convert_schemas *schemas, const char *kind)
{
    for (size_t i = 0; i < CONVERT_MAX_KINDS && ADMISSION[i].kind; i++) {
        const struct kube_kind *known = ADMISSION[i].kind;

        if (!str_equal(known->kind, kind) || !str_equal(known->group, API_GROUP))
            continue;
        if (!schemas->of[i])
            schemas->of[i] = admission_schema(schemas->arena, &ADMISSION[i]);
        return schemas->of[i];
    }
    return NULL;
}

static int check_form(const cJSON *object, struct error *err)
{
    static const char *const MEMBERS[] = { "metadata", "spec" };

    if (!str_equal(json_string(json_get(object, "apiVersion"), ""), OTHER_VERSION))
        return error_set(err, ERROR_INVALID, "apiVersion: must be " OTHER_VERSION);
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        if (!cJSON_IsObject(json_get(object, MEMBERS[i])))
            return error_set(err, ERROR_INVALID, "%s: must be an object", MEMBERS[i]);
    }
    return 0;
}

int convert_manifest(struct convert_schemas *schemas, struct arena *arena, cJSON *object,
                     cJSON *notes, struct error *err)
{
    const char *kind = json_string(json_get(object, "kind"), "");
    cJSON *spec = (cJSON *)json_get(object, "spec");

    if (!is_of_other_group(object))
        return CONVERT_UNCHANGED;
    int r = check_form(object, err);
    if (r < 0)
        return r;
    const struct schema *schema = schema_of(schemas, kind);
    if (!schema)
        return error_set(err, ERROR_INVALID, "kind: '%.60s' is no kind of " OTHER_GROUP, kind);
    if (omit(arena, object, notes))
        return CONVERT_OMITTED;
    clean_metadata(object);
    if (str_equal(kind, "Proplet")) {
        r = rename_connection(spec, err);
        if (r == 0)
            r = convert_env(arena, spec, notes, err);
        if (r < 0)
            return r;
    }
    prune(schema, arena, spec, notes);
    json_set_string(object, "apiVersion", API_VERSION);
    return CONVERT_DONE;
}
