/* A device says by MQTT that its owner wants it back: the latch is an annotation of its Proplet, "beta". */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/opening_stage.h"

/* The API server refuses changes of beta, but not of its status. */
static bool refuses_annotations;
/* beta gets an annotation behind the read of its own. */
static bool annotates_meanwhile;
#define OWN_ANNOTATION "example.com/room"

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    opening_note_event(arena, request);
    if (refuses_annotations && str_equal(request->method, "PATCH") &&
        str_has_suffix(request->path, "/proplets/beta")) {
        *ret = (struct http_response){ .status = 403, .body = "{}", .body_len = 2 };
        return 0;
    }
    int r = outside_roundtrip(ctx, arena, request, ret, err);
    if (annotates_meanwhile && str_equal(request->method, "GET") &&
        strstr(request->path, "/proplets/beta")) {
        annotates_meanwhile = false;
        stage_annotate(&KIND_PROPLET, "beta", OWN_ANNOTATION, "7");
    }
    return r;
}

static void set_up(void)
{
    refuses_annotations = annotates_meanwhile = false;
    opening_reset();
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    stage_run();
}

TEST_GROUP("proplet_reclaim", set_up, stage_tear_down);

#define RECLAIM(id) "{\"proplet_id\":\"" id "\",\"reason\":\"a meeting\"}"

static const char *annotation(const char *key)
{
    return json_string(
        json_path(stage_get(&KIND_PROPLET, "beta"), "metadata", "annotations", key, NULL), "");
}

static size_t reclaims_waiting(void)
{
    return mailbox_len(stage.proplet.mailbox);
}

TEST(device_reclaims_its_proplet_until_people_give_it_back)
{
    stage_annotate(&KIND_PROPLET, "beta", OWN_ANNOTATION, "7");
    stage_put_task(TASK(ON("beta")));
    stage_run();
    unsigned patches = stage_requests("PATCH", "/proplets/beta");
    stage_receive("proplet/reclaim", RECLAIM("device-2"));
    ck_assert_uint_eq(reclaims_waiting(), 1);
    stage_run();
    ck_assert_uint_eq(reclaims_waiting(), 0);
    ck_assert_str_eq(opening_state("beta"), "Closed Reclaimed False");
    ck_assert_str_eq(stage_task_string("phase"), "pending");
    ck_assert(opening_is_stopped());
    ck_assert_str_eq(annotation(ANNOTATION_RECLAIM), "true");
    ck_assert_str_eq(annotation(ANNOTATION_RECLAIM_REASON), "a meeting");
    ck_assert(str_has_prefix(annotation(ANNOTATION_RECLAIM_AT), "2026-01-01T00:0"));
    ck_assert_str_eq(annotation(OWN_ANNOTATION), "7");
    ck_assert_uint_gt(stage_requests("PATCH", "/proplets/beta"), patches);

    patches = stage_requests("PATCH", "/proplets/beta");
    stage_receive("proplet/reclaim", RECLAIM("device-2"));
    ck_assert_uint_eq(reclaims_waiting(), 1);
    stage_run();
    ck_assert_uint_eq(reclaims_waiting(), 0); /* acknowledged, and nothing is written */
    ck_assert_uint_eq(stage_requests("PATCH", "/proplets/beta"), patches);

    opening_pass_minutes(5);
    ck_assert_str_eq(opening_state("beta"), "Closed Reclaimed False");
    stage_annotate(&KIND_PROPLET, "beta", ANNOTATION_RECLAIM, "");
    stage_run();
    ck_assert_str_eq(opening_state("beta"), "");
    ck_assert_str_eq(stage_task_string("phase"), "running");
    stage_write_events();
    ck_assert_str_eq(opening.events, " Online Reclaimed TasksCut Released");
    ck_metric("propeller_reclaims_total{source=\"device\"} 1");
}

/* A GitOps tool applies the manifest again and again. */
TEST(manifest_that_is_applied_again_gives_nothing_back)
{
    stage_receive("proplet/reclaim", RECLAIM("device-2"));
    stage_run();
    for (int i = 0; i < 5; i++) {
        stage_put_proplet("beta", i % 2 ? PROPLET("device-2", "")
                                        : PROPLET("device-2", ",\"external\":{\"maxTasks\":3}"));
        opening_pass_minutes(1);
        ck_assert_str_eq(opening_state("beta"), "Closed Reclaimed False");
    }
}

/* Its own state goes on. */
TEST(reclaim_that_may_not_be_written_waits_and_holds_up_nothing_else)
{
    refuses_annotations = true;
    stage_receive("proplet/reclaim", RECLAIM("device-2"));
    stage_run();
    ck_assert_uint_eq(reclaims_waiting(), 1);
    ck_assert_str_eq(opening_state("beta"), "");
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-2\",\"status\":\"offline\"}");
    stage_turns(200);
    ck_assert_str_eq(json_string(json_get(opening_status("beta"), "phase"), ""), "Offline");
    refuses_annotations = false;
    opening_pass_minutes(1);
    ck_assert_uint_eq(reclaims_waiting(), 0);
    ck_assert_str_eq(opening_state("beta"), "Closed Reclaimed False");
}

TEST(reclaim_of_a_proplet_that_is_gone_is_forgotten)
{
    stage_receive("proplet/reclaim", RECLAIM("device-2"));
    stage_delete(&KIND_PROPLET, "beta");
    stage_run();
    ck_assert_uint_eq(reclaims_waiting(), 0);
}

TEST(reason_of_a_reclaim_is_in_its_event)
{
    stage_receive("proplet/reclaim", RECLAIM("device-2"));
    stage_run();
    stage_write_events();
    ck_assert_str_eq(opening.note, "its owner wants the machine back: a meeting");
}

TEST(reclaim_takes_away_no_annotation_that_came_meanwhile)
{
    annotates_meanwhile = true;
    stage_receive("proplet/reclaim", RECLAIM("device-2"));
    stage_run();
    opening_pass_minutes(1);
    ck_assert(!annotates_meanwhile);
    ck_assert_str_eq(annotation(OWN_ANNOTATION), "7");
    ck_assert_str_eq(annotation(ANNOTATION_RECLAIM), "true");
    ck_assert_uint_eq(reclaims_waiting(), 0);
}
