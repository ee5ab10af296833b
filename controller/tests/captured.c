#include "controller/tests/captured.h"

const struct captured_result RESULTS[CAPTURED_RESULTS] = {
    { "device/fl-results-default-format.json", "t-fl2", "proplet-1",
      "{\"format\":\"f32-delta\",\"metrics\":{},\"num_samples\":1,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"2\",\"task_id\":\"t-fl2\",\"update_b64\":\"NDI=\"}",
      NULL },
    { "device/fl-results-error.json", "t-fl4", "proplet-1",
      "{\"format\":\"f32-delta\",\"metrics\":{},\"num_samples\":1,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"4\",\"task_id\":\"t-fl4\",\"update_b64\":\"\"}",
      SOME_ERROR },
    { "device/fl-results.json", "t-fl1", "proplet-1",
      "{\"format\":\"json-f64\",\"metrics\":{},\"num_samples\":64,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"round-1\",\"task_id\":\"t-fl1\",\"update_b64\":\"NDI=\"}",
      NULL },
    { "device/mcu/results-error-garbage.bin", "t-20", NULL, "\"\"",
      "\xef\xbf\xbd \xef\xbf\xbd? \xef\xbf\xbd" }, /* any bytes, made text */
    { "device/mcu/results-completed-multi.json", "t-18", NULL, "\"1,2\"", NULL },
    { "device/mcu/results-completed.json", "t-17", NULL, "\"42\"", NULL },
    { "device/mcu/results-error.json", "t-19", NULL, "\"\"",
      "WASM execution failed: Exception: unreachable" },
    { "device/mcu/results-fl-train-error.json", "t-21", "mcu-1",
      "{\"task_id\":\"t-21\",\"round_id\":\"round-1\",\"proplet_id\":\"mcu-1\",\"num_samples\":64,"
      "\"update_b64\":\"\",\"format\":\"f32-delta\",\"metrics\":{}}",
      "WASM execution failed: Exception: unreachable" },
    { "device/mcu/results-fl-train.json", "t-21", "mcu-1",
      "{\"task_id\":\"t-21\",\"round_id\":\"round-1\",\"proplet_id\":\"mcu-1\",\"num_samples\":64,"
      "\"update_b64\":\"NDI=\",\"format\":\"json-f64\",\"metrics\":{}}",
      NULL },
    { "device/results-after-stop-while-fetching.json", "reg-stop", "proplet-2", "\"42\"", NULL },
    { "device/results-broadcast-1.json", "bc-1", "proplet-2", "\"42\"", NULL },
    { "device/results-broadcast-2.json", "bc-1", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-broadcast.json", "t-bc", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-component.json", "t-comp", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-f32.json", "t-f32", "proplet-1", "\"0.3\"", NULL },
    { "device/results-completed-f64.json", "t-f64", "proplet-1", "\"3.75\"", NULL },
    { "device/results-completed-fallback.json", "t-fallback", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-http.json", "t-http", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-i64.json", "t-i64", "proplet-1", "\"9007199254740994\"", NULL },
    { "device/results-completed-multi.json", "t-pair", "proplet-1", "\"2\"", NULL },
    { "device/results-completed-nulls.json", "t-null", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-registry.json", "t-reg", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-unknown-fields.json", "t-unk", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-void.json", "t-void", "proplet-1", "\"\"", NULL },
    { "device/results-completed-wasi-stdout.json", "t-hello", "proplet-1", "\"\"", NULL },
    { "device/results-completed.json", "t-add", "proplet-1", "\"42\"", NULL },
    { "device/results-daemon-started.json", "t-daemon", "proplet-1", "\"\"", NULL },
    { "device/results-error-arg-count.json", "t-argc", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-arg-parse.json", "t-argp", "proplet-1", "\"\"",
      "Failed to parse 'abc' as i32: invalid digit found in string" },
    { "device/results-error-bad-base64.json", "t-badb64", "proplet-1", "\"\"",
      "Invalid symbol 33, offset 0." },
    { "device/results-error-bad-wasm.json", "t-badwasm", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-base64-padding.json", "t-b64nopad", "proplet-1", "\"\"",
      "Invalid padding" },
    { "device/results-error-component-no-export.json", "t-compno", "proplet-1", "\"\"",
      "Export 'nosuch' not found in component for task t-compno" },
    { "device/results-error-encrypted-no-tee.json", "t-enc", "proplet-1", "\"\"",
      "TEE runtime not available" },
    { "device/results-error-http-404.json", "t-http404", "proplet-1", "\"\"",
      "HTTP 404 Not Found fetching wasm from http://127.0.0.1:18845/none" },
    { "device/results-error-http-type.json", "t-httptxt", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-latent-core.json", "t-latcore", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-missing-import.json", "t-import", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-registry-timeout.json", "t-regtimeout", "proplet-1", "\"\"",
      "Timeout waiting for binary chunks" },
    { "device/results-error-stopped.json", "t-stop", "proplet-1", "\"\"",
      "Task was cancelled or panicked" },
    { "device/results-error-trap-div0.json", "t-div0", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-trap.json", "t-trap", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error.json", "t-nofn", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-train-without-round.json", "t-fl6", "proplet-1", "\"42\"", NULL },
};

