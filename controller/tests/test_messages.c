#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/heap.h"
#include "common/tests/suite.h"
#include "controller/device/messages.h"
#include "controller/device/samples.h"

static struct error err;

TEST_GROUP("topics and ids", arena_set_up, arena_tear_down);

static const struct {
    const char *topic;
    enum message_kind kind;
    const char *channel;
} TOPICS[] = {
    { "m/dom/c/chan/control/proplet/alive", MESSAGE_ALIVE, "dom/chan" },
    { "m/dom/c/chan/control/proplet/create", MESSAGE_CREATE, "dom/chan" },
    { "m/dom/c/chan/control/proplet/metrics", MESSAGE_METRICS, "dom/chan" },
    { "m/dom/c/chan/control/proplet/task_metrics", MESSAGE_TASK_METRICS, "dom/chan" },
    { "m/dom/c/chan/control/proplet/results", MESSAGE_RESULT, "dom/chan" },
    { "m/dom/c/chan/control/proplet/invoke_results", MESSAGE_INVOKE_RESULT, "dom/chan" },
    { "m/dom/c/chan/control/controller/marker", MESSAGE_MARKER, "dom/chan" },
    { "m/dom/c/chan/control/proplet/reclaim", MESSAGE_RECLAIM, "dom/chan" },
    { "m/c/c/control/control/proplet/alive", MESSAGE_ALIVE, "c/control" },
    { "m/dom/c/chan/control/proplet/invoke", MESSAGE_UNKNOWN, NULL },
    { "m/dom/c/chan/control/proplet/results/more", MESSAGE_UNKNOWN, NULL },
    { "m/dom/c/chan/control/proplet/Results", MESSAGE_UNKNOWN, NULL },
    { "m/dom/c/chan/control/manager/start", MESSAGE_UNKNOWN, NULL },
    { "m/dom/c/chan/registry/proplet", MESSAGE_MODULE, "dom/chan" },
    { "m/dom/c/chan/messages/control/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "m/dom/c/a/b/control/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "m/dom/d/chan/control/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "m//c/chan/control/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "m/dom/c//control/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "/m/dom/c/chan/control/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "dom/c/chan/control/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "m/dom/chan/control/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "m/dom/c/chan/proplet/alive", MESSAGE_UNKNOWN, NULL },
    { "fl/rounds/1/updates/proplet-1", MESSAGE_UNKNOWN, NULL },
    { "m/", MESSAGE_UNKNOWN, NULL },
    { "", MESSAGE_UNKNOWN, NULL },
};

TEST_EACH(topic_names_kind_and_channel, TOPICS)
{
    char channel[CHANNEL_KEY_LEN] = "";

    ck_assert_int_eq(message_topic_parse(TOPICS[_i].topic, channel), TOPICS[_i].kind);
    if (TOPICS[_i].channel)
        ck_assert_str_eq(channel, TOPICS[_i].channel);
}

TEST(topic_that_is_built_is_read_back)
{
    char channel[CHANNEL_KEY_LEN];
    char parsed[CHANNEL_KEY_LEN];

    ck_assert(channel_key("dom", "chan", channel));
    ck_assert_str_eq(message_topic(arena, channel, "manager/start"),
                     "m/dom/c/chan/control/manager/start");
    const char *topic = message_topic(arena, channel, "proplet/results");
    ck_assert_int_eq(message_topic_parse(topic, parsed), MESSAGE_RESULT);
    ck_assert_str_eq(parsed, channel);
}

TEST(channel_that_is_too_long_is_refused)
{
    char domain[CHANNEL_KEY_LEN] = "";
    char key[CHANNEL_KEY_LEN];

    memset(domain, 'd', CHANNEL_KEY_LEN - 3);
    ck_assert(channel_key(domain, "c", key)); /* with '/' and NUL it just fits */
    domain[CHANNEL_KEY_LEN - 3] = 'd';
    ck_assert(!channel_key(domain, "c", key));
    ck_assert_int_eq(
        message_topic_parse(arena_printf(arena, "m/%s/c/c/control/proplet/alive", domain), key),
        MESSAGE_UNKNOWN);
}

enum parser { ALIVE = 1, CREATE = 2, RESULT = 4, METRICS = 8, ALL = 15 };

static int parse_alive(const char *text, size_t len)
{
    struct alive_message message;

    return message_alive_parse(arena, text, len, &message, &err);
}

static int parse_create(const char *text, size_t len)
{
    struct create_message message;

    return message_create_parse(arena, text, len, &message, &err);
}

static int parse_result(const char *text, size_t len)
{
    struct result_message message;

    return message_result_parse(arena, text, len, &message, &err);
}

static int parse_metrics(const char *text, size_t len)
{
    struct task_metrics_message message;

    return message_task_metrics_parse(arena, text, len, &message, &err);
}

/* Payloads, and whom of the parsers take them. */
static const struct {
    const char *text;
    int accepted;
} PAYLOADS[] = {
    { "", 0 },
    { "x", 0 },
    { "42", 0 },
    { "null", 0 },
    { "[]", 0 },
    { "{}", 0 },
    { "[{\"proplet_id\":\"p\",\"task_id\":\"t\",\"status\":\"alive\"}]", 0 },
    { "{\"proplet_id\":\"p\",\"task_id\":\"t\",\"status\":\"alive\"}", ALL },
    { "{\"proplet_id\":\"p\",\"task_id\":\"t\",\"status\":\"alive\"} ", ALL },
    { "{\"proplet_id\":\"p\",\"task_id\":\"t\",\"status\":\"alive\"}{}", 0 },
    { "{\"proplet_id\":\"p\",\"task_id\":\"t\",\"status\":\"alive\"", 0 },
    { "{\"proplet_id\":\"p\",\"task_id\":\"t\",\"task_id\":\"t\",\"status\":\"alive\","
      "\"proplet_id\":\"p\"}",
      0 },
    { "{\"proplet_id\":\"p\",\"status\":\"offline\"}", ALIVE | CREATE },
    { "{\"proplet_id\":\"p\",\"status\":\"Alive\"}", CREATE },
    { "{\"proplet_id\":\"p\",\"status\":true}", CREATE },
    { "{\"proplet_id\":\"p\"}", CREATE },
    { "{\"Proplet_Id\":\"p\",\"status\":\"alive\"}", 0 },
    { "{\"proplet_id\":\"\",\"status\":\"alive\"}", 0 },
    { "{\"proplet_id\":7,\"status\":\"alive\"}", 0 },
    { "{\"proplet_id\":null,\"status\":\"alive\"}", 0 },
    { "{\"task_id\":\"t\"}", RESULT | METRICS },
    { "{\"task_id\":\"t\",\"proplet_id\":null}", RESULT | METRICS },
    { "{\"task_id\":\"t\",\"proplet_id\":7}", 0 },
    { "{\"task_id\":\"t\",\"proplet_id\":false}", 0 },
    { "{\"task_id\":\"t\",\"proplet_id\":[\"p\"]}", 0 },
    { "{\"task_id\":\"t\",\"proplet_id\":{}}", 0 },
    { "{\"task_id\":\"t\",\"results\":{\"proplet_id\":7}}", METRICS },
    { "{\"task_id\":\"t\",\"proplet_id\":\"\\ud800\"}", 0 }, /* no character */
    { "{\"task_id\":\"t\",\"results\":{\"proplet_id\":\"\\ud800\"}}", 0 },
    { "{\"task_id\":\"t\",\"results\":{\"proplet_id\":null}}", RESULT | METRICS },
    { "{\"task_id\":\"\"}", 0 },
    { "{\"task_id\":7}", 0 },
    { "{\"task_id\":\"t\",\"error\":7}", METRICS },
    { "{\"task_id\":\"t\",\"error\":false}", METRICS },
    { "{\"task_id\":\"t\",\"error\":{\"message\":\"trap\"}}", METRICS },
};

TEST_GROUP("payloads", arena_set_up, arena_tear_down);

TEST_EACH(payload_is_taken_by_its_parser_and_refused_with_a_word_by_others, PAYLOADS)
{
    static int (*const PARSERS[])(const char *, size_t) = { parse_alive, parse_create, parse_result,
                                                            parse_metrics };

    for (size_t i = 0; i < ARRAY_LEN(PARSERS); i++) {
        err = (struct error){ 0 };
        int r = PARSERS[i](PAYLOADS[_i].text, strlen(PAYLOADS[_i].text));
        bool accepted = PAYLOADS[_i].accepted & 1 << i;
        ck_assert_msg((r == 0) == accepted, "parser %zu: %s %s", i, PAYLOADS[_i].text, err.message);
        if (!accepted) {
            ck_assert_int_eq(r, -ERROR_INVALID);
            ck_assert(!str_is_empty(err.message));
        }
    }
}

#define BYTES(literal) literal, sizeof(literal) - 1
#define REPLACEMENT "\xef\xbf\xbd"

static const struct {
    const char *text;
    size_t len;
    const char *results; /* NULL: not even then */
} REPAIRED[] = {
    { BYTES("{\"task_id\":\"t\",\"results\":\"a\\u0000b\"}"), "a" REPLACEMENT "b" },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\\u0000\\u0000\"}"), REPLACEMENT REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\\\\\\u0000\"}"), "\\" REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\\\\u0000\\u0000\"}"), "\\u0000" REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\\n\\u0000\"}"), "\n" REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"a\nb\tc\"}"), "a b c" },
    { BYTES("{\"task_id\":\"t\",\"results\":\"a\0b\"}"), "a b" },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\xff\xfe\"}"), REPLACEMENT REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\xe2\x82\"}"), REPLACEMENT REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\xe2\x82\xac\x80\"}"), "\xe2\x82\xac" REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\xed\xa0\x80\"}"),
      REPLACEMENT REPLACEMENT REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\xf0\x9f\x98\x80\xf0\x9f\"}"),
      "\xf0\x9f\x98\x80" REPLACEMENT REPLACEMENT },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\xff\"\"}"), NULL },
    { BYTES("\xff"), NULL },
    { BYTES("\\u0000"), NULL },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\xff\\"), NULL },
    { BYTES("{\"task_id\":\"t\",\"results\":\"\xff\\u000"), NULL },
};

