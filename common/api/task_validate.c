#include <string.h>

#include "common/api/cron.h"
#include "common/api/validate_internal.h"
#include "common/base/digest.h"
#include "common/base/str.h"

/* May change while the Task is scheduled or running. */
static const char *const MUTABLE[] = { "suspend", "activeDeadlineSeconds",
                                       "ttlSecondsAfterFinished", "priority" };

static void refuse(const struct spec_view *view, const char *field, const char *problem)
{
    field_error(view->validation->errors, FIELD_ERROR_INVALID, spec_path(view, field),
                spec_json(view, field), "%s", problem);
}

static void require(const struct spec_view *view, const char *field, const char *why)
{
    field_error(view->validation->errors, FIELD_ERROR_REQUIRED, spec_path(view, field), NULL, "%s",
                why);
}

/* --- one workload ----------------------------------------------------------------------------- */

static void check_file(const struct spec_view *view, const char *file)
{
    const struct validation *validation = view->validation;
    const char *path = spec_path(view, "file");
    size_t len = strlen(file);
    size_t module_len = 0;

    if (validation->max_inline_wasm && len > validation->max_inline_wasm) {
        field_error(validation->errors, FIELD_ERROR_TOO_LONG, path, NULL,
                    "may not be more than %zu characters; larger modules need imageUrl",
                    validation->max_inline_wasm);
        return;
    }

    const char *module = base64_decode(validation->arena, file, len, &module_len);
    if (!module)
        field_error(validation->errors, FIELD_ERROR_INVALID, path, NULL,
                    "must be base64 with padding");
    else if (module_len < 4 || memcmp(module, "\0asm", 4) != 0)
        field_error(validation->errors, FIELD_ERROR_INVALID, path, NULL,
                    "must be a WebAssembly module, which begins with the bytes 00 61 73 6d");
}

static void check_source(const struct spec_view *view, const struct task_spec *spec)
{
    bool has_image = !str_is_empty(spec->image_url);

    if (!spec->file && !has_image)
        require(view, "imageUrl", "one of file and imageUrl is needed");
    else if (spec->encrypted && !has_image)
        require(view, "imageUrl", "an encrypted workload needs imageUrl");
    if (spec->file)
        check_file(view, spec->file);
}

static void check_schedule(const struct spec_view *view, const struct task_spec *spec)
{
    struct error err = { 0 };
    struct cron cron;

    if (str_is_empty(spec->schedule)) {
        if (spec->is_recurring)
            require(view, "schedule", "isRecurring needs a schedule");
        return; /* a zone alone means nothing, and does no harm */
    }
    if (strlen(spec->schedule) <= CRON_MAX_TEXT && cron_parse(spec->schedule, &cron, &err) < 0)
        refuse(view, "schedule", err.message);
    if (!str_is_empty(spec->timezone))
        validate_timezone(view, "timezone", spec->timezone);
}

/* The schema lets any value be there: no type of a schema is a string or a number. */
static void check_inputs(const struct spec_view *view, const cJSON *inputs)
{
    size_t index = 0;

    json_for_each (input, inputs) {
        const char *path = arena_printf(view->validation->arena, "inputs[%zu]", index++);
        if (!cJSON_IsString(input) && !json_is_number(input))
            field_error(view->validation->errors, FIELD_ERROR_TYPE, spec_path(view, path), NULL,
                        "must be a string or a number");
    }
}

static void check_checkpoint(const struct spec_view *view, const struct task_spec *spec)
{
    const char *interval = spec->checkpoint->interval;
    int64_t ms = 0;

    if (interval &&
        (!str_to_duration_ms(interval, &ms) || ms < TASK_MIN_CHECKPOINT_SECONDS * 1000 ||
         ms > TASK_MAX_CHECKPOINT_SECONDS * 1000))
        field_error(view->validation->errors, FIELD_ERROR_INVALID,
                    spec_path(view, "checkpoint.interval"),
                    json_get(spec_json(view, "checkpoint"), "interval"), "must be from 10s to 24h");
    if (spec->broadcast)
        refuse(view, "broadcast", "broadcast and checkpoint exclude each other");
    if (spec->encrypted)
        refuse(view, "encrypted", "encrypted and checkpoint exclude each other");
}

void task_spec_validate(const struct spec_view *view, const struct task_spec *spec)
{
    check_source(view, spec);
    policy_validate_workload(view);
    check_inputs(view, spec->inputs);
    check_schedule(view, spec);
    if (spec->monitoring_profile)
        validate_duration(view, "monitoringProfile", "interval", spec->monitoring_profile->interval,
                          false);
    if (spec->broadcast && task_pinned_proplet(spec))
        refuse(view, "broadcast", "broadcast and propletSelector.propletId exclude each other");
    if (spec->restart_policy == RESTART_ALWAYS && !spec->daemon)
        refuse(view, "restartPolicy", "Always is for daemons only");
    if (spec->checkpoint)
        check_checkpoint(view, spec);
}