const struct captured_alive ALIVE[CAPTURED_ALIVE] = {
    { "device/alive.json", "proplet-1", true },
    { "device/mcu/alive.json", "mcu-1", true },
    { "device/mcu/alive-lwt.json", "mcu-1", false },
    { "device/manager/alive-lwt-manager.json", "manager-1", false },
    { "device/manager/alive-lwt-operator.json", "manager-1", false },
};

const struct captured_create CREATES[CAPTURED_CREATES] = {
    { "device/create.json", "proplet-1",
      "{\"description\":\"bench device\",\"tags\":[\"gateway\",\"prod\"],\"location\":\"rack-7\","
      "\"ip\":\"192.0.2.2\",\"environment\":\"docker\",\"os\":\"linux\",\"hostname\":\"vm\","
      "\"cpuArch\":\"x86_64\",\"totalMemoryBytes\":25276510208,\"propletVersion\":\"0.5.0\","
      "\"wasmRuntime\":\"wasmtime-internal\"}" },
    { "device/mcu/create.json", "mcu-1",
      "{\"description\":\"ESP32-S3 embed-proplet\",\"tags\":[\"embedded\",\"esp32s3\",\"zephyr\"],"
      "\"location\":\"dev-bench\",\"ip\":\"192.0.2.44\",\"environment\":\"embedded\","
      "\"os\":\"zephyr\",\"hostname\":\"zephyr\",\"cpuArch\":\"xtensa\",\"totalMemoryBytes\":"
      "524288,"
      "\"propletVersion\":\"0.1.0-PROP-103\",\"wasmRuntime\":\"wamr\"}" },
};

const struct captured_task_metrics TASK_METRICS[CAPTURED_TASK_METRICS] = {
    { "device/task_metrics-first-sample.json", "t-slow", "proplet-1", DIALECT_STANDARD,
      "\"cpuMilliPercent\":22,\"memoryBytes\":34324480}" },
    { "device/task_metrics.json", "t-slow", "proplet-1", DIALECT_STANDARD,
      "\"cpuMilliPercent\":65641,\"memoryBytes\":34328576}" },
    { "device/task_metrics-no-history.json", "ns-1", "proplet-1", DIALECT_STANDARD,
      "\"cpuMilliPercent\":199,\"memoryBytes\":29368320}" },
    { "device/mcu/task_metrics.json", "t-17", "mcu-1", DIALECT_EMBEDDED,
      "\"cpuMilliPercent\":0,\"memoryMilliPercent\":28125,\"memoryBytes\":18432}" },
};

const struct captured_metrics METRICS[CAPTURED_METRICS] = {
    { "device/metrics.json", "proplet-1", "\"cpuMilliPercent\":84763,\"memoryBytes\":20828160}" },
    { "device/mcu/metrics.json", "mcu-1",
      "\"cpuMilliPercent\":0,\"memoryMilliPercent\":28125,\"memoryBytes\":18432}" },
};

const struct captured_passing PASSING[CAPTURED_PASSING] = {
    { "passing/fl-rounds-start.json", "m/d/c/c/fl/rounds/start" },
    { "passing/fl-update-number.txt", "fl/rounds/2/updates/proplet-1" },
    { "passing/invoke.json", "m/d/c/c/control/manager/invoke" },
    { "passing/invoke_results-completed.json", "m/d/c/c/control/proplet/invoke_results" },
    { "passing/invoke_results-error.json", "m/d/c/c/control/proplet/invoke_results" },
    { "passing/invoke_results-no-invocation-id.json", "m/d/c/c/control/proplet/invoke_results" },
    { "passing/invoke_results-not-precompiled.json", "m/d/c/c/control/proplet/invoke_results" },
    { "passing/mcu-fl-update-error.json", "fl/rounds/round-1/updates/mcu-1" },
    { "passing/mcu-fl-update.json", "fl/rounds/round-1/updates/mcu-1" },
    { "passing/mcu-registry-request.json", "m/d/c/c/registry/proplet" },
    { "passing/mcu-registry-server.json", "m/d/c/c/registry/server" },
    { "passing/registry-request.json", "m/d/c/c/registry/proplet" },
    { "passing/registry-server-chunk-0.json", "m/d/c/c/registry/server" },
    { "passing/registry-server-chunk-1.json", "m/d/c/c/registry/server" },
    { "passing/start-manager.json", "m/d/c/c/control/manager/start" },
    { "passing/stop-manager.json", "m/d/c/c/control/manager/stop" },
};