TEST_EACH(result_that_is_almost_json_is_repaired, REPAIRED)
{
    struct result_message message = { 0 };
    char *exact = malloc(REPAIRED[_i].len); /* so that reading behind it is found */

    memcpy(exact, REPAIRED[_i].text, REPAIRED[_i].len);
    int r = message_result_parse(arena, exact, REPAIRED[_i].len, &message, &err);
    free(exact);
    ck_assert_int_eq(r == 0, REPAIRED[_i].results != NULL);
    if (REPAIRED[_i].results)
        ck_assert_str_eq(json_string(message.results, NULL), REPAIRED[_i].results);
}

TEST(garbage_of_any_length_is_repaired)
{
    enum { LENGTH = 100000 };
    struct result_message message = { 0 };
    char *garbage = arena_alloc(arena, 1, LENGTH + 1);

    memset(garbage, '\xff', LENGTH);
    const char *text = arena_printf(arena, "{\"task_id\":\"t\",\"error\":\"%s\"}", garbage);
    ck_assert_int_eq(message_result_parse(arena, text, strlen(text), &message, &err), 0);
    ck_assert_uint_eq(strlen(message.error), 3 * LENGTH);
}

static const struct {
    const char *message;
    const char *proplet_id;
} SENDERS[] = {
    { "{\"task_id\":\"t\"}", NULL },
    { "{\"task_id\":\"t\",\"proplet_id\":\"a\"}", "a" },
    { "{\"task_id\":\"t\",\"proplet_id\":\"a\",\"results\":{\"proplet_id\":\"b\"}}", "a" },
    { "{\"task_id\":\"t\",\"results\":{\"proplet_id\":\"b\"}}", "b" },
    { "{\"task_id\":\"t\",\"results\":{\"proplet_id\":null}}", NULL },
    { "{\"task_id\":\"t\",\"results\":\"{\\\"proplet_id\\\":\\\"b\\\"}\"}", NULL },
    { "{\"task_id\":\"t\",\"results\":[{\"proplet_id\":\"b\"}]}", NULL },
};

