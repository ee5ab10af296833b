#include "controller/shared/options.h"

#include <stdlib.h>

#include "common/base/str.h"
#include "common/tests/suite.h"
#include "controller/vmafx/vmafx.h"

#define MAX_ARGS 8
#define DAY_MS INT64_C(86400000)

static struct arena *arena;
static struct controller_settings settings;
static struct error err;

static void set_up(void)
{
    clearenv();
    arena = arena_create();
    settings = (struct controller_settings){ 0 };
    err = (struct error){ 0 };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("options", set_up, tear_down);

/* args: separated by blanks. */
static int parse(const char *args)
{
    char *argv[MAX_ARGS + 1] = { arena_strdup(arena, "propeller-controller") };
    int argc = 1;

    while (*args) {
        size_t len = strcspn(args, " ");
        ck_assert_int_lt(argc, MAX_ARGS);
        argv[argc++] = arena_strndup(arena, args, len);
        args += len + (args[len] == ' ');
    }
    return controller_options_parse(arena, argc, argv, &settings, &err);
}

static void expect_parsed(const char *args)
{
    int r = parse(args);

    ck_assert_msg(r == 0, "%s: %s", args, err.message);
}

static size_t index_of(const char *name)
{
    size_t i = 0;

    while (!str_equal(MODULES[i]->name, name))
        i++;
    return i;
}

static unsigned workers_of(const struct controller_settings *of, const char *name)
{
    return of->workers_of[index_of(name)];
}

TEST(defaults_are_those_of_the_specification)
{
    expect_parsed("");
    ck_assert(settings.leader_elect);
    ck_assert(!settings.use_service_accounts);
    ck_assert_int_eq(settings.lease_duration_ms, 15000);
    ck_assert_int_eq(settings.renew_deadline_ms, 10000);
    ck_assert_int_eq(settings.retry_period_ms, 2000);
    ck_assert_str_eq(settings.metrics_address, ":8080");
    ck_assert_str_eq(settings.health_address, ":8081");
    ck_assert(!settings.debug_endpoint);
    ck_assert_ptr_null(settings.mqtt_address);
    ck_assert_int_eq(settings.mqtt_qos, 1);
    ck_assert_int_eq(settings.mqtt_timeout_ms, 30000);
    ck_assert_str_eq(settings.client_id, "propeller-controller");
    ck_assert_int_eq(settings.last_seen_threshold_ms, 30000);
    ck_assert_int_eq(settings.start_confirm_ms, 30000);
    ck_assert_int_eq(settings.stop_timeout_ms, 30000);
    ck_assert_int_eq(settings.max_result_bytes, 262144);
    ck_assert_str_eq(settings.scheduler, "round-robin");
    ck_assert_int_eq(settings.refresh.interval_ms, 60000);
    ck_assert(settings.refresh.qps > 9.99 && settings.refresh.qps < 10.01);
    ck_assert(settings.kube_api_qps > -0.01 && settings.kube_api_qps < 0.01);
    ck_assert_int_eq(settings.kube_api_burst, 30);
    ck_assert_uint_eq(settings.namespaces.len, 0);
    ck_assert(settings.manage_certificates);
    ck_assert_str_eq(settings.certificates.service, "propeller-webhook");
    ck_assert_str_eq(settings.certificates.configuration, "propeller-webhook");
    ck_assert_ptr_null(settings.certificates.ns);
    ck_assert_int_eq(settings.certificates.leaf_lifetime_ms, 90 * DAY_MS);
    ck_assert_int_eq(settings.certificates.ca_lifetime_ms, 3650 * DAY_MS);
    ck_assert_int_eq(settings.certificates.overlap_ms, 600000);
    ck_assert_uint_ge(workers_of(&settings, "task"), 1);
    ck_assert_uint_ge(workers_of(&settings, "proplet"), 1);
}

TEST(flags_are_taken_in_both_forms)
{
    expect_parsed("--mqtt-address tcp://broker:1883 --mqtt-qos=2 --last-seen-threshold=1m30s");
    ck_assert_str_eq(settings.mqtt_address, "tcp://broker:1883");
    ck_assert_int_eq(settings.mqtt_qos, 2);
    ck_assert_int_eq(settings.last_seen_threshold_ms, 90000);
}

static const struct {
    const char *args;
    int64_t ms;
} HEARTBEATS[] = {
    { "", 10000 },
    { "--last-seen-threshold 1h", 10000 },
    { "--last-seen-threshold 5s", 1000 },
    { "--last-seen-threshold 20s", 6000 },
    { "--last-seen-threshold 100ms", 1000 },
    { "--last-seen-threshold 4s --liveliness-interval 2s", 2000 },
};

TEST_EACH(pods_are_heard_more_often_than_silence_counts, HEARTBEATS)
{
    expect_parsed(HEARTBEATS[_i].args);
    ck_assert_int_eq(settings.liveliness_interval_ms, HEARTBEATS[_i].ms);
}

TEST(environment_is_read_and_flags_win)
{
    setenv("PROPELLER_MQTT_QOS", "0", 1);
    setenv("PROPELLER_CLIENT_ID", "one", 1);
    setenv("WATCH_NAMESPACE", "team-a", 1);
    expect_parsed("--client-id two");
    ck_assert_int_eq(settings.mqtt_qos, 0);
    ck_assert_str_eq(settings.client_id, "two");
    ck_assert_uint_eq(settings.namespaces.len, 1);
    ck_assert_str_eq(settings.namespaces.items[0], "team-a");
}

TEST(each_namespace_counts_once)
{
    expect_parsed("--namespace team-b --namespace team-a,team-b,team-c --namespace=team-a");
    ck_assert_uint_eq(settings.namespaces.len, 3);
    ck_assert_str_eq(settings.namespaces.items[0], "team-b");
    ck_assert_str_eq(settings.namespaces.items[1], "team-a");
    ck_assert_str_eq(settings.namespaces.items[2], "team-c");
}

static const struct {
    const char *args;
    unsigned task, proplet; /* 0: as without the flag */
} WORKERS[] = {
    { "--workers=", 0, 0 },
    { "--workers task=3", 3, 0 },
    { "--workers proplet=64", 0, 64 },
    { "--workers task=1,proplet=7", 1, 7 },
    { "--workers proplet=7,task=1,", 1, 7 },
    { "--workers task=1,task=5", 5, 0 },
};

TEST_EACH(workers_are_given_by_kind, WORKERS)
{
    expect_parsed("");
    struct controller_settings defaults = settings;
    settings = (struct controller_settings){ 0 };
    expect_parsed(WORKERS[_i].args);

    ck_assert_uint_eq(workers_of(&settings, "task"),
                      WORKERS[_i].task ? WORKERS[_i].task : workers_of(&defaults, "task"));
    ck_assert_uint_eq(workers_of(&settings, "proplet"),
                      WORKERS[_i].proplet ? WORKERS[_i].proplet : workers_of(&defaults, "proplet"));
}

TEST(extensions_are_off_until_their_flag_turns_them_on)
{
    expect_parsed("");
    ck_assert(settings.is_on[index_of("task")]);
    ck_assert(!settings.is_on[index_of("vmafxjob")]);
    settings = (struct controller_settings){ 0 };
    expect_parsed("--enable-vmafx");
    ck_assert(settings.is_on[index_of("task")]);
    ck_assert(settings.is_on[index_of("vmafxjob")] && settings.is_on[index_of("vmafxnode")] &&
              settings.is_on[index_of("vmafxmodeltraining")]);
    ck_assert(!settings.is_on[index_of("scheduledmachine")]);
    ck_assert(!settings.is_on[index_of("quota")]);
    expect_parsed("--enable-kueue --namespace a");
    ck_assert(settings.is_on[index_of("quota")]);
    settings = (struct controller_settings){ 0 };
    expect_parsed("--enable-scheduled-machines");
    ck_assert(settings.is_on[index_of("scheduledmachine")] &&
              !settings.is_on[index_of("vmafxjob")]);
}

TEST(modules_of_registries_are_off_until_one_is_named)
{
    expect_parsed("--module-cache-dir /no/such/folder");
    ck_assert(!settings.is_on[index_of("module")]);
}

static const struct vmafx_flags *vmafx_flags(void)
{
    return settings.flags_of[index_of("vmafxjob")];
}

TEST(addresses_of_vmafx_are_those_of_its_services)
{
    expect_parsed("");
    ck_assert_str_eq(vmafx_flags()->grpc_address,
                     "vmafx-controller.{namespace}.svc.cluster.local:9090");
    ck_assert_str_eq(vmafx_flags()->http_address,
                     "http://vmafx-controller.{namespace}.svc.cluster.local:8080");
    ck_assert_str_eq(vmafx_flags()->trainer_url,
                     "http://vmafx-trainer-{name}.{namespace}.svc.cluster.local:9091/status");
    ck_assert_ptr_null(vmafx_flags()->ca_file);
}

TEST(addresses_of_vmafx_are_read_from_its_own_variables)
{
    setenv("VMAFX_CONTROLLER_GRPC_ADDR", "https://vmafx:443", 1);
    setenv("VMAFX_CONTROLLER_HTTP_ADDR", "http://vmafx", 1);
    expect_parsed("");
    ck_assert_str_eq(vmafx_flags()->grpc_address, "https://vmafx:443");
    ck_assert_str_eq(vmafx_flags()->http_address, "http://vmafx");
}

/* The first of them, so that a new kind changes no test. */
#define KINDS "proplet, task, checkpoint, propellerjob, "
#define GRPC_ADDRESS "--vmafx-controller-grpc-address: must be HOST:PORT or https://HOST:PORT"

/* What cannot be used, and what the one line on standard error begins with. */
static const struct {
    const char *args;
    const char *message;
} REFUSED[] = {
    { "--no-such-flag", "unknown flag '--no-such-flag'" },
    { "--mqtt-adress x", "unknown flag '--mqtt-adress' (did you mean '--mqtt-address'?)" },
    { "serve", "unexpected argument 'serve'" },
    { "--kubeconfig", "--kubeconfig: needs a value (--kubeconfig=FILE)" },
    { "--mqtt-qos 3", "--mqtt-qos: '3' is out of range (0 to 2)" },
    { "--mqtt-qos -1", "--mqtt-qos: '-1' is out of range (0 to 2)" },
    { "--mqtt-qos one", "--mqtt-qos: 'one' is not an integer (0 to 2)" },
    { "--mqtt-timeout 30", "--mqtt-timeout: '30' is not a duration" },
    { "--mqtt-timeout 30sec", "--mqtt-timeout: '30sec' is not a duration" },
    { "--mqtt-timeout 0s", "--mqtt-timeout: '0s' is out of range (100ms to 24h)" },
    { "--mqtt-timeout 25h", "--mqtt-timeout: '25h' is out of range (100ms to 24h)" },
    { "--last-seen-threshold=-1s", "--last-seen-threshold: '-1s' is not a duration" },
    { "--start-confirm-timeout 10ms",
      "--start-confirm-timeout: '10ms' is out of range (1s to 24h)" },
    { "--max-result-bytes 0", "--max-result-bytes: '0' is out of range (1 to 1048576)" },
    { "--max-result-bytes 256Ki", "--max-result-bytes: '256Ki' is not an integer (1 to 1048576)" },
    { "--max-result-bytes 1048577",
      "--max-result-bytes: '1048577' is out of range (1 to 1048576)" },
    { "--scheduler random",
      "--scheduler: 'random' is not one of round-robin, priority, least-loaded" },
    { "--webhook-service a.b", "--webhook-service: 'a.b' is no name of a Service" },
    { "--webhook-namespace A", "--webhook-namespace: 'A' is no namespace" },
    { "--webhook-configuration /", "--webhook-configuration: '/' is no name of an object" },
    { "--webhook-extra-name a --webhook-extra-name *.b",
      "--webhook-extra-name: '*.b' is no host name and no IP address" },
    { "--webhook-certificate-lifetime 2s", "--webhook-certificate-lifetime: '2s' is out of range" },
    { "--webhook-certificate-lifetime 2h --webhook-ca-lifetime 1h",
      "--webhook-certificate-lifetime: must not be longer than --webhook-ca-lifetime" },
    { "--log-level loud", "--log-level: 'loud' is not one of trace, debug, info, warn, error" },
    { "--log-format xml", "--log-format: 'xml' is not one of auto, json, text" },
    { "--leader-elect=maybe", "--leader-elect: 'maybe' is neither true nor false" },
    { "--kube-api-burst 0", "--kube-api-burst: '0' is out of range (1 to 10000)" },
    { "--status-refresh-qps 0", "--status-refresh-qps: '0' is out of range (1 to 10000)" },
    { "--status-refresh-qps nan", "--status-refresh-qps: 'nan' is not a number (1 to 10000)" },
    { "--leader-elect-lease-duration 10s",
      "--leader-elect-renew-deadline: must be less than --leader-elect-lease-duration" },
    { "--leader-elect-renew-deadline 15s",
      "--leader-elect-renew-deadline: must be less than --leader-elect-lease-duration" },
    { "--leader-elect-retry-period 9s",
      "--leader-elect-retry-period: 1.2 times it must be less than --leader-elect-renew-deadline" },
    { "--leader-elect-retry-period 5s --leader-elect-renew-deadline 6s",
      "--leader-elect-retry-period: 1.2 times it must be less than --leader-elect-renew-deadline" },
    { "--domain-id d", "--domain-id and --channel-id: give both or neither" },
    { "--coordinator-url http://c:1",
      "--coordinator-bind-address and --coordinator-url: give both or neither" },
    { "--coordinator-bind-address :1 --coordinator-url http://c:1/",
      "--coordinator-url: must be http://HOST[:PORT] or https://HOST[:PORT] without a slash at its "
      "end, of at most 512 characters" },
    { "--coordinator-bind-address :1 --coordinator-url c:1",
      "--coordinator-url: must be http://HOST[:PORT] or https://HOST[:PORT] without a slash at its "
      "end, of at most 512 characters" },
    { "--model-store s3 --s3-bucket b --s3-endpoint http://s",
      "--model-store: s3 needs --s3-endpoint, --s3-bucket and --s3-credentials-file" },
    { "--channel-id c", "--domain-id and --channel-id: give both or neither" },
    { "--client-key k --client-key-file f",
      "--client-key and --client-key-file: give one of them" },
    { "--mqtt-cert-file f", "--mqtt-cert-file and --mqtt-key-file: give both or neither" },
    { "--mqtt-key-file f", "--mqtt-cert-file and --mqtt-key-file: give both or neither" },
    { "--client-id=", "--client-id: must not be empty" },
    { "--last-seen-threshold 3999ms --liveliness-interval 2s",
      "--liveliness-interval: twice it must not be more than --last-seen-threshold" },
    { "--namespace a --namespace B", "--namespace: 'B' is no namespace (lower-case letters" },
    { "--namespace=", "--namespace: '' is a list without a value" },
    { "--namespace a,b_c", "--namespace: 'b_c' is no namespace (lower-case letters" },
    { "--workers task", "--workers: 'task' is not KIND=N with N from 1 to 64" },
    { "--workers task=", "--workers: 'task=' is not KIND=N with N from 1 to 64" },
    { "--workers task=0", "--workers: 'task=0' is not KIND=N with N from 1 to 64" },
    { "--workers task=65", "--workers: 'task=65' is not KIND=N with N from 1 to 64" },
    { "--workers task=-1", "--workers: 'task=-1' is not KIND=N with N from 1 to 64" },
    { "--workers task=1x", "--workers: 'task=1x' is not KIND=N with N from 1 to 64" },
    { "--workers task=00000000001",
      "--workers: 'task=00000000001' is not KIND=N with N from 1 to 64" },
    { "--workers =4", "--workers: no kind '' (allowed: " KINDS },
    { "--workers tasks=4", "--workers: no kind 'tasks' (allowed: " KINDS },
    { "--workers tas=4", "--workers: no kind 'tas' (allowed: " KINDS },
    { "--vmafx-controller-grpc-address=", GRPC_ADDRESS },
    { "--vmafx-controller-grpc-address http://vmafx:9090", GRPC_ADDRESS },
    { "--vmafx-controller-grpc-address https://vmafx:443/", GRPC_ADDRESS },
    { "--vmafx-controller-http-address vmafx:8080",
      "--vmafx-controller-http-address: must begin with http:// or https://" },
    { "--vmafx-controller-http-address http://vmafx:8080/",
      "--vmafx-controller-http-address: must begin with http:// or https://" },
    { "--vmafx-trainer-url trainer/status",
      "--vmafx-trainer-url: must begin with http:// or https://" },
    { "--enable-scheduled-machines --namespace a",
      "--enable-scheduled-machines: not together with --namespace" },
    { "--module-registries r.example --module-cache-bytes 40000000",
      "--module-cache-bytes: must be at least twice --module-max-bytes" },
    { "--module-registries r.example --module-max-bytes 1048576 --module-rate 8192",
      "--module-rate: --module-max-bytes must not need more than 120 s" },
    { "--module-max-bytes 104857601",
      "--module-max-bytes: '104857601' is out of range (1024 to 104857600)" },
    { "--module-pull-timeout 0s", "--module-pull-timeout: '0s' is out of range (1s to 24h)" },
    { "--workers ,task=1", "--workers: '' is not KIND=N with N from 1 to 64" },
};

TEST_EACH(unusable_value_is_refused_in_one_line_that_names_the_flag, REFUSED)
{
    ck_assert_int_eq(parse(REFUSED[_i].args), -ERROR_INVALID);
    ck_assert_msg(str_has_prefix(err.message, REFUSED[_i].message), "%s", err.message);
    ck_assert_ptr_null(strchr(err.message, '\n'));
}

TEST_TIMES(flags_that_go_together_are_accepted, 7)
{
    static const char *const ARGS[] = {
        "--client-key k",
        "--client-key-file f",
        "--domain-id d --channel-id c",
        "--coordinator-bind-address :8090 --coordinator-url http://propeller.example:8090",
        "--mqtt-cert-file f --mqtt-key-file f",
        "--leader-elect-retry-period 5s --leader-elect-renew-deadline 6001ms",
        "--leader-elect-lease-duration 10001ms",
        "--namespace a",
    };

    expect_parsed(ARGS[_i]);
}

TEST_TIMES(key_is_never_in_a_message, 3)
{
    static const char *const ARGS[] = {
        "--client-key hunter2 --client-key-file f",
        "--client-key=hunter2 --mqtt-qos 7",
        "--client-key hunter2 hunter2",
    };

    ck_assert_int_eq(parse(ARGS[_i]), -ERROR_INVALID);
    ck_assert_ptr_null(strstr(err.message, "hunter2"));
}
