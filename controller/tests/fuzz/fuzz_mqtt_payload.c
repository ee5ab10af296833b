/* Whatever arrives from a broker: every parser of the controller, and the topic. */
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"
#include "controller/device/messages.h"
#include "controller/device/samples.h"

static void check_error(int r, const struct error *err)
{
    REQUIRE(r == -ERROR_INVALID && err->code == ERROR_INVALID && err->message[0]);
}

static void fuzz_alive(struct arena *arena, const char *text, size_t len)
{
    struct alive_message message;
    struct error err = { 0 };
    int r = message_alive_parse(arena, text, len, &message, &err);

    if (r < 0)
        check_error(r, &err);
    else
        REQUIRE(!str_is_empty(message.proplet_id));
}

/* What is kept of a device's word becomes part of an object. */
static void fuzz_create(struct arena *arena, const char *text, size_t len)
{
    struct create_message message;
    struct error err = { 0 };
    const cJSON *again;
    size_t kept_len;
    int r = message_create_parse(arena, text, len, &message, &err);

    if (r < 0) {
        check_error(r, &err);
        return;
    }
    REQUIRE(!str_is_empty(message.proplet_id));
    if (!message.metadata)
        return;

    const char *kept = json_text(arena, message.metadata, &kept_len);
    REQUIRE(kept_len < 128 * 1024);
    REQUIRE(json_parse(arena, kept, kept_len, &again, NULL) == 0);
}

static void fuzz_result(struct arena *arena, const char *text, size_t len)
{
    const struct json_reading own = { .own = true };
    struct result_message message;
    struct error err = { 0 };
    const cJSON *again;
    int r = message_result_parse(arena, text, len, &message, &err);

    if (r < 0) {
        check_error(r, &err);
        return;
    }
    REQUIRE(!str_is_empty(message.task_id));
    REQUIRE(!message.error ||
            (message.error[0] && str_is_utf8(message.error, strlen(message.error))));
    REQUIRE(!strchr(message_id_uid(arena, message.task_id), '.'));
    if (message.results) {
        size_t kept_len;
        const char *kept = json_text(arena, message.results, &kept_len);
        heap_pause();
        REQUIRE(json_parse_with(arena, kept, kept_len, &own, &again, NULL) == 0 ||
                strstr(kept, "\":")); /* a key twice */
        heap_resume();
    }
}

/* The message that waits for its Task says the same, in no more bytes than a status takes. */
static void fuzz_short(struct arena *arena, const char *text, size_t len)
{
    struct result_message message, again;
    struct short_result result;
    int r = message_result_shorten(arena, text, len, &result, NULL);

    heap_pause();
    REQUIRE(r == message_result_parse(arena, text, len, &message, NULL));
    if (r == 0) {
        REQUIRE(result.len <= 4 * RESULT_MAX_SENT && result.refusal == message.refusal);
        REQUIRE(message_result_parse(arena, result.text, result.len, &again, NULL) == 0);
        REQUIRE(str_equal(again.task_id, message.task_id) && !again.error == !message.error);
        REQUIRE(!again.proplet_id == !message.proplet_id);
    }
    heap_resume();
}

/* What is plausible has a place in latestMetrics, whichever device it is from. */
static void check_sample(struct arena *arena, enum sample_verdict verdict, struct sample sample)
{
    REQUIRE(verdict < SAMPLE_VERDICTS);
    if (verdict != SAMPLE_PLAUSIBLE)
        return;

    sample_correct(&sample, DIALECT_EMBEDDED);
    sample_correct(&sample, DIALECT_STANDARD);
    REQUIRE(sample.cpu_milli_percent >= 0 || sample.memory_bytes >= 0);
    REQUIRE(sample.cpu_milli_percent >= -1 &&
            sample.cpu_milli_percent <= SAMPLE_MAX_PERCENT * INT64_C(1000));
    REQUIRE(sample.memory_milli_percent >= -1 &&
            sample.memory_milli_percent <= SAMPLE_MAX_PERCENT * INT64_C(1000));
    REQUIRE(sample.memory_bytes >= -1 && sample.memory_bytes <= SAMPLE_MAX_BYTES);
    REQUIRE(json_len(sample_json(arena, &sample, 0)) >= 2);
}

static void fuzz_metrics(struct arena *arena, const char *text, size_t len)
{
    struct metrics_message message;
    struct error err = { 0 };
    int r = message_metrics_parse(arena, text, len, &message, &err);

    if (r < 0) {
        check_error(r, &err);
        return;
    }
    REQUIRE(!str_is_empty(message.proplet_id));
    check_sample(arena, message.verdict, message.sample);
}

static void fuzz_task_metrics(struct arena *arena, const char *text, size_t len)
{
    struct task_metrics_message message;
    struct error err = { 0 };
    int r = message_task_metrics_parse(arena, text, len, &message, &err);

    if (r < 0) {
        check_error(r, &err);
        return;
    }
    REQUIRE(!str_is_empty(message.task_id));
    check_sample(arena, message.verdict, message.sample);
}

/* The reason becomes an annotation and the note of an Event. */
static void fuzz_reclaim(struct arena *arena, const char *text, size_t len)
{
    struct reclaim_message message;
    struct error err = { 0 };
    int r = message_reclaim_parse(arena, text, len, &message, &err);

    if (r < 0) {
        REQUIRE((r == -ERROR_TOO_LARGE) == (len > RECLAIM_MAX_BYTES));
        REQUIRE((r == -ERROR_TOO_LARGE || r == -ERROR_INVALID) && err.message[0]);
        return;
    }
    REQUIRE(!str_is_empty(message.proplet_id));
    REQUIRE(strlen(message.reason) <= RECLAIM_REASON_MAX);
    REQUIRE(str_is_utf8(message.reason, strlen(message.reason)));
    for (const char *at = message.reason; *at; at++)
        REQUIRE((unsigned char)*at >= ' ' && *at != 0x7f);
}

/* A topic that is taken is the one that would be built for its channel. */
static void fuzz_topic(struct arena *arena, const char *text, size_t len)
{
    const char *topic = arena_strndup(arena, text, len);
    char channel[CHANNEL_KEY_LEN];
    char again[CHANNEL_KEY_LEN];
    enum message_kind kind = message_topic_parse(topic, channel);

    if (kind == MESSAGE_UNKNOWN)
        return;

    const char *built = message_topic(arena, channel, "proplet/results");
    REQUIRE(message_topic_parse(built, again) == MESSAGE_RESULT);
    REQUIRE(str_equal(channel, again));
}

typedef void fuzz_fn(struct arena *arena, const char *text, size_t len);

void fuzz_input(const uint8_t *bytes, size_t len)
{
    static fuzz_fn *const PARSERS[] = { fuzz_reclaim, fuzz_alive,   fuzz_create,       fuzz_result,
                                        fuzz_short,   fuzz_metrics, fuzz_task_metrics, fuzz_topic };

    json_init();
    for (size_t i = 0; i < ARRAY_LEN(PARSERS); i++) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        PARSERS[i](arena, (const char *)bytes, len);
    }
}