TEST_EACH(sender_of_a_result_is_named_at_the_top_or_inside, SENDERS)
{
    struct result_message message = { 0 };
    int r = message_result_parse(arena, SENDERS[_i].message, strlen(SENDERS[_i].message), &message,
                                 &err);

    ck_assert_int_eq(r, 0);
    ck_assert_pstr_eq(message.proplet_id, SENDERS[_i].proplet_id);
}

/* JSON as Go reads it, too, of which nothing can be stored. */
static const struct {
    const char *begin, *end; /* around so many levels */
    size_t levels;
    const char *why; /* NULL: it is stored */
} LEGAL[] = {
    { "{\"task_id\":\"t\",\"proplet_id\":\"p\",\"results\":\"\\ud800\"}", "", 0,
      "the result is JSON that cannot be stored: it must have a pair of surrogates" },
    { "{\"task_id\":\"t\",\"proplet_id\":\"p\",\"results\":{\"a\":\"\\udc00\\ud800\"}}", "", 0,
      "the result is JSON that cannot be stored: it must have a pair of surrogates" },
    { "{\"task_id\":\"t\",\"proplet_id\":\"p\",\"results\":"
      "1111111111222222222233333333334444444444555555555566666666667777}",
      "", 0, "the result is JSON that cannot be stored: it must have a shorter number" },
    { "{\"task_id\":\"t\",\"proplet_id\":\"p\",\"results\":", "}", 90, NULL },
    { "{\"task_id\":\"t\",\"proplet_id\":\"p\",\"results\":", "}", 91,
      "the result has more than 90 levels" },
    { "{\"task_id\":\"t\",\"proplet_id\":\"p\",\"results\":", "}", 500,
      "the result has more than 90 levels" },
    { "{\"task_id\":\"t\",\"proplet_id\":\"p\",\"error\":\"e\",\"results\":", "}", 500, "e" },
    { "{\"task_id\":\"t\",\"proplet_id\":\"p\",\"error\":\"\\ud800\"}", "", 0,
      "the device reports an error of 8 bytes, which is not stored" },
};

