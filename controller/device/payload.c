#include "controller/device/payload.h"

#include <string.h>

#include "common/api/embedded.h"
#include "common/base/digest.h"
#include "common/base/str.h"

/* The Linux device decodes strings only; digits stay as the user wrote them. */
static void add_inputs_as_strings(struct arena *arena, cJSON *payload, const cJSON *inputs)
{
    cJSON *list = json_set_array(payload, "inputs");

    json_for_each (input, inputs) {
        if (cJSON_IsString(input))
            json_add_string(list, json_string(input, ""));
        else
            json_add_string(list, json_text(arena, input, NULL));
    }
}

static int add_embedded(struct arena *arena, cJSON *payload, const struct start_request *request,
                        struct error *err)
{
    const struct task_spec *task = request->task;
    const char *problem = embedded_problem(arena, task);
    if (problem)
        return error_set(err, ERROR_INVALID, "%s", problem);

    cJSON *list = json_set_array(payload, "inputs");
    json_for_each (input, task->inputs)
        json_add(list, json_copy(embedded_input(arena, input)));
    if (json_len(task->env))
        json_set_copy(payload, "env", task->env);
    if (request->module_reference) {
        if (!json_len(task->env))
            json_set_object(payload, "env");
        json_set_string((cJSON *)(uintptr_t)json_get(payload, "env"), ENV_MODULE_REFERENCE,
                        request->module_reference);
    }
    return 0;
}

void payload_set_monitoring(cJSON *to, const struct monitoring_profile *profile)
{
    int64_t seconds = (task_monitoring_interval_ms(profile) + 999) / 1000;
    json_set_bool(to, "enabled", !profile->enabled.set || profile->enabled.value);
    json_set_int(to, "interval", seconds < 1 ? 1 : seconds); /* 0 panics the device's sampler */
    json_set_bool(to, "collect_cpu", !profile->collect_cpu.set || profile->collect_cpu.value);
    json_set_bool(to, "collect_memory",
                  !profile->collect_memory.set || profile->collect_memory.value);
    json_set_bool(to, "collect_disk_io", profile->collect_disk_io.value);
    json_set_bool(to, "collect_threads", profile->collect_threads.value);
    json_set_bool(to, "collect_file_descriptors", profile->collect_file_descriptors.value);
    json_set_bool(to, "export_to_mqtt",
                  !profile->export_to_mqtt.set || profile->export_to_mqtt.value);
    json_set_bool(to, "retain_history", profile->retain_history.value);
    json_set_int(to, "history_size", profile->history_size.set ? profile->history_size.value : 0);
}

/* It names the attempt, so it is not part of the Task. */
static void add_coordinator(struct arena *arena, cJSON *env, const struct start_request *request)
{
    if (request->task->kind != TASK_KIND_FEDERATED || !json_get(env, "ROUND_ID") ||
        json_get(env, "MANAGER_COORDINATOR_URL"))
        return;
    json_set_string(env, "MANAGER_COORDINATOR_URL",
                    str_is_empty(request->coordinator_url)
                        ? PAYLOAD_NO_COORDINATOR
                        : arena_printf(arena, "%s" PAYLOAD_COORDINATOR_PATH "%s",
                                       request->coordinator_url, request->message_id));
}

static void add_environment(struct arena *arena, cJSON *payload,
                            const struct start_request *request)
{
    cJSON *env = json_set_object(payload, "env");

    json_for_each (item, request->task->env)
        json_set_string(env, item->string, json_string(item, ""));
    json_for_each (item, request->checkpoint)
        json_set_string(env, item->string, json_string(item, ""));
    if (request->module_reference)
        json_set_string(env, ENV_MODULE_REFERENCE, request->module_reference);
    json_set_string(env, "TASK_ID", request->message_id);
    json_set_string(env, "PROPLET_ID", request->client_id);
    add_coordinator(arena, env, request);
}

static void add_standard(struct arena *arena, cJSON *payload, const struct start_request *request)
{
    const struct task_spec *task = request->task;

    json_set_int(payload, "state",
                 1); /* Scheduled in the manager's numbers; no device acts on it */
    json_set_string(payload, "proplet_id", request->client_id);
    add_inputs_as_strings(arena, payload, task->inputs);
    cJSON *args = json_set_array(payload, "cli_args");
    for (size_t i = 0; i < task->cli_args.len; i++)
        json_add_string(args, task->cli_args.items[i]);
    add_environment(arena, payload, request);
    json_set_bool(payload, "daemon", task->daemon);
    json_set_bool(payload, "broadcast", false);
    json_set_bool(payload, "encrypted", task->encrypted);
    json_set_string(payload, "kbs_resource_path",
                    str_is_empty(task->kbs_resource_path) ? NULL : task->kbs_resource_path);
    if (task->metadata)
        json_set_copy(payload, "metadata", task->metadata);
    if (task->monitoring_profile)
        payload_set_monitoring(json_set_object(payload, "monitoring_profile"),
                               task->monitoring_profile);
}

int payload_start(struct arena *arena, const struct start_request *request, const char **ret,
                  size_t *ret_len, struct error *err)
{
    const struct task_spec *task = request->task;
    bool embedded = request->dialect == DIALECT_EMBEDDED;
    cJSON *payload = json_object(arena);

    json_set_string(payload, "id", request->message_id);
    json_set_string(payload, "name", task_function_name(task, request->object_name));
    if (!str_is_empty(task->file) && !task->encrypted) /* the device drops a start with both */
        json_set_string(payload, "file", task->file);
    else
        json_set_string(payload, "image_url", task->image_url);
    if (task->mode != TASK_MODE_UNSET)
        json_set_string(payload, "mode", TASK_MODE_NAMES[task->mode]);

    if (embedded) {
        int r = add_embedded(arena, payload, request, err);
        if (r < 0)
            return r;
    } else {
        add_standard(arena, payload, request);
    }

    size_t len;
    const char *text = json_text(arena, payload, &len);
    size_t max = embedded ? PAYLOAD_EMBEDDED_MAX : PAYLOAD_STANDARD_MAX;
    if (len > max)
        return error_set(err, ERROR_TOO_LARGE,
                         "the start message has %zu bytes, the device takes %zu", len, max);

    *ret = text;
    *ret_len = len;
    return 0;
}

/* Names are digests and base64 needs no escape, so that no tree is made. */
const char *payload_part(struct arena *arena, const struct module_part *part, size_t *ret_len)
{
    const char *data = base64_encode(arena, part->bytes, part->len);
    const char *text = arena_printf(
        arena, "{\"app_name\":\"%s\",\"chunk_idx\":%zu,\"total_chunks\":%zu,\"data\":\"%s\"}",
        part->name, part->index, part->total, data);

    *ret_len = strlen(text);
    return text;
}

const char *payload_stop(struct arena *arena, const char *message_id, const char *function_name,
                         const char *client_id)
{
    cJSON *payload = json_object(arena);

    json_set_string(payload, "id", message_id);
    json_set_string(payload, "name", function_name);
    json_set_string(payload, "state",
                    "Running"); /* a string: the microcontroller refuses a number here */
    json_set_string(payload, "proplet_id", client_id);
    json_set_bool(payload, "broadcast", false);
    return json_text(arena, payload, NULL);
}
