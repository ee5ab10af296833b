#include "common/api/federatedjob.h"
#include "common/api/policy.h"
#include "common/api/validate_internal.h"
#include "common/base/str.h"

#define MAX_INTERVAL_MS INT64_C(86400000)

static void check_interval(const struct spec_view *view, const char *interval)
{
    int64_t ms = 0;

    if (interval && (!str_to_duration_ms(interval, &ms) || ms > MAX_INTERVAL_MS))
        field_error(view->validation->errors, FIELD_ERROR_INVALID, "spec.checkpoint.interval",
                    json_get(spec_json(view, "checkpoint"), "interval"), "must be at most 24h");
}

static void check_uri(const struct spec_view *view, const char *uri)
{
    const char *ns =
        json_string(json_path(view->validation->object, "metadata", "namespace", NULL), "");
    const char *problem =
        federatedjob_export_problem(federatedjob_export_uri(view->validation->arena, uri, ns), ns);

    if (problem)
        field_error(view->validation->errors, FIELD_ERROR_INVALID, "spec.checkpoint.uri",
                    json_get(spec_json(view, "checkpoint"), "uri"), "%s", problem);
}

void federatedjob_validate(const struct validation *validation)
{
    const struct federatedjob_spec *spec = validate_spec(validation, &FEDERATEDJOB_SPEC);
    const struct spec_view view = spec_view_of(validation);

    if (!spec)
        return;
    policy_validate_training(&view);
    if (!str_is_empty(spec->task_wasm_image) && policy_is_by_tag(spec->task_wasm_image))
        field_warning(validation->errors, "spec.taskWasmImage",
                      "participants may get different modules: use a digest");
    if (spec->checkpoint)
        check_interval(&view, spec->checkpoint->interval);
    if (spec->checkpoint && spec->checkpoint->uri)
        check_uri(&view, spec->checkpoint->uri);
    validate_k_of_n(&view, &spec->k_of_n, spec->participants.len);
    advise_round(&view, spec->aggregator, &spec->timeout_seconds);
    if (spec->rounds && !str_is_empty(spec->rounds->strategy) &&
        !str_equal(spec->rounds->strategy, "sequential"))
        field_warning(validation->errors, "spec.rounds.strategy", "not known, sequential is used");
    for (size_t i = 0; i < spec->participants.len; i++)
        advise_proplet_name(&view, "participants", federatedjob_participant(spec, i)->proplet_id);
}