TEST_EACH(a_result_that_is_json_and_cannot_be_stored_says_why, LEGAL)
{
    size_t levels = LEGAL[_i].levels;
    char *open = arena_alloc(arena, levels + 1, 1), *close = arena_alloc(arena, levels + 1, 1);
    struct result_message message = { 0 };

    memset(open, '[', levels);
    memset(close, ']', levels);
    const char *text = arena_printf(arena, "%s%s%s%s", LEGAL[_i].begin, open, close, LEGAL[_i].end);
    ck_assert_int_eq(message_result_parse(arena, text, strlen(text), &message, &err), 0);
    ck_assert_str_eq(message.task_id, "t");
    ck_assert_str_eq(message.proplet_id, "p");
    ck_assert_pstr_eq(message.error, LEGAL[_i].why);
    ck_assert_int_eq(message.refusal == RESULT_UNREADABLE,
                     str_has_prefix(LEGAL[_i].why ? LEGAL[_i].why : "", "the result "));
}

/* "<begin>[0,0,...]}" of so many bytes. */
static const char *zeros(const char *begin, size_t len)
{
    char *text = arena_alloc(arena, len + 1, 1);
    size_t used = strlen(begin);

    memcpy(text, begin, used);
    text[used++] = '[';
    for (; used < len - 4; used += 2)
        memcpy(text + used, "0,", 2);
    memcpy(text + used, "0]}", 3);
    return text;
}

