#include "common/api/traininground.h"
#include "common/api/validate_internal.h"

void traininground_validate(const struct validation *validation)
{
    const struct traininground_spec *spec = validate_spec(validation, &TRAININGROUND_SPEC);
    const struct spec_view view = spec_view_of(validation);

    if (!spec)
        return;
    policy_validate_training(&view);
    validate_k_of_n(&view, &spec->k_of_n, spec->participants.len);
    advise_round(&view, spec->aggregator, &spec->timeout_seconds);
    for (size_t i = 0; i < spec->participants.len; i++)
        advise_proplet_name(&view, "participants", spec->participants.items[i]);
}