/* --- a Task ----------------------------------------------------------------------------------- */

static void check_self(const struct spec_view *view, const struct task_spec *spec)
{
    const cJSON *object = view->validation->object;
    const char *name = json_string(json_path(object, "metadata", "name", NULL), NULL);

    for (size_t i = 0; name && i < spec->depends_on.len; i++) {
        if (!str_equal(spec->depends_on.items[i], name))
            continue;
        const char *path = arena_printf(view->validation->arena, "spec.dependsOn[%zu]", i);
        field_error(view->validation->errors, FIELD_ERROR_INVALID, path,
                    json_path(object, "metadata", "name", NULL), "a Task cannot depend on itself");
    }
}

static const cJSON *present(const cJSON *object, const char *field)
{
    const cJSON *value = json_get(object, field);

    return cJSON_IsNull(value) ? NULL : value;
}

static bool may_change(const char *field)
{
    for (size_t i = 0; i < ARRAY_LEN(MUTABLE); i++) {
        if (str_equal(MUTABLE[i], field))
            return true;
    }
    return false;
}

static void check_change(const struct validation *validation, const cJSON *old_spec,
                         const cJSON *spec, const char *field, const char *phase)
{
    if (may_change(field) || json_equal(present(old_spec, field), present(spec, field)))
        return;
    field_error(validation->errors, FIELD_ERROR_FORBIDDEN,
                arena_printf(validation->arena, "spec.%s", field), NULL,
                "cannot change while the Task is %s: only suspend, activeDeadlineSeconds, "
                "ttlSecondsAfterFinished and priority may",
                phase);
}

static void check_changes(const struct validation *validation)
{
    const cJSON *old_spec = json_get(validation->old, "spec");
    const cJSON *spec = json_get(validation->object, "spec");
    const char *phase = json_string(json_path(validation->old, "status", "phase", NULL), NULL);

    if (!str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) &&
        !str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]))
        return;
    json_for_each (field, spec)
        check_change(validation, old_spec, spec, field->string, phase);
    json_for_each (field, old_spec) {
        if (!json_get(spec, field->string))
            check_change(validation, old_spec, spec, field->string, phase);
    }
}

void task_validate(const struct validation *validation)
{
    const struct task_spec *spec = validate_spec(validation, &TASK_SPEC);
    const struct spec_view view = spec_view_of(validation);

    if (!validation_is_settled(validation))
        check_changes(validation);
    if (!spec)
        return;
    task_spec_validate(&view, spec);
    check_self(&view, spec);
    task_spec_advise(&view, spec);
}

/* --- its status ------------------------------------------------------------------------------- */

/* false: no phase that there is. */
static bool read_phase(const char *name, enum task_phase *ret)
{
    for (enum task_phase phase = TASK_PENDING; phase < TASK_PHASES; phase++) {
        if (str_equal(TASK_PHASE_NAMES[phase], name)) {
            *ret = phase;
            return true;
        }
    }
    return false;
}

void task_validate_status(const struct validation *validation)
{
    static const char PATH[] = "status.phase";
    const cJSON *old_value = json_path(validation->old, "status", "phase", NULL);
    const cJSON *value = json_path(validation->object, "status", "phase", NULL);
    enum task_phase from = TASK_PENDING;
    enum task_phase to = TASK_PENDING;

    if (validation_is_deletion(validation))
        return;
    if (!value || cJSON_IsNull(value)) {
        if (json_string(old_value, NULL))
            field_error(validation->errors, FIELD_ERROR_FORBIDDEN, PATH, NULL,
                        "a phase that was set cannot be removed");
        return;
    }
    if (!read_phase(json_string(value, NULL), &to)) {
        field_error(validation->errors, FIELD_ERROR_NOT_SUPPORTED, PATH, value,
                    "must be a phase of a Task");
        return;
    }
    /* an old phase that nobody knows is no reason to keep it */
    if (json_string(old_value, NULL) && !read_phase(json_string(old_value, NULL), &from))
        return;
    if (!task_may_become(from, to))
        field_error(validation->errors, FIELD_ERROR_FORBIDDEN, PATH, NULL,
                    "the phase cannot go from %s to %s", TASK_PHASE_NAMES[from],
                    TASK_PHASE_NAMES[to]);
}