/* A tree takes 40 times the bytes of "0,". */
TEST(a_message_costs_its_bytes_and_not_its_values)
{
    static int (*const PARSERS[])(const char *, size_t) = { parse_alive, parse_create, parse_result,
                                                            parse_metrics };
    enum { LEN = 9800000 };
    const char *text = zeros("{\"proplet_id\":\"p\",\"task_id\":\"t\",\"results\":", LEN);
    struct short_result result;

    for (size_t i = 0; i < ARRAY_LEN(PARSERS); i++) {
        heap_watch();
        int r = PARSERS[i](text, strlen(text));
        ck_assert_int_eq(r, PARSERS[i] == parse_result ? 0 : -ERROR_INVALID);
        ck_assert_uint_le(heap_peak(), 1 << 20);
    }
    heap_watch();
    ck_assert_int_eq(message_result_shorten(arena, text, strlen(text), &result, &err), 0);
    ck_assert_uint_le(heap_peak(), 1 << 20);
    ck_assert_int_eq(result.refusal, RESULT_TOO_LARGE);
    ck_assert_msg(strstr(result.text, "\"the result has 97999"), "%s", result.text);

    /* one that is stored */
    text = zeros("{\"task_id\":\"t\",\"results\":", 1000000);
    heap_watch();
    ck_assert_int_eq(message_result_shorten(arena, text, strlen(text), &result, &err), 0);
    ck_assert_uint_le(heap_peak(), 4 * 1000000);
    ck_assert_int_eq(result.refusal, RESULT_STORABLE);
    ck_assert_uint_eq(result.len, strlen(text));
}

