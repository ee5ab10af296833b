/* config/webhook/ says what the program serves: paths, resources, ports. */
#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "webhook/admission.h"
#include "webhook/options.h"

static struct arena *arena;

static void setup(void)
{
    json_init();
    arena = arena_create();
    clearenv();
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("manifests", setup, teardown);

static const char *text_of(const cJSON *item)
{
    return json_string(item, "");
}

/* The only string of an array. */
static const char *only(const cJSON *array)
{
    ck_assert_uint_eq(json_len(array), 1);
    return text_of(json_first(array));
}

static bool has(const cJSON *array, const char *text)
{
    json_for_each (item, array) {
        if (str_equal(json_string(item, NULL), text))
            return true;
    }
    return false;
}

/* What every entry has, whatever it is for. */
static void check_entry(const cJSON *entry)
{
    const cJSON *rule = json_first(json_get(entry, "rules"));
    const cJSON *service = json_path(entry, "clientConfig", "service", NULL);
    const cJSON *condition = json_first(json_get(entry, "matchConditions"));

    ck_assert_str_eq(only(json_get(entry, "admissionReviewVersions")), "v1");
    ck_assert_str_eq(text_of(json_get(entry, "sideEffects")), "None");
    ck_assert_str_eq(text_of(json_get(entry, "matchPolicy")), "Equivalent");
    ck_assert_int_eq(json_int(json_get(entry, "timeoutSeconds"), 0), 5);
    ck_assert_str_eq(text_of(json_get(condition, "expression")),
                     "!has(object.metadata.deletionTimestamp)");
    ck_assert_str_eq(text_of(json_get(service, "name")), "propeller-webhook");
    ck_assert_uint_eq(json_len(json_get(entry, "rules")), 1);
    ck_assert_str_eq(only(json_get(rule, "apiVersions")), "v1");
    ck_assert_str_eq(text_of(json_get(rule, "scope")), "Namespaced");
}

static const cJSON *entry_for(const cJSON *configuration, const char *path, const char *resource)
{
    json_for_each (entry, json_get(configuration, "webhooks")) {
        const cJSON *rule = json_first(json_get(entry, "rules"));

        if (str_equal(text_of(json_path(entry, "clientConfig", "service", "path", NULL)), path) &&
            has(json_get(rule, "resources"), resource))
            return entry;
    }
    return NULL;
}

static const struct {
    const char *file;
    const char *kind;
    const char *patch; /* entries that an overlay adds; NULL: none */
    size_t entries;
} CONFIGURATIONS[] = {
    { "config/webhook/mutating.yaml", "MutatingWebhookConfiguration", NULL, 4 },
    { "config/webhook/validating.yaml", "ValidatingWebhookConfiguration",
      "config/vmafx/validating.yaml", 9 },
};

/* With the entries of its patch. */
static const cJSON *configuration_of(int index)
{
    const char *patch = CONFIGURATIONS[index].patch;
    cJSON *ret =
        arena_own(arena, json_copy(parsed_yaml_file(arena, CONFIGURATIONS[index].file)), json_free);

    json_for_each (operation, patch ? parsed_yaml_file(arena, patch) : NULL) {
        ck_assert_str_eq(text_of(json_get(operation, "op")), "add");
        ck_assert_str_eq(text_of(json_get(operation, "path")), "/webhooks/-");
        json_add((cJSON *)json_get(ret, "webhooks"), json_copy(json_get(operation, "value")));
    }
    return ret;
}

/* An object is looked at if its spec is new, and if labels have a meaning also with other labels. */
static void expect_change(const char *expression, bool with_labels)
{
    static const char SPEC[] = "oldObject == null || !has(object.spec) || !has(oldObject.spec) || "
                               "object.spec != oldObject.spec";

    ck_assert(str_has_prefix(expression, SPEC));
    ck_assert_int_eq(expression[strlen(SPEC)] != '\0', with_labels);
    ck_assert_int_eq(strstr(expression, "'kueue.x-k8s.io/'") != NULL, with_labels);
}

TEST_EACH(the_configurations_name_every_path_with_its_resource, CONFIGURATIONS)
{
    const cJSON *configuration = configuration_of(_i);

    ck_assert_str_eq(text_of(json_get(configuration, "kind")), CONFIGURATIONS[_i].kind);
    ck_assert_str_eq(text_of(json_path(configuration, "metadata", "name", NULL)),
                     "propeller-webhook");
    ck_assert_uint_eq(json_len(json_get(configuration, "webhooks")), CONFIGURATIONS[_i].entries);
    json_for_each (entry, json_get(configuration, "webhooks"))
        check_entry(entry);

    for (const struct admission_hook *hook = admission_hooks(); hook->path; hook++) {
        if (!hook->schema == !!_i)
            continue;
        const cJSON *entry = entry_for(configuration, hook->path, hook->admission->kind->plural);
        const cJSON *rule = json_first(json_get(entry, "rules"));

        ck_assert_msg(entry != NULL, "no entry for %s", hook->path);
        ck_assert_str_eq(text_of(json_get(entry, "failurePolicy")), "Fail");
        const cJSON *condition = json_get(entry, "matchConditions")->child->next;
        ck_assert_str_eq(text_of(json_get(condition, "name")), "spec-is-new");
        expect_change(text_of(json_get(condition, "expression")),
                      _i && hook->admission->validate_labels);
        ck_assert_str_eq(only(json_get(rule, "apiGroups")), hook->admission->kind->group);
        ck_assert_uint_eq(json_len(json_get(rule, "operations")), 2);
        ck_assert(has(json_get(rule, "operations"), "CREATE"));
        ck_assert(has(json_get(rule, "operations"), "UPDATE"));
    }
}

TEST(the_status_of_tasks_has_an_entry_that_may_fail)
{
    const cJSON *configuration = configuration_of(1);
    const cJSON *entry = entry_for(
        configuration, "/validate-propeller-propeller-abstractmachines-fr-v1-task", "tasks/status");
    const cJSON *rule = json_first(json_get(entry, "rules"));

    ck_assert_ptr_nonnull(entry);
    ck_assert_str_eq(text_of(json_get(entry, "failurePolicy")), "Ignore");
    ck_assert_str_eq(only(json_get(rule, "operations")), "UPDATE");
    ck_assert_str_eq(only(json_get(rule, "resources")), "tasks/status");
}

TEST_EACH(names_of_entries_differ, CONFIGURATIONS)
{
    const cJSON *entries = json_get(configuration_of(_i), "webhooks");

    json_for_each (entry, entries) {
        for (const cJSON *other = entry->next; other; other = other->next)
            ck_assert_str_ne(text_of(json_get(entry, "name")), text_of(json_get(other, "name")));
    }
}

/* --- the Deployment --------------------------------------------------------------------------- */

/* The second document of the file. */
static const cJSON *pod_template(void)
{
    char text[16384];
    const cJSON *documents;
    struct error err = { 0 };
    FILE *file = fopen("config/webhook/deployment.yaml", "r");

    ck_assert_ptr_nonnull(file);
    size_t len = fread(text, 1, sizeof(text), file);
    ck_assert(len < sizeof(text));
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_msg(yaml_parse_all(arena, text, len, &documents, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(json_len(documents), 2);
    return json_path(json_first(documents)->next, "spec", "template", "spec", NULL);
}

static int64_t port_named(const cJSON *container, const char *name)
{
    json_for_each (port, json_get(container, "ports")) {
        if (str_equal(text_of(json_get(port, "name")), name))
            return json_int(json_get(port, "containerPort"), 0);
    }
    return 0;
}

static void parse_args(const cJSON *container, struct webhook_settings *ret)
{
    char *argv[16] = { arena_strdup(arena, "propeller-webhook") };
    int argc = 1;
    struct error err = { 0 };

    *ret = (struct webhook_settings){ 0 };
    json_for_each (arg, json_get(container, "args")) {
        ck_assert_int_lt(argc, (int)ARRAY_LEN(argv) - 1);
        argv[argc++] = arena_strdup(arena, text_of(arg));
    }
    ck_assert_msg(webhook_options_parse(arena, argc, argv, ret, &err) == 0, "%s", err.message);
}

TEST(the_deployment_fits_the_flags)
{
    const cJSON *pod = pod_template();
    const cJSON *container = json_first(json_get(pod, "containers"));
    const cJSON *mount = json_first(json_get(container, "volumeMounts"));
    const cJSON *volume = json_first(json_get(pod, "volumes"));
    struct webhook_settings settings;

    parse_args(container, &settings);
    ck_assert_int_eq(port_named(container, "reviews"), settings.port);
    ck_assert_str_eq(arena_printf(arena, ":%d", (int)port_named(container, "metrics")),
                     settings.metrics_address);
    ck_assert_str_eq(arena_printf(arena, ":%d", (int)port_named(container, "health")),
                     settings.health_address);
    ck_assert_str_eq(text_of(json_get(mount, "mountPath")), settings.cert_dir);
    ck_assert_str_eq(text_of(json_path(volume, "secret", "secretName", NULL)),
                     "propeller-webhook-cert");
    ck_assert(json_bool(json_path(volume, "secret", "optional", NULL), false));
}

TEST(the_pods_have_no_credentials_and_no_rights)
{
    const cJSON *pod = pod_template();
    const cJSON *container = json_first(json_get(pod, "containers"));
    const cJSON *context = json_get(container, "securityContext");

    ck_assert(!json_bool(json_get(pod, "automountServiceAccountToken"), true));
    ck_assert(json_bool(json_path(pod, "securityContext", "runAsNonRoot", NULL), false));
    ck_assert_str_eq(text_of(json_path(pod, "securityContext", "seccompProfile", "type", NULL)),
                     "RuntimeDefault");
    ck_assert(json_bool(json_get(context, "readOnlyRootFilesystem"), false));
    ck_assert(!json_bool(json_get(context, "allowPrivilegeEscalation"), true));
    ck_assert_str_eq(only(json_path(context, "capabilities", "drop", NULL)), "ALL");
}
