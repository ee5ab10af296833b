/* Which devices an Enrollment lists, when it writes, and which Proplets it creates. */
#include "controller/enrollment/enrollment_plan.h"

#include <string.h>

#include "common/api/reasons.h"
#include "common/kube/conditions.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

/* 2026-11-21T10:00:00Z */
#define NOW_US INT64_C(1795255200000000)
#define SECOND_US INT64_C(1000000)
#define SPEC "\"domainId\":\"d\",\"channelId\":\"c\",\"mqttAddress\":\"tcp://b\""
#define MANY 10000

static struct arena *arena;
static struct enrollment_observed observed;
static struct enrollment_plan plan;
static struct heard_device heard[MANY];
static const char *claimed; /* this client id has a Proplet */
static const char *taken;   /* a Proplet has this name */

static bool has_proplet(void *ctx UNUSED, const char *channel_id UNUSED, const char *client_id)
{
    return str_equal(client_id, claimed);
}

static bool is_taken(void *ctx UNUSED, const char *proplet)
{
    return str_equal(proplet, taken);
}

static void set_spec(const char *spec)
{
    const cJSON *object = parsed(arena, arena_printf(arena, "{\"spec\":{%s}}", spec));
    struct enrollment_status status = observed.enrollment.status;
    struct error err = { 0 };

    ck_assert_int_eq(enrollment_decode(arena, object, &observed.enrollment, &err), 0);
    observed.enrollment.status = status;
}

static void set_up(void)
{
    json_init();
    arena = arena_create();
    claimed = taken = NULL;
    observed = (struct enrollment_observed){ .generation = 1,
                                             .mqtt_configured = true,
                                             .channel = { .since_ms = 1 },
                                             .heard = heard,
                                             .has_proplet = has_proplet,
                                             .is_taken = is_taken,
                                             .now_us = NOW_US };
    set_spec(SPEC);
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("enrollment", set_up, tear_down);

static void hear_on(const char *channel_id, const char *client_id, const char *metadata)
{
    size_t i = 0;

    while (i < observed.heard_len && !str_equal(heard[i].client_id, client_id))
        i++;
    if (i == observed.heard_len)
        heard[observed.heard_len++] = (struct heard_device){ .first_us = observed.now_us };
    heard[i].client_id = client_id;
    heard[i].channel_id = channel_id;
    heard[i].last_us = observed.now_us;
    heard[i].metadata = metadata ? parsed(arena, metadata) : NULL;
}

static void hear(const char *client_id)
{
    hear_on("c", client_id, NULL);
}

/* The next reconcile finds what this one wrote, as the API server has it. */
static void decide(void)
{
    struct error err = { 0 };

    plan = enrollment_plan(arena, &observed);
    if (plan.write == ENROLLMENT_WRITE_NOTHING)
        return;

    cJSON *object = json_object(arena);
    struct enrollment stored = { 0 };

    json_set_copy(object, "status", enrollment_status_encode(arena, &plan.status));
    ck_assert_int_eq(enrollment_decode(arena, object, &stored, &err), 0);
    observed.enrollment.status = stored.status;
}

static const char *listed(void)
{
    const struct pending_device *items = plan.status.pending.items;
    const char *text = "";

    ck_assert_int_eq(plan.status.pending_count, (int64_t)plan.status.pending.len);
    for (size_t i = 0; i < plan.status.pending.len; i++)
        text = arena_printf(arena, "%s%s%s", text, *text ? " " : "", items[i].client_id);
    return text;
}

static const char *created(void)
{
    const char *text = "";

    for (size_t i = 0; i < plan.create_len; i++)
        text = arena_printf(arena, "%s%s%s", text, *text ? " " : "", plan.create[i]->client_id);
    return text;
}

static void expect_ready(const char *status, const char *reason)
{
    const cJSON *ready = condition_get(plan.status.conditions, "Ready");

    ck_assert_str_eq(json_string(json_get(ready, "status"), ""), status);
    ck_assert_str_eq(json_string(json_get(ready, "reason"), ""), reason);
    if (!str_equal(status, "True"))
        ck_assert(*json_string(json_get(ready, "message"), ""));
}

static void wait_seconds(int64_t seconds)
{
    observed.now_us += seconds * SECOND_US;
}

TEST(device_is_listed_until_it_has_a_proplet)
{
    hear("a");
    decide();
    ck_assert_str_eq(listed(), "a");
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOW);
    decide();
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOTHING);
    claimed = "a";
    decide();
    ck_assert_str_eq(listed(), "");
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOW);
}

static const struct {
    const char *spec;
    const char *listed;
} SELECTED[] = {
    { SPEC, "s-1 s-2 x-1" },
    { SPEC ",\"match\":{\"clientIdPrefix\":\"s-\"}", "s-1 s-2" },
    { SPEC ",\"match\":{\"tags\":[\"lab\"]}", "s-1 x-1" },
    { SPEC ",\"match\":{\"tags\":[\"lab\",\"gpu\"]}", "x-1" },
    { SPEC ",\"match\":{\"clientIdPrefix\":\"s-\",\"tags\":[\"gpu\"]}", "" },
    { SPEC ",\"rejected\":[\"s-2\",\"x-1\"]", "s-1" },
    { SPEC ",\"limit\":2", "s-1 s-2" },
    { "\"domainId\":\"d\",\"channelPerDevice\":true,\"mqttAddress\":\"tcp://b\"", "own" },
};

