#include "webhook/options.h"

#include "common/api/validate.h"
#include "common/base/str.h"

#define TEXT(constant) EXPANDED(constant)
#define EXPANDED(text) #text

static const char *const LOG_LEVELS[] = { "trace", "debug", "info", "warn", "error", NULL };
static const char *const LOG_FORMATS[] = { "json", "text", NULL };

#define OPTION(flag, kind, member, value)                                                          \
    .name = (flag), .type = (kind), .offset = offsetof(struct webhook_settings, member),           \
    .fallback = (value)

static const struct option OPTIONS[] = {
    { OPTION("port", OPTION_INT, port, "9443"), .min = 1, .max = 65535,
      .help = "where reviews are served over TLS" },
    { OPTION("cert-dir", OPTION_STRING, cert_dir, "/etc/propeller/webhook"), .value_name = "DIR",
      .help = "tls.crt and tls.key, taken anew when they change" },
    { OPTION("max-connections", OPTION_INT, max_connections, "512"), .min = 1, .max = 10000,
      .help = "connections at once; others wait to be accepted" },
    { OPTION("max-inline-wasm", OPTION_INT, max_inline_wasm, TEXT(VALIDATE_MAX_INLINE_WASM)),
      .min = 1, .max = VALIDATE_MAX_INLINE_WASM,
      .help = "longest spec.file of a Task, in characters of base64" },
    { OPTION("workers", OPTION_INT, workers, "2"), .min = 1, .max = 64,
      .help = "threads that answer reviews" },
    { OPTION("request-timeout", OPTION_DURATION, request_timeout_ms, "10s"), .min = 1000,
      .max = 60000, .help = "a whole request, from its first byte to the end of the answer" },
    { OPTION("metrics-bind-address", OPTION_STRING, metrics_address, ":8080"),
      .value_name = "ADDRESS", .help = "where /metrics is served; 0 is off" },
    { OPTION("health-probe-bind-address", OPTION_STRING, health_address, ":8081"),
      .value_name = "ADDRESS", .help = "where /healthz and /readyz are served; 0 is off" },
    { OPTION("log-level", OPTION_CHOICE, log_level, "info"), .choices = LOG_LEVELS,
      .help = "least severe level logged" },
    { OPTION("log-format", OPTION_CHOICE, log_format, "json"), .choices = LOG_FORMATS,
      .help = "form of a log line" },
};

int webhook_options_parse(struct arena *arena, int argc, char *const *argv,
                          struct webhook_settings *ret, struct error *err)
{
    int r = options_parse(arena, "propeller-webhook",
                          "Validates and defaults Propeller's objects for the API server.", OPTIONS,
                          ARRAY_LEN(OPTIONS), argc, argv, ret, err);
    if (r != 0)
        return r;

    if (str_is_empty(ret->cert_dir))
        return error_set(err, ERROR_INVALID, "--cert-dir: must not be empty");
    return 0;
}
