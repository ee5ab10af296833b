#include "common/api/embedded.h"

#include <math.h>
#include <string.h>

#include "common/base/str.h"

const cJSON *embedded_input(struct arena *arena, const cJSON *input)
{
    const char *text = json_string(input, NULL);

    if (text && json_parse(arena, text, strlen(text), &input, NULL) < 0)
        return NULL;
    return json_is_number(input) ? input : NULL;
}

static const char *input_problem(struct arena *arena, const cJSON *input)
{
    const cJSON *number = embedded_input(arena, input);
    double value = json_double(number, -1);

    if (!number)
        return "must be a number for an embedded Proplet";
    if (value < 0 || value > EMBEDDED_MAX_INPUT || value != floor(value))
        return "must be a whole number from 0 to 4294967295 for an embedded Proplet";
    return NULL;
}

const char *embedded_problem(struct arena *arena, const struct task_spec *spec)
{
    bool needs_url = str_is_empty(spec->file) || spec->encrypted;
    size_t index = 0;

    if (spec->encrypted)
        return "spec.encrypted: an embedded Proplet cannot decrypt";
    if (needs_url && spec->image_url && strlen(spec->image_url) > EMBEDDED_MAX_URL)
        return arena_printf(arena, "spec.imageUrl: an embedded Proplet takes at most %d bytes",
                            EMBEDDED_MAX_URL);
    if (json_len(spec->inputs) > EMBEDDED_MAX_INPUTS)
        return arena_printf(arena, "spec.inputs: an embedded Proplet takes at most %d",
                            EMBEDDED_MAX_INPUTS);
    json_for_each (input, spec->inputs) {
        const char *problem = input_problem(arena, input);
        if (problem)
            return arena_printf(arena, "spec.inputs[%zu]: %s", index, problem);
        index++;
    }
    return NULL;
}
