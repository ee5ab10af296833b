#include "common/api/policy.h"
#include "common/api/validate_internal.h"
#include "common/base/str.h"

static const struct admission_policy *policy_of(const struct validation *validation)
{
    static const struct admission_policy NONE;

    return validation->policy ? validation->policy : &NONE;
}

/* A value that did not change is not refused: a policy that became stricter must not stop other changes. The value
 * may hold credentials, so that the error does not show it. */
static void refuse(const struct spec_view *part, const char *field, const char *problem)
{
    bool is_as_before =
        part->validation->old && str_equal(json_string(json_get(part->json, field), ""),
                                           json_string(json_get(part->old, field), ""));

    if (problem && !is_as_before)
        field_error(part->validation->errors, FIELD_ERROR_FORBIDDEN, spec_path(part, field), NULL,
                    "%s", problem);
}

static const char *text_of(const struct spec_view *part, const char *field)
{
    return json_string(spec_json(part, field), NULL);
}

void policy_validate_workload(const struct spec_view *view)
{
    const struct admission_policy *policy = policy_of(view->validation);
    struct spec_view image = *view;

    /* The inline module was run in place of the address, which is run from now on. */
    if (json_string(json_get(view->old, "file"), NULL) && !text_of(view, "file"))
        image.old = NULL;

    if (text_of(view, "file"))
        refuse(view, "file", policy_inline_problem(view->validation->arena, policy));
    refuse(&image, "imageUrl",
           policy_module_problem(view->validation->arena, policy, text_of(view, "imageUrl")));
}

void policy_validate_training(const struct spec_view *view)
{
    const struct admission_policy *policy = policy_of(view->validation);
    struct arena *arena = view->validation->arena;

    refuse(view, "taskWasmImage",
           policy_module_problem(arena, policy, text_of(view, "taskWasmImage")));
    refuse(view, "modelRef", policy_model_problem(arena, policy, text_of(view, "modelRef")));
}

/* An item of the old list that has the name and the value of this one: it is as before, wherever it stands. NULL: none. */
static const cJSON *as_before(const cJSON *list, const cJSON *item, const char *field)
{
    json_for_each (other, list) {
        if (json_equal(json_get(other, "name"), json_get(item, "name")) &&
            json_equal(json_get(other, field), json_get(item, field)))
            return other;
    }
    return NULL;
}

static void check_containers(const struct spec_view *pods, const char *list)
{
    const struct validation *validation = pods->validation;
    size_t index = 0;

    json_for_each (container, json_get(pods->json, list)) {
        const struct spec_view part = {
            validation, arena_printf(validation->arena, "%s.%s[%zu]", pods->path, list, index++),
            container, as_before(json_get(pods->old, list), container, "image")
        };

        refuse(&part, "image",
               policy_image_problem(validation->arena, policy_of(validation),
                                    text_of(&part, "image")));
    }
}

static void check_image_volumes(const struct spec_view *pods)
{
    const struct validation *validation = pods->validation;
    size_t index = 0;

    json_for_each (volume, json_get(pods->json, "volumes")) {
        const cJSON *old = as_before(json_get(pods->old, "volumes"), volume, "image");
        const struct spec_view part = { validation,
                                        arena_printf(validation->arena, "%s.volumes[%zu].image",
                                                     pods->path, index++),
                                        json_get(volume, "image"), json_get(old, "image") };

        refuse(&part, "reference",
               policy_image_problem(validation->arena, policy_of(validation),
                                    text_of(&part, "reference")));
    }
}

void policy_validate_proplet(const struct spec_view *view)
{
    const struct admission_policy *policy = policy_of(view->validation);
    struct arena *arena = view->validation->arena;
    const struct spec_view k8s = { view->validation, "spec.k8s", json_get(view->json, "k8s"),
                                   json_get(view->old, "k8s") };
    const struct spec_view pods = { view->validation, "spec.k8s.podTemplate.spec",
                                    json_path(k8s.json, "podTemplate", "spec", NULL),
                                    json_path(k8s.old, "podTemplate", "spec", NULL) };
    const struct spec_view external = { view->validation, "spec.external",
                                        json_get(view->json, "external"),
                                        json_get(view->old, "external") };

    refuse(&k8s, "image", policy_image_problem(arena, policy, text_of(&k8s, "image")));
    check_containers(&pods, "containers");
    check_containers(&pods, "initContainers");
    check_image_volumes(&pods);
    /* The scheduler looks at it whatever the type of the Proplet, but pods need none. */
    if (str_equal(json_string(json_get(view->json, "type"), NULL), "external") ||
        !str_is_empty(text_of(&external, "deviceType")))
        refuse(&external, "deviceType",
               policy_device_problem(arena, policy, text_of(&external, "deviceType")));
}
