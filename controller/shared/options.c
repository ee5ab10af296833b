#include "controller/shared/options.h"

#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/net/mqtt.h"
#include "common/runtime/program.h"
#include "controller/scheduler/scheduler.h"

#define MAX_WORKERS 64

#define OPTION(flag, kind, member, value)                                                          \
    .name = (flag), .type = (kind), .offset = offsetof(struct controller_settings, member),        \
    .fallback = (value)
#define DAY_MS (24ll * 60 * 60 * 1000)
#define DEFAULT_LIVELINESS_S 10

static const struct option OPTIONS[] = {
    { OPTION("kubeconfig", OPTION_STRING, kubeconfig, NULL), .value_name = "FILE",
      .help = "kubeconfig with the cluster and identity; default is $KUBECONFIG, then the pod's "
              "service account, then ~/.kube/config" },
    { OPTION("use-service-account-credentials", OPTION_BOOL, use_service_accounts, "false"),
      .help = "use a separate ServiceAccount for each reconciler, with the rights of rbac/" },
    { OPTION("namespace", OPTION_STRINGS, namespaces, NULL), .value_name = "NAME",
      .needs_value = true, /* an empty variable of a script must not mean every namespace */
      .help = "namespace to watch; all namespaces if not given", .environment = "WATCH_NAMESPACE" },
    { OPTION("kube-api-qps", OPTION_DOUBLE, kube_api_qps, "0"), .min = -1, .max = 10000,
      .help = "average number of requests per second to the API server, without watches and the "
              "Lease; 0 or less is no limit" },
    { OPTION("kube-api-burst", OPTION_INT, kube_api_burst, "30"), .min = 1, .max = 10000,
      .help = "number of requests that may exceed --kube-api-qps at once" },
    PROGRAM_LOG_OPTIONS(struct controller_settings),

    { OPTION("leader-elect", OPTION_BOOL, leader_elect, "true"),
      .help = "act only while holding the Lease" },
    { OPTION("leader-elect-lease-duration", OPTION_DURATION, lease_duration_ms, "15s"), .min = 1000,
      .max = DAY_MS,
      .help = "time after which another replica may take a Lease that was not renewed" },
    { OPTION("leader-elect-renew-deadline", OPTION_DURATION, renew_deadline_ms, "10s"), .min = 500,
      .max = DAY_MS,
      .help = "time after which a leader that could not renew the Lease stops acting" },
    { OPTION("leader-elect-retry-period", OPTION_DURATION, retry_period_ms, "2s"), .min = 100,
      .max = DAY_MS, .help = "time between two attempts to take or renew the Lease" },
    { OPTION("leader-election-namespace", OPTION_STRING, election_namespace, NULL),
      .value_name = "NAME",
      .help = "namespace of the Lease; default is that of the kubeconfig context or of the pod" },

    { OPTION("metrics-bind-address", OPTION_STRING, metrics_address, ":8080"),
      .value_name = "ADDRESS", .help = "address of /metrics; 0 turns it off" },
    { OPTION("health-probe-bind-address", OPTION_STRING, health_address, ":8081"),
      .value_name = "ADDRESS", .help = "address of /healthz and /readyz; 0 turns it off" },
    { OPTION("debug-endpoint", OPTION_BOOL, debug_endpoint, "false"),
      .help = "serve /debug/proplets?namespace=&name= on the health address" },

    { OPTION("mqtt-address", OPTION_STRING, mqtt_address, NULL), .value_name = "URL",
      .help = "address of the broker, such as tcp://host:1883 or mqtts://host:8883; without it no "
              "Task is sent to a device" },
    { OPTION("mqtt-qos", OPTION_INT, mqtt_qos, "1"), .min = 0, .max = 2,
      .help = "QoS of the subscriptions to heartbeats and metrics; subscriptions to results always "
              "use 1" },
    { OPTION("mqtt-timeout", OPTION_DURATION, mqtt_timeout_ms, "30s"), .min = 100, .max = DAY_MS,
      .help = "time to wait for an acknowledgement of the broker" },
    { OPTION("mqtt-ca-file", OPTION_STRING, mqtt_ca_file, NULL), .value_name = "FILE",
      .help = "PEM file of the authorities that are trusted for the broker" },
    { OPTION("mqtt-cert-file", OPTION_STRING, mqtt_cert_file, NULL), .value_name = "FILE",
      .help = "PEM file of the client certificate for the broker" },
    { OPTION("mqtt-key-file", OPTION_STRING, mqtt_key_file, NULL), .value_name = "FILE",
      .help = "PEM file of the key of the client certificate" },
    { OPTION("domain-id", OPTION_STRING, domain_id, NULL), .value_name = "ID",
      .help = "domain to subscribe to even without Proplets; requires --channel-id" },
    { OPTION("channel-id", OPTION_STRING, channel_id, NULL), .value_name = "ID",
      .help = "channel to subscribe to even without Proplets; requires --domain-id" },
    { OPTION("client-id", OPTION_STRING, client_id, "propeller-controller"), .value_name = "ID",
      .help = "MQTT user name and client id; must be unique for each installation" },
    { OPTION("client-key", OPTION_STRING, client_key, NULL), .value_name = "KEY", .secret = true,
      .help =
          "MQTT password; deprecated because the process list shows it, use --client-key-file" },
    { OPTION("client-key-file", OPTION_STRING, client_key_file, NULL), .value_name = "FILE",
      .help = "file with the MQTT password; read at each connect" },

    { OPTION("liveliness-interval", OPTION_DURATION, liveliness_interval_ms, NULL), .min = 1000,
      .max = DAY_MS,
      .help = "time between two heartbeats of pods of Proplets of type k8s, in whole seconds (10s, "
              "or a third of --last-seen-threshold if that is less)" },
    { OPTION("kbs-uri", OPTION_STRING, kbs_uri, "http://127.0.0.1:9"), .value_name = "URI",
      .help = "key broker service of encrypted Tasks, for pods of Proplets of type k8s; the device "
              "requires one on nodes with SEV, TDX or SGX" },
    { OPTION("allow-pod-template", OPTION_BOOL, allow_pod_template, "false"),
      .help = "allow spec.k8s.podTemplate to change the pods of a Proplet; this includes "
              "privileged pods" },
    { OPTION("last-seen-threshold", OPTION_DURATION, last_seen_threshold_ms, "30s"), .min = 100,
      .max = DAY_MS, .help = "time without a heartbeat after which a Proplet is Offline" },
    { OPTION("start-confirm-timeout", OPTION_DURATION, start_confirm_ms, "30s"), .min = 1000,
      .max = DAY_MS,
      .help = "time without a sign of the device after which a start is sent again" },
    { OPTION("running-write-delay", OPTION_DURATION, running_write_delay_ms, "500ms"), .min = 0,
      .max = 10000,
      .help = "time after a start within which a Task that ends is not written as running; 0s "
              "writes each" },
    { OPTION("stop-timeout", OPTION_DURATION, stop_timeout_ms, "30s"), .min = 100, .max = DAY_MS,
      .help = "time that a deleted Task waits for its device to confirm the stop" },
    { OPTION("pod-start-timeout", OPTION_DURATION, pod_start_ms, "2m"), .min = 100, .max = DAY_MS,
      .help =
          "time after which a Task fails if its pod cannot start, for example without an image" },
    { OPTION("job-result-secrets", OPTION_BOOL, job_result_secrets, "false"),
      .help = "read results of Jobs from Secrets, too; requires rbac/job-result-secrets" },
    { OPTION("max-result-bytes", OPTION_INT, max_result_bytes, "262144"), .min = 1, .max = 1 << 20,
      .help = "size of a result in bytes above which its Task fails" },
    { OPTION("scheduler", OPTION_CHOICE, scheduler, "round-robin"), .choices = SCHEDULER_NAMES,
      .help = "strategy to choose a Proplet" },
    { OPTION("workers", OPTION_STRING, workers, NULL), .value_name = "LIST",
      .help = "number of parallel reconciles for each kind" },
    { OPTION("status-refresh-interval", OPTION_DURATION, refresh.interval_ms, "1m"), .min = 100,
      .max = DAY_MS,
      .help = "minimum time between two refreshes of lastSeen, counts and metrics of an object" },
    { OPTION("status-refresh-qps", OPTION_DOUBLE, refresh.qps, "10"), .min = 1, .max = 10000,
      .help = "maximum number of refreshes per second, for all Proplets and Tasks together" },

    { OPTION("coordinator-url", OPTION_STRING, coordinator_url, NULL), .value_name = "URL",
      .help = "URL of the coordinator for devices; http:// or https://, without a trailing slash" },
    { OPTION("manage-webhook-certificates", OPTION_BOOL, manage_certificates, "true"),
      .help = "create and renew the certificates of the webhook, and set the caBundle of its "
              "configurations" },
    CERT_OPTIONS(struct controller_settings, certificates),

    { OPTION("uninstall", OPTION_BOOL, uninstall, "false"),
      .help = "remove the webhook configurations and every object of the five kinds, then end" },
    { OPTION("uninstall-timeout", OPTION_DURATION, uninstall_timeout_ms, "60s"), .min = 1000,
      .max = DAY_MS,
      .help = "time limit of --uninstall; finalizers that are left after three quarters of it are "
              "removed" },
};

