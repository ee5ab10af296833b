/* The flags of propeller-webhook. */
#pragma once

#include "common/api/policy.h"
#include "common/runtime/options.h"

struct webhook_settings {
    const char *log_level;
    const char *log_format;
    int64_t port;
    const char *cert_dir;
    const char *metrics_address;
    const char *health_address;
    int64_t max_connections;
    int64_t max_inline_wasm;
    bool enable_vmafx;
    int64_t workers;
    int64_t request_timeout_ms;
    struct admission_policy policy;
};

/* As options_parse: 1 after --help and --version, ERROR_INVALID for what cannot be used. */
int webhook_options_parse(struct arena *arena, int argc, char *const *argv,
                          struct webhook_settings *ret, struct error *err) MUST_CHECK;
