#include "common/kube/packing.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/api/reasons.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"

/* How long it is when packed; it comes back as it was. */
static size_t packed_len_with(const struct json_phrases *phrases, const char *text)
{
    size_t len = strlen(text);
    char *packed = arena_alloc(arena, len + 1, 1);
    size_t used = json_pack(phrases, text, len, packed);

    ck_assert_uint_le(used, len);
    ck_assert_uint_eq(json_unpacked_len(phrases, packed, used), len);
    char *back = arena_alloc(arena, len + 1, 1);
    json_unpack(phrases, packed, used, back);
    ck_assert_str_eq(back, text);

    char *in_place = arena_strdup(arena, text);
    ck_assert_uint_eq(json_pack(phrases, in_place, len, in_place), used);
    ck_assert_int_eq(memcmp(in_place, packed, used), 0);
    return used;
}

static size_t packed_len(const char *text)
{
    return packed_len_with(KIND_TASK.phrases, text);
}

static const char *const TEXTS[] = {
    "",
    "{}",
    "\"",
    "\"\"",
    "\"name\":\"",
    "\"name\":\"name\":\"",
    "\"nam",
    "\"name\"",
    "\"names\":\"\",\"name\":\"",
    "\",\"name\":\"\",\"names",
    "{\"\\u0001\":\"\\n\"}",
    "\"2026-01-01T00:00:00Z\"",
    "\"2026-01-01T00:00:00Z",
    "\"2026-01-01T00:00:00",
    "2026-01-01T00:00:00Z",
    "\"2026-01-01T00:00:00ZZ\"",
    "\"9999-12-31T23:59:59.999999Z\"",
    "\"2026-01-01T00:00:00.123Z\"",
    "\"ffff-ff-ffTff:ff:ffZ\"",
    "\"2026-01-01T00:00:0AZ\"",
    "\"3011d586-7892-41e9-9b2e-f96ed555aab1\"",
    "\"3011D586-7892-41e9-9b2e-f96ed555aab1\"",
    "\"name\":\"2026-01-01T00:00:00Z\",\"uid\":\"00000000-0000-0000-0000-000000000000\"",
    "{\"k\":\"\xc3\xbc \xf0\x9f\x98\x80 \x7f\"}",
};

TEST_GROUP("packing", arena_set_up, arena_tear_down);

TEST_EACH(every_text_comes_back_as_it_was, TEXTS)
{
    (void)packed_len(TEXTS[_i]);
}

#define CONDITION(type)                                                                            \
    "{\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"message\":\"heartbeats arrive\","          \
    "\"observedGeneration\":1,\"reason\":\"Alive\",\"status\":\"True\",\"type\":\"" type "\"}"

