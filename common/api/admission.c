#include "common/api/admission.h"

#include <assert.h>

#include "common/api/kinds.h"
#include "common/schema/crds.h"

const struct admission ADMISSION[] = {
    { &KIND_TASK, task_default, task_validate, task_validate_status, NULL, NULL },
    { &KIND_PROPLET, proplet_default, proplet_validate, NULL, NULL, NULL },
    { &KIND_PROPELLERJOB, propellerjob_default, propellerjob_validate, NULL,
      propellerjob_validate_labels, NULL },
    { &KIND_FEDERATEDJOB, federatedjob_default, federatedjob_validate, NULL, NULL, NULL },
    { &KIND_TRAININGROUND, NULL, traininground_validate, NULL, NULL, NULL },
    { &KIND_ENROLLMENT, NULL, enrollment_validate, NULL, NULL, NULL },
    { &KIND_VMAFXJOB, NULL, vmafxjob_validate, NULL, NULL, "vmafx" },
    { &KIND_VMAFXNODE, NULL, NULL, NULL, NULL, "vmafx" },
    { .kind = NULL },
};

/* The environment often holds passwords; modules are too long to read. */
static const char *const HIDDEN[] = { "clientKey", "env", "file", NULL };

const struct schema *admission_schema(struct arena *arena, const struct admission *admission)
{
    const struct schema *schema;
    const cJSON *crd;
    struct error err = { 0 };

    int r = crd_parse(arena, admission->kind->plural, &crd, &err);
    assert(r == 0);

    const cJSON *version = json_first(json_path(crd, "spec", "versions", NULL));
    r = schema_parse(arena,
                     json_path(version, "schema", "openAPIV3Schema", "properties", "spec", NULL),
                     NULL, &schema, &err);
    assert(r == 0);
    return schema;
}

static void validate_spec_of(const struct admission *admission, const struct schema *schema,
                             const struct validation *validation)
{
    const struct schema_manners manners = { .nulls_are_absent = true, .hidden = HIDDEN };
    const cJSON *spec = json_get(validation->object, "spec");

    if (!spec || cJSON_IsNull(spec))
        field_error_plain(validation->errors, FIELD_ERROR_REQUIRED, "spec", NULL);
    else
        schema_validate_part(schema, "spec", spec, &manners, validation->errors);
    if (!field_errors_count(validation->errors) && admission->validate)
        admission->validate(validation);
}

void admission_validate(const struct admission *admission, const struct schema *schema,
                        const struct validation *validation)
{
    if (!validation_is_settled(validation))
        validate_spec_of(admission, schema, validation);
    if (!field_errors_count(validation->errors) && admission->validate_labels)
        admission->validate_labels(validation);
}
