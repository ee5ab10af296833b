#include "common/api/enrollment.h"
#include "common/api/validate_internal.h"

static void check_change(const struct spec_view *view)
{
    if (view->old && !json_equal(json_get(view->old, "domainId"), spec_json(view, "domainId")))
        field_error(view->validation->errors, FIELD_ERROR_FORBIDDEN, spec_path(view, "domainId"),
                    NULL, "cannot change");
}

void enrollment_validate(const struct validation *validation)
{
    const struct enrollment_spec *spec = validate_spec(validation, &ENROLLMENT_SPEC);
    const struct spec_view view = spec_view_of(validation);

    if (!spec)
        return;
    check_change(&view);
    if ((spec->channel_id != NULL) == spec->channel_per_device)
        field_error(validation->errors, FIELD_ERROR_INVALID, spec_path(&view, "channelId"),
                    spec_json(&view, "channelId"),
                    "exactly one of channelId and channelPerDevice is needed");
    if (spec->approval == APPROVAL_AUTOMATIC &&
        (!spec->max_proplets.set || !spec->match ||
         (!spec->match->client_id_prefix && !spec->match->tags.len)))
        field_error(validation->errors, FIELD_ERROR_INVALID, spec_path(&view, "approval"),
                    spec_json(&view, "approval"),
                    "Automatic needs maxProplets, and clientIdPrefix or tags in match");
}