/* As the API server sends it, and the projection leaves it. */
#define PROPLET(availability, status, available)                                                   \
    "{\"metadata\":{\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":["               \
    "\"propeller.propeller.abstractmachines.fr/finalizer\"],\"generation\":1,\"name\":"            \
    "\"worker-1\",\"namespace\":\"default\",\"resourceVersion\":\"21350\",\"uid\":"                \
    "\"3011d586-7892-41e9-9b2e-f96ed555aab1\"},\"spec\":{" availability                            \
    "\"connectionConfig\":{\"channelId\":\"chan-1\",\"clientId\":\"device-1\","                    \
    "\"clientKeySecretRef\":{\"key\":\"key\",\"name\":\"unused\"},\"domainId\":\"dom-1\","         \
    "\"mqttAddress\":\"tcp://127.0.0.1:27931\",\"mqttTimeout\":\"30s\"},\"external\":{"            \
    "\"dialect\":\"standard\",\"maxTasks\":2},\"type\":\"external\"},\"status\":{"                 \
    "\"activeTaskCount\":0,\"alive\":true,\"aliveHistory\":[\"2026-01-01T00:00:00Z\"]," status     \
    "\"conditions\":[" CONDITION("Ready") "," CONDITION("Connected") available                     \
        "],\"observedGeneration\":1,\"phase\":\"Running\",\"taskCount\":0}}"

TEST(proplet_needs_two_fifths_of_the_space)
{
    static const char BARE[] = PROPLET("", "", "");

    ck_assert_uint_le(packed_len_with(KIND_PROPLET.phrases, BARE), sizeof(BARE) / 5 * 2);
}

#define CLOSED "the schedule of the Proplet is closed"

/* A window on each day, the status and the condition. */
TEST_TIMES(windows_of_a_proplet_need_a_quarter_of_the_space, 2)
{
    static const char BARE[] = PROPLET("", "", "");
    static const char *const WINDOWS[] = {
        PROPLET("\"availability\":{\"gracefulShutdownTimeout\":\"5m\",\"schedule\":{\"timezone\":"
                "\"Europe/Paris\",\"windows\":[{\"days\":[\"mon-fri\"],\"from\":\"21:00\","
                "\"until\":\"06:00\"}]}},",
                "\"availability\":{\"inWindow\":false,\"nextTransition\":\"2026-01-02T20:00:00Z\","
                "\"reason\":\"OutsideWindow\",\"since\":\"2026-01-02T05:00:00Z\",\"state\":"
                "\"Closed\"},",
                ",{\"lastTransitionTime\":\"2026-01-02T05:00:00Z\",\"message\":\"" CLOSED "\","
                "\"observedGeneration\":1,\"reason\":\"OutsideWindow\",\"status\":\"False\","
                "\"type\":\"Available\"}"),
        PROPLET("\"availability\":{\"gracefulShutdownTimeout\":\"5m\",\"schedule\":{\"timezone\":"
                "\"Europe/Paris\",\"windows\":[{\"days\":[\"mon-fri\"],\"from\":\"21:00\","
                "\"until\":\"06:00\"}]}},",
                "\"availability\":{\"inWindow\":true,\"nextTransition\":\"2026-01-02T05:00:00Z\","
                "\"reason\":\"InWindow\",\"since\":\"2026-01-01T20:00:00Z\",\"state\":\"Open\"},",
                ",{\"lastTransitionTime\":\"2026-01-01T20:00:00Z\",\"message\":\"\","
                "\"observedGeneration\":1,\"reason\":\"InWindow\",\"status\":\"True\","
                "\"type\":\"Available\"}"),
    };
    size_t more = packed_len_with(KIND_PROPLET.phrases, WINDOWS[_i]) -
                  packed_len_with(KIND_PROPLET.phrases, BARE);

    ck_assert_str_eq(reason_message(REASON_OUTSIDE_WINDOW, false, ""), CLOSED);
    ck_assert_uint_le(more, (strlen(WINDOWS[_i]) - strlen(BARE)) / 4);
}

TEST(times_and_uids_need_half_a_byte_for_each_digit)
{
    ck_assert_uint_eq(packed_len("\"2026-01-01T00:00:00Z\""), 2 + 2 + 7);
    ck_assert_uint_eq(packed_len("\"2026-01-01T00:00:00.000001Z\""), 2 + 2 + 10);
    ck_assert_uint_eq(packed_len("\"3011d586-7892-41e9-9b2e-f96ed555aab1\""), 2 + 2 + 16);
    ck_assert_uint_eq(packed_len("\"uid\":\"00000000"), strlen("\"uid\":\"00000000"));
}

/* Pieces of phrases and shapes, in any order. */
TEST(random_texts_come_back_as_they_were)
{
    static const char *const PIECES[] = { "\"",
                                          "\",\"",
                                          "name",
                                          "\":\"",
                                          "\":",
                                          "namespace",
                                          "\"uid",
                                          "\"run\":0",
                                          "0",
                                          "\"metadata\"",
                                          "{",
                                          "}",
                                          "[",
                                          "\xc3\xa4",
                                          "\"alive\":",
                                          "true",
                                          "2026-01-01T00:00:00",
                                          "Z",
                                          ".000000",
                                          "3011d586-7892-41e9-9b2e-f96ed555aab1" };
    uint64_t random = 5;

    for (int i = 0; i < 2000; i++) {
        const char *text = "";
        for (uint64_t j = random_below(&random, 20); j > 0; j--)
            text =
                arena_printf(arena, "%s%s", text, PIECES[random_below(&random, ARRAY_LEN(PIECES))]);
        (void)packed_len(text);
    }
}