TEST_EACH(spec_says_which_devices_are_listed, SELECTED)
{
    hear_on("c", "s-1", "{\"tags\":[\"lab\"]}");
    hear_on("c", "s-2", NULL);
    hear_on("c", "x-1", "{\"tags\":[\"a\",\"gpu\",\"lab\"]}");
    hear_on("own", "own", "{}");
    hear_on("e", "forged", "{\"tags\":[\"gpu\",\"lab\"]}");
    set_spec(SELECTED[_i].spec);
    decide();
    ck_assert_str_eq(listed(), SELECTED[_i].listed);
    ck_assert(plan.status.overflow == str_equal(SELECTED[_i].listed, "s-1 s-2") ||
              strstr(SELECTED[_i].spec, "match"));
    /* and so do those that are stored */
    decide();
    ck_assert_str_eq(listed(), SELECTED[_i].listed);
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOTHING);
}

TEST(later_heartbeat_alone_is_written_after_five_minutes)
{
    hear("a");
    decide();
    for (int64_t second = 10; second < 300; second += 10) {
        wait_seconds(10);
        hear("a");
        decide();
        ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOTHING);
        ck_assert_int_eq(plan.look_us, NOW_US + ENROLLMENT_REFRESH_US);
    }
    wait_seconds(10);
    hear("a");
    decide();
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_REFRESH);
    decide();
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOTHING);
}

TEST(silent_device_is_forgotten_in_time_also_by_another_leader)
{
    set_spec(SPEC ",\"forgetAfterSeconds\":600");
    hear("a");
    decide();
    ck_assert_int_eq(plan.look_us, NOW_US + 600 * SECOND_US);
    observed.heard_len = 0; /* another leader has received nothing yet */
    wait_seconds(599);
    decide();
    ck_assert_str_eq(listed(), "a");
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOTHING);
    wait_seconds(1);
    decide();
    ck_assert_str_eq(listed(), "");
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOW);
}

TEST(stored_device_keeps_what_it_said_and_when_it_came)
{
    hear_on("c", "a", "{\"os\":\"linux\"}");
    decide();
    wait_seconds(400);
    observed.heard_len = 0;
    hear("a");
    decide();
    const struct pending_device *device = plan.status.pending.items;
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_REFRESH);
    ck_assert_int_eq(device->first_seen_us, NOW_US);
    ck_assert_str_eq(json_text(arena, device->metadata, NULL), "{\"os\":\"linux\"}");
}

TEST(first_metadata_of_a_device_is_written_at_once_and_later_ones_are_not)
{
    hear("a");
    decide();
    hear_on("c", "a", "{\"os\":\"linux\"}");
    decide();
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOW);
    hear_on("c", "a", "{\"os\":\"other\"}");
    decide();
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOTHING);
}

TEST(texts_of_devices_are_cut_and_cleaned)
{
    static const struct str_list NONE = { 0 };
    static const char *WANTED[] = { "nine" };
    const struct str_list wanted = { .items = WANTED, .len = 1 };
    const char *text =
        "{\"os\":\"\\u001b[2J\\u202e<b>\\\"\\\\&\",\"clientKey\":\"planted\",\"hostname\":7,"
        "\"totalMemoryBytes\":5,\"tags\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\","
        "\"nine\"]}";

    ck_assert_str_eq(
        json_text(arena, enrollment_clean(arena, parsed(arena, text), &NONE), NULL),
        "{\"os\":\"?[2J????b????\",\"tags\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\","
        "\"8\"],\"totalMemoryBytes\":5}");
    ck_assert_str_eq(
        json_text(arena, json_get(enrollment_clean(arena, parsed(arena, text), &wanted), "tags"),
                  NULL),
        "[\"nine\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\"]");
    char wide[200];
    memset(wide, 'x', sizeof(wide) - 1);
    wide[sizeof(wide) - 1] = '\0';
    cJSON *said = json_object(arena);
    json_set_string(said, "description", wide);
    ck_assert_uint_eq(
        strlen(json_string(json_get(enrollment_clean(arena, said, &NONE), "description"), "")),
        ENROLLMENT_MAX_TEXT);
}

static const char *const NO_IDS[] = { "",         "a b",          "a/b",  "a+",   "#",
                                      "a\x1b[2J", "\xe2\x80\xae", "it's", "a\"b", "a\\b",
                                      "a<b",      "a>b",          "a&b" };

TEST_EACH(unreadable_client_id_is_not_listed, NO_IDS)
{
    hear(NO_IDS[_i]);
    decide();
    ck_assert_str_eq(listed(), "");
}

static void no_mqtt(void)
{
    observed.mqtt_configured = false;
}

