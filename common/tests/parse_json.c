#include "common/tests/parse_json.h"

#include <check.h>
#include <string.h>

const cJSON *parse_json(struct arena *arena, const char *text)
{
    const cJSON *json = NULL;
    struct error err = { 0 };

    ck_assert_msg(json_parse(arena, text, strlen(text), &json, &err) == 0, "%s: %s", err.message,
                  text);
    return json;
}
