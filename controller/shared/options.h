/* The controller's command line. */
#pragma once

#include "certs/options.h"
#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/runtime/options.h"
#include "controller/module/module.h"
#include "controller/shared/refresh_budget.h"

struct controller_settings {
    const char *kubeconfig;
    double kube_api_qps; /* not more than 0: no limit */
    int64_t kube_api_burst;
    bool use_service_accounts;
    struct str_list namespaces;
    const char *log_level;
    const char *log_format;

    bool leader_elect;
    int64_t lease_duration_ms;
    int64_t renew_deadline_ms;
    int64_t retry_period_ms;
    const char *election_namespace;

    const char *metrics_address;
    const char *health_address;
    bool debug_endpoint;

    const char *mqtt_address; /* NULL: no MQTT */
    int64_t mqtt_qos;
    int64_t mqtt_timeout_ms;
    const char *mqtt_ca_file, *mqtt_cert_file, *mqtt_key_file;
    const char *domain_id, *channel_id;
    const char *client_id;
    const char *client_key, *client_key_file;

    int64_t liveliness_interval_ms; /* of the pods that are made */
    const char *kbs_uri;            /* of the pods that are made */
    int64_t last_seen_threshold_ms;
    bool allow_pod_template;
    int64_t start_confirm_ms;
    int64_t running_write_delay_ms;
    int64_t stop_timeout_ms;
    int64_t pod_start_ms;
    bool job_result_secrets;
    int64_t max_result_bytes;
    const char *scheduler;
    const char *workers;
    struct refresh_limits refresh;

    const char *coordinator_url; /* the address to which training Tasks send updates; NULL: none */

    bool uninstall; /* in place of running */
    int64_t uninstall_timeout_ms;

    bool manage_certificates;
    struct cert_settings certificates;

    /* In the order of MODULES: parsed from workers, the structs of their own flags (NULL: none), and whether the
     * module is turned on. */
    unsigned workers_of[MODULES_MAX];
    const void *flags_of[MODULES_MAX];
    bool is_on[MODULES_MAX];
};

#define CONTROLLER_MAX_URL 512
/* Whether url begins with http:// or https://, has no slash at its end, and at most CONTROLLER_MAX_URL characters. */
bool controller_url_is_usable(const char *url);

/* The flags of the controller and of all its modules, in the arena. */
const struct option *controller_options_list(struct arena *arena, size_t *ret_len);

/* As options_parse: 1 for --help and --version; ERROR_INVALID names the flag. */
int controller_options_parse(struct arena *arena, int argc, char *const *argv,
                             struct controller_settings *ret, struct error *err) MUST_CHECK;