static void conflict(void)
{
    observed.older = "ns/older";
}

static void refused(void)
{
    observed.channel.refused = true;
}

static void cut_off(void)
{
    observed.channel.since_ms = 0;
    observed.is_cut_off = true;
}

static void not_allowed(void)
{
    set_spec(SPEC
             ",\"approval\":\"Automatic\",\"maxProplets\":9,\"match\":{\"clientIdPrefix\":\"a\"}");
    observed.refusal = "proplets is forbidden";
    observed.refusals = 1;
}

static const struct {
    void (*change)(void);
    const char *reason;
    const char *listed;
} UNREADY[] = {
    { no_mqtt, "MQTTNotConfigured", "a" },   { conflict, "Conflict", "" },
    { refused, "SubscriptionRefused", "a" }, { cut_off, "BrokerUnavailable", "a" },
    { not_allowed, "NotAllowed", "a" },
};

TEST_EACH(condition_says_why_devices_are_not_listed_or_approved, UNREADY)
{
    hear("a");
    decide();
    expect_ready("True", "Listening");
    UNREADY[_i].change();
    decide();
    expect_ready("False", UNREADY[_i].reason);
    ck_assert_str_eq(listed(), UNREADY[_i].listed);
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOW);
    ck_assert_uint_eq(plan.create_len, 0);
    decide();
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOTHING);
}

TEST(short_interruption_changes_nothing)
{
    hear("a");
    decide();
    observed.channel.since_ms = 0;
    decide();
    ck_assert_int_eq(plan.write, ENROLLMENT_WRITE_NOTHING);
}

#define AUTOMATIC                                                                                  \
    SPEC ",\"approval\":\"Automatic\",\"maxProplets\":12,\"match\":{\"clientIdPrefix\":\"a\"}"

static void hear_twenty(void)
{
    for (int i = 0; i < 20; i++)
        hear(arena_printf(arena, "a%02d", i));
}

TEST(automatic_creates_ten_a_minute_up_to_its_limit)
{
    set_spec(AUTOMATIC);
    hear_twenty();
    decide();
    ck_assert_str_eq(created(), "a00 a01 a02 a03 a04 a05 a06 a07 a08 a09");
    observed.enrolled = 8;
    observed.enrolled_lately = 8;
    decide();
    ck_assert_str_eq(created(), "a00 a01");
    observed.enrolled_lately = 10;
    observed.enrolled = 10;
    observed.next_enrolled_us = NOW_US + 30 * SECOND_US;
    decide();
    ck_assert_str_eq(created(), "");
    ck_assert_int_eq(plan.look_us, NOW_US + 30 * SECOND_US);
    observed.enrolled_lately = 0;
    observed.enrolled = 11;
    decide();
    ck_assert_str_eq(created(), "a00");
    observed.enrolled = 12;
    decide();
    ck_assert_str_eq(created(), "");
}

TEST(manual_creates_nothing)
{
    hear_twenty();
    decide();
    ck_assert_uint_eq(plan.create_len, 0);
}

TEST(automatic_passes_over_names_of_others_and_devices_that_were_refused)
{
    set_spec(AUTOMATIC);
    hear("a1");
    hear("a2");
    hear("a3");
    taken = "a1";
    decide();
    ck_assert_str_eq(created(), "a2 a3");
    observed.refusals = 2; /* a minute ago */
    decide();
    ck_assert_str_eq(created(), "a3");
}

TEST(hostile_identities_fill_the_list_to_its_limit_and_nothing_else_grows)
{
    static const char TAG[] = "\"\\\"\\\\<>&\\u0007\\u202e\\ud83d\\ude00\"";
    const char *said =
        arena_printf(arena, "{\"description\":%s,\"os\":%s,\"tags\":[%s,%s]}", TAG, TAG, TAG, TAG);
    unsigned writes = 0;

    set_spec(SPEC ",\"limit\":500");
    hear("honest");
    decide();
    for (unsigned pass = 0; pass < MANY / 1024 + 2; pass++) {
        observed.heard_len = 0;
        for (unsigned i = 0; i < 1024; i++)
            heard[observed.heard_len++] = (struct heard_device){
                .client_id = arena_printf(arena, "%u-%0200u", (pass * 1024 + i) % MANY, i),
                .channel_id = "c",
                .first_us = observed.now_us,
                .last_us = observed.now_us,
                .metadata = parsed(arena, said),
            };
        decide();
        writes += plan.write != ENROLLMENT_WRITE_NOTHING;
        wait_seconds(1);
        ck_assert_uint_eq(plan.status.pending.len, 500);
        ck_assert(plan.status.overflow);
    }
    ck_assert_uint_eq(writes, 1);

    size_t len = 0;
    const char *text = json_text(arena, enrollment_status_encode(arena, &plan.status), &len);
    ck_assert_uint_lt(len, 1000000);
    ck_assert_ptr_nonnull(strstr(text, "\"honest\""));
    for (; *text; text++)
        ck_assert(*text >= ' ' && *text <= '~');
}
