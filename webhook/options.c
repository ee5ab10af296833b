#include "webhook/options.h"

#include "common/api/validate.h"
#include "common/base/str.h"
#include "common/runtime/program.h"

#define TEXT(constant) EXPANDED(constant)
#define EXPANDED(text) #text

#define OPTION(flag, kind, member, value)                                                          \
    .name = (flag), .type = (kind), .offset = offsetof(struct webhook_settings, member),           \
    .fallback = (value)

static const struct option OPTIONS[] = {
    { OPTION("port", OPTION_INT, port, "9443"), .min = 1, .max = 65535,
      .help = "TLS port for admission reviews" },
    { OPTION("cert-dir", OPTION_STRING, cert_dir, "/etc/propeller/webhook"), .value_name = "DIR",
      .help = "directory of tls.crt and tls.key; read again when they change" },
    { OPTION("max-connections", OPTION_INT, max_connections, "512"), .min = 1, .max = 10000,
      .help = "maximum number of connections; further clients wait" },
    { OPTION("max-inline-wasm", OPTION_INT, max_inline_wasm, TEXT(VALIDATE_MAX_INLINE_WASM)),
      .min = 1, .max = VALIDATE_MAX_INLINE_WASM,
      .help = "maximum length of spec.file of a Task, in base64 characters" },
    { OPTION("enable-vmafx", OPTION_BOOL, enable_vmafx, "false"),
      .help = "validate VmafxJobs and VmafxNodes, too; requires the entries of config/vmafx" },
    { OPTION("workers", OPTION_INT, workers, "2"), .min = 1, .max = 64,
      .help = "number of threads that answer reviews" },
    { OPTION("request-timeout", OPTION_DURATION, request_timeout_ms, "10s"), .min = 1000,
      .max = 60000,
      .help = "time limit of a request, from its first byte to the end of the answer" },
    { OPTION("metrics-bind-address", OPTION_STRING, metrics_address, ":8080"),
      .value_name = "ADDRESS", .help = "address of /metrics; 0 turns it off" },
    { OPTION("health-probe-bind-address", OPTION_STRING, health_address, ":8081"),
      .value_name = "ADDRESS", .help = "address of /healthz and /readyz; 0 turns it off" },
    POLICY_OPTIONS(struct webhook_settings),
    PROGRAM_LOG_OPTIONS(struct webhook_settings),
};

static const struct option_program PROGRAM = {
    .name = "propeller-webhook",
    .about = "Validates Propeller objects and sets their defaults, for the API server.",
    .examples = { "propeller-webhook --cert-dir /etc/propeller/webhook",
                  "propeller-webhook --cert-dir certs --port 8443 --metrics-bind-address 0" },
    .manual = "propeller-webhook(8)",
};

int webhook_options_parse(struct arena *arena, int argc, char *const *argv,
                          struct webhook_settings *ret, struct error *err)
{
    int r = options_parse(arena, &PROGRAM, OPTIONS, ARRAY_LEN(OPTIONS), argc, argv, ret, err);
    if (r != 0)
        return r;

    if (str_is_empty(ret->cert_dir))
        return error_set(err, ERROR_INVALID, "--cert-dir: must not be empty");
    return admission_policy_check(&ret->policy, err);
}