/* The names of what is reconciled: "a, b", or with numbers "a=1,b=2". */
static const char *list_workers(struct arena *arena, bool with_numbers)
{
    const char *text = "";

    for (size_t i = 0; MODULES[i]; i++) {
        const struct module *module = MODULES[i];
        const char *comma = !*text ? "" : with_numbers ? "," : ", ";

        if (module->reconcile && with_numbers)
            text = arena_printf(arena, "%s%s%s=%u", text, comma, module->name, module->workers);
        else if (module->reconcile)
            text = arena_printf(arena, "%s%s%s", text, comma, module->name);
    }
    return text;
}

static int parse_worker(struct arena *arena, const char *item, size_t len,
                        struct controller_settings *ret, struct error *err)
{
    const char *equals = memchr(item, '=', len);
    size_t name_len = equals ? (size_t)(equals - item) : len;
    const char *name = arena_strndup(arena, item, name_len);
    char number[8] = "";
    int64_t value = 0;

    if (equals && len - name_len - 1 < sizeof(number))
        memcpy(number, equals + 1, len - name_len - 1);
    if (!str_to_int64(number, &value) || value < 1 || value > MAX_WORKERS)
        return error_set(err, ERROR_INVALID, "--workers: '%.*s' is not KIND=N with N from 1 to %d",
                         (int)len, item, MAX_WORKERS);

