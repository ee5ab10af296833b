#include "controller/tests/opening_stage.h"

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"

struct opening opening;

void opening_reset(void)
{
    opening = (struct opening){ 0 };
}

void opening_note_event(struct arena *arena, const struct http_request *request)
{
    if (!str_equal(request->method, "POST") || !strstr(request->path, "/events"))
        return;
    const cJSON *event = parsed(arena, request->body);
    if (!str_equal(json_string(json_path(event, "regarding", "name", NULL), ""), "beta"))
        return;
    (void)str_copy(opening.note, sizeof(opening.note), json_string(json_get(event, "note"), ""));
    (void)str_copy(
        opening.events, sizeof(opening.events),
        arena_printf(arena, "%s %s", opening.events, json_string(json_get(event, "reason"), "")));
}

void opening_pass_minutes(int minutes)
{
    for (int i = 0; i < minutes * 6; i++) {
        stage_wait_ms(10000);
        stage_run();
    }
}

const cJSON *opening_status(const char *proplet)
{
    return json_get(stage_get(&KIND_PROPLET, proplet), "status");
}

const char *opening_state(const char *proplet)
{
    const cJSON *status = opening_status(proplet);
    const cJSON *availability = json_get(status, "availability");
    const cJSON *condition = condition_get(json_get(status, "conditions"), "Available");

    if (!availability && !condition)
        return "";
    ck_assert_str_eq(json_string(json_get(availability, "reason"), ""),
                     json_string(json_get(condition, "reason"), ""));
    return arena_printf(stage.arena, "%s %s %s", json_string(json_get(availability, "state"), ""),
                        json_string(json_get(availability, "reason"), ""),
                        json_string(json_get(condition, "status"), ""));
}

bool opening_is_stopped(void)
{
    const struct run *run = &outside.runs[outside.run_count - 1];

    return outside.run_count && !run->running && !run->instances;
}