static const char *metadata_of(const char *said)
{
    struct create_message message = { 0 };
    const char *text = arena_printf(arena, "{\"proplet_id\":\"p\",\"metadata\":%s}", said);
    int r = message_create_parse(arena, text, strlen(text), &message, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    return message.metadata ? json_text(arena, message.metadata, NULL) : NULL;
}

static const struct {
    const char *said;
    const char *metadata;
} METADATA[] = {
    { "null", NULL },
    { "[]", NULL },
    { "\"linux\"", NULL },
    { "{}", "{}" },
    { "{\"os\":\"\",\"environment\":\"\",\"tags\":[],\"total_memory_bytes\":0}", "{}" },
    { "{\"os\":7,\"ip\":{},\"hostname\":null,\"tags\":\"a,b\",\"total_memory_bytes\":\"1\"}",
      "{}" },
    { "{\"total_memory_bytes\":-1}", "{}" },
    { "{\"total_memory_bytes\":1.5}", "{}" },
    { "{\"total_memory_bytes\":99999999999999999999}", "{}" },
    { "{\"total_memory_bytes\":9007199254740993}", "{\"totalMemoryBytes\":9007199254740993}" },
    { "{\"tags\":[\"a\",7,\"\",null,\"b\"]}", "{\"tags\":[\"a\",\"b\"]}" },
    { "{\"cpu_arch\":\"x86_64\",\"cpuArch\":\"arm\",\"secret\":\"s\"}",
      "{\"cpuArch\":\"x86_64\"}" },
};

TEST_EACH(metadata_is_what_is_known_and_of_its_type, METADATA)
{
    ck_assert_pstr_eq(metadata_of(METADATA[_i].said), METADATA[_i].metadata);
}

TEST(metadata_cannot_fill_an_object)
{
    char tags[200] = "";
    char text[300] = "";

    for (size_t i = 0; i < 40; i++)
        memcpy(tags + i * 4, "\"t\",", 4);
    tags[40 * 4 - 1] = '\0';
    for (size_t i = 0; i < 258; i += 3) /* 256 is in the middle of a character */
        memcpy(text + i, "\xe2\x82\xac", 3);

    const char *bounded = metadata_of(arena_printf(arena, "{\"tags\":[%s]}", tags));
    size_t count = 0;
    for (const char *at = strchr(bounded, 't') + 4; *at; at++)
        count += *at == 't';
    ck_assert_uint_eq(count, 32);

    text[255] = '\0';
    const char *cut = arena_strdup(arena, text);
    text[255] = '\xe2';
    ck_assert_str_eq(metadata_of(arena_printf(arena, "{\"location\":\"%s\"}", text)),
                     arena_printf(arena, "{\"location\":\"%s\"}", cut));
}

TEST_GROUP("topics and ids", arena_set_up, arena_tear_down);

TEST(first_attempt_is_named_by_the_uid_alone)
{
    ck_assert_str_eq(message_id(arena, "uid", 0), "uid");
    ck_assert_str_eq(message_id(arena, "uid", 1), "uid");
    ck_assert_str_eq(message_id(arena, "uid", 2), "uid.2");
    ck_assert_str_eq(message_id(arena, "uid", INT64_MAX), "uid.9223372036854775807");
}

TEST(uid_is_what_comes_before_the_first_dot)
{
    ck_assert_str_eq(message_id_uid(arena, "uid"), "uid");
    ck_assert_str_eq(message_id_uid(arena, "uid.2"), "uid");
    ck_assert_str_eq(message_id_uid(arena, "uid.2.17"), "uid");
    ck_assert_str_eq(message_id_uid(arena, ".2"), "");
    ck_assert_str_eq(message_id_uid(arena, ""), "");
}

TEST(target_of_a_broadcast_has_a_name_of_its_own)
{
    ck_assert_str_eq(message_id_of_target(arena, "uid", 1, 0), "uid.1.0");
    ck_assert_str_eq(message_id_of_target(arena, "uid", 2, 499), "uid.2.499");
}

static const struct {
    const char *id;
    bool ok;
    int64_t attempt, index;
} NUMBERS[] = {
    { "uid", true, 1, -1 },       { "uid.2", true, 2, -1 },
    { "uid.2.17", true, 2, 17 },  { "uid.1.0", true, 1, 0 },
    { "uid.x", false, 0, 0 },     { "uid.", false, 0, 0 },
    { "uid.2.", false, 0, 0 },    { "uid.2.x", false, 0, 0 },
    { "uid.2.-1", false, 0, 0 },  { "uid..1", false, 0, 0 },
    { "uid.2.3.4", false, 0, 0 }, { "uid.123456789012345678901234567890.1", false, 0, 0 },
};

TEST_EACH(numbers_of_an_id_are_read_or_it_is_refused, NUMBERS)
{
    int64_t attempt, index;
    bool ok = message_id_numbers(NUMBERS[_i].id, &attempt, &index);

    ck_assert_msg(ok == NUMBERS[_i].ok, "%s", NUMBERS[_i].id);
    if (!ok)
        return;
    ck_assert_int_eq(attempt, NUMBERS[_i].attempt);
    ck_assert_int_eq(index, NUMBERS[_i].index);
}

static const struct {
    const char *text;
    const char *reason; /* NULL: it is refused */
} RECLAIMS[] = {
    { "{\"proplet_id\":\"p\"}", "" },
    { "{\"proplet_id\":\"p\",\"reason\":null}", "" },
    { "{\"proplet_id\":\"p\",\"reason\":\"a meeting\",\"more\":[1]}", "a meeting" },
    { "{\"proplet_id\":\"p\",\"reason\":\"a\\nb\\tc\\u007fd\\u0085e\"}", "a b c d  e" },
    { "{\"proplet_id\":\"p\",\"reason\":7}", NULL },
    { "{\"proplet_id\":\"p\",\"reason\":\"a\\u0000b\"}", NULL },
    { "{\"proplet_id\":\"\",\"reason\":\"x\"}", NULL },
    { "{\"reason\":\"x\"}", NULL },
    { "[]", NULL },
    { "", NULL },
};

TEST_EACH(reclaim_names_its_device_and_a_reason_for_people, RECLAIMS)
{
    struct reclaim_message message;
    int r =
        message_reclaim_parse(arena, RECLAIMS[_i].text, strlen(RECLAIMS[_i].text), &message, &err);

    ck_assert_int_eq(r, RECLAIMS[_i].reason ? 0 : -ERROR_INVALID);
    if (r < 0)
        return;
    ck_assert_str_eq(message.proplet_id, "p");
    ck_assert_str_eq(message.reason, RECLAIMS[_i].reason);
}

/* Cut between characters of two bytes; and a message of 1 KiB is the longest. */
TEST(reclaim_keeps_a_part_of_a_long_reason)
{
    struct reclaim_message message;
    const char *reason = "a";

    while (strlen(reason) < 993)
        reason = arena_printf(arena, "%s\xc3\xa4", reason);
    const char *text = arena_printf(arena, "{\"proplet_id\":\"p\",\"reason\":\"%s\"}  ", reason);
    ck_assert_uint_eq(strlen(text), 1025);
    ck_assert_int_eq(message_reclaim_parse(arena, text, 1024, &message, &err), 0);
    ck_assert_uint_eq(strlen(message.reason), 255);
    ck_assert_int_eq(message_reclaim_parse(arena, text, 1025, &message, &err), -ERROR_TOO_LARGE);
}