    for (size_t i = 0; MODULES[i]; i++) {
        if (MODULES[i]->reconcile && str_equal(MODULES[i]->name, name)) {
            ret->workers_of[i] = (unsigned)value;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID, "--workers: no kind '%s' (allowed: %s)", name,
                     list_workers(arena, false));
}

static int parse_workers(struct arena *arena, struct controller_settings *ret, struct error *err)
{
    for (size_t i = 0; MODULES[i]; i++)
        ret->workers_of[i] = MODULES[i]->workers;
    for (const char *list = ret->workers; *list;) {
        size_t len = strcspn(list, ",");
        int r = parse_worker(arena, list, len, ret, err);
        if (r < 0)
            return r;
        list += len + (list[len] == ',');
    }
    return 0;
}

static int check_mqtt_address(const char *address, struct error *err)
{
    char *host = NULL;
    uint16_t port;
    bool tls;

    if (str_is_empty(address))
        return 0; /* external dispatch is off */
    int r = mqtt_address_parse(address, &host, &port, &tls, err);
    if (r < 0)
        return error_wrap(err, "--mqtt-address");
    free(host);
    return 0;
}

bool controller_url_is_usable(const char *url)
{
    return (str_has_prefix(url, "http://") || str_has_prefix(url, "https://")) &&
           !str_has_suffix(url, "/") && strlen(url) <= CONTROLLER_MAX_URL;
}

/* Each once: a list and a watch belong to each. */
static int check_namespaces(struct str_list *namespaces, struct error *err)
{
    size_t count = 0;

    for (size_t i = 0; i < namespaces->len; i++) {
        const char *ns = namespaces->items[i];
        bool is_new = true;

        if (!str_is_dns_label(ns))
            return error_set(err, ERROR_INVALID,
                             "--namespace: '%.64s' is no namespace (lower-case letters, digits "
                             "and '-', at most 63)",
                             ns);
        for (size_t j = 0; j < count; j++)
            is_new = is_new && !str_equal(namespaces->items[j], ns);
        if (is_new)
            namespaces->items[count++] = ns;
    }
    namespaces->len = count;
    return 0;
}

/* Whole seconds, as devices take it. */
static int64_t default_liveliness_ms(int64_t threshold_ms)
{
    int64_t third_s = threshold_ms / 3000;

    if (third_s < 1)
        return 1000;
    return third_s < DEFAULT_LIVELINESS_S ? third_s * 1000 : DEFAULT_LIVELINESS_S * 1000;
}

/* Nobody is to count as silent between two heartbeats. */
static int settle_liveliness(struct controller_settings *settings, struct error *err)
{
    if (!settings->liveliness_interval_ms)
        settings->liveliness_interval_ms = default_liveliness_ms(settings->last_seen_threshold_ms);
    else if (settings->liveliness_interval_ms * 2 > settings->last_seen_threshold_ms)
        return error_set(err, ERROR_INVALID,
                         "--liveliness-interval: twice it must not be more than "
                         "--last-seen-threshold");
    return 0;
}

static int check_together(const struct controller_settings *settings, struct error *err)
{
    if (settings->renew_deadline_ms >= settings->lease_duration_ms)
        return error_set(err, ERROR_INVALID,
                         "--leader-elect-renew-deadline: must be less than "
                         "--leader-elect-lease-duration");
    if (settings->retry_period_ms * 6 / 5 >= settings->renew_deadline_ms)
        return error_set(err, ERROR_INVALID,
                         "--leader-elect-retry-period: 1.2 times it must be less than "
                         "--leader-elect-renew-deadline");
    if (!settings->domain_id != !settings->channel_id)
        return error_set(err, ERROR_INVALID, "--domain-id and --channel-id: give both or neither");
    if (settings->client_key && settings->client_key_file)
        return error_set(err, ERROR_INVALID,
                         "--client-key and --client-key-file: give one of them");
    if (!settings->mqtt_cert_file != !settings->mqtt_key_file)
        return error_set(err, ERROR_INVALID,
                         "--mqtt-cert-file and --mqtt-key-file: give both or neither");
    if (str_is_empty(settings->client_id))
        return error_set(err, ERROR_INVALID, "--client-id: must not be empty");
    return check_mqtt_address(settings->mqtt_address, err);
}

/* The flags of all and of each module are one table, which fills one block: the structs one behind the other. */
struct flags {
    struct option *table;
    size_t len, size;
    size_t offset_of[MODULES_MAX]; /* in the block; 0: the module has no flags */
};

static void add_flags(struct flags *flags, const struct option *table, size_t len, size_t size)
{
    for (size_t i = 0; i < len; i++) {
        flags->table[flags->len] = table[i];
        flags->table[flags->len++].offset += flags->size;
    }
    flags->size += (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
}

static void collect_flags(struct arena *arena, struct flags *ret)
{
    size_t count = ARRAY_LEN(OPTIONS);

    for (size_t i = 0; MODULES[i]; i++)
        count += MODULES[i]->flags ? MODULES[i]->flags->len : 0;
    ret->table = arena_array(arena, struct option, count);
    add_flags(ret, OPTIONS, ARRAY_LEN(OPTIONS), sizeof(struct controller_settings));
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
        if (ret->table[i].offset == offsetof(struct controller_settings, workers))
            ret->table[i].fallback = list_workers(arena, true);
    }
    for (size_t i = 0; MODULES[i]; i++) {
        const struct module_flags *own = MODULES[i]->flags;

        ret->offset_of[i] = own ? ret->size : 0;
        if (own)
            add_flags(ret, own->table, own->len, own->size);
    }
}

const struct option *controller_options_list(struct arena *arena, size_t *ret_len)
{
    struct flags flags = { .table = NULL };

    collect_flags(arena, &flags);
    *ret_len = flags.len;
    return flags.table;
}

/* The value of --enable-<extension>. */
static bool is_on(const struct flags *flags, const char *block, const char *extension)
{
    static const char PREFIX[] = "enable-";

    for (size_t i = 0; i < flags->len; i++) {
        const struct option *option = &flags->table[i];

        if (str_has_prefix(option->name, PREFIX) &&
            str_equal(option->name + strlen(PREFIX), extension))
            return *(const bool *)(block + option->offset);
    }
    assert(!extension); /* its modules have no such flag */
    return true;
}

/* Of a module, whose flags may turn it on. */
static bool is_module_on(const struct flags *flags, const char *block, const struct module *module,
                         const void *own)
{
    return is_on(flags, block, module->extension) && (!module->is_on || module->is_on(own));
}

static int check_modules(const struct controller_settings *settings, struct error *err)
{
    int r = 0;

    for (size_t i = 0; MODULES[i] && r == 0; i++) {
        if (MODULES[i]->flags && MODULES[i]->flags->check)
            r = MODULES[i]->flags->check(settings, settings->flags_of[i], err);
    }
    return r;
}

static const struct option_program PROGRAM = {
    .name = "propeller-controller",
    .about = "Runs WebAssembly modules on devices, controlled by Kubernetes objects.",
    .examples = { "propeller-controller --mqtt-address mqtts://broker.example:8883 "
                  "--client-key-file key",
                  "propeller-controller --kubeconfig config --namespace lab --leader-elect=false" },
    .manual = "propeller-controller(8)",
};

int controller_options_parse(struct arena *arena, int argc, char *const *argv,
                             struct controller_settings *ret, struct error *err)
{
    struct flags flags = { .table = NULL };

    collect_flags(arena, &flags);
    char *block = arena_alloc(arena, flags.size, 1);
    int r = options_parse(arena, &PROGRAM, flags.table, flags.len, argc, argv, block, err);
    if (r != 0)
        return r;

    memcpy(ret, block, sizeof(*ret));
    for (size_t i = 0; MODULES[i]; i++) {
        ret->flags_of[i] = flags.offset_of[i] ? block + flags.offset_of[i] : NULL;
        ret->is_on[i] = is_module_on(&flags, block, MODULES[i], ret->flags_of[i]);
    }
    r = parse_workers(arena, ret, err);
    if (r < 0)
        return r;
    r = check_namespaces(&ret->namespaces, err);
    if (r < 0)
        return r;
    r = settle_liveliness(ret, err);
    if (r < 0)
        return r;
    r = check_together(ret, err);
    if (r == 0)
        r = check_modules(ret, err);
    if (r < 0)
        return r;

    struct cert_policy policy; /* what stands in for the namespace is known to the process alone */
    return cert_policy_create(arena, &ret->certificates, "default", &policy, err);
}
