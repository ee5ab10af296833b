#include "bench/fleet/swarm.h"

#include <stdlib.h>
#include <string.h>

#include "bench/fleet/agenda.h"
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/json.h"

/* The longest: a result, whose text is bounded by the options. */
#define MAX_MESSAGE ((1u << 20) + 1024)
#define CANCELLED "Task was cancelled or panicked"

enum dice { DICE_LOST = 1, DICE_DUPLICATE, DICE_LATE, DICE_SPREAD };

/* A round of messages that every device sends once an interval, one after the other. */
struct round {
    int64_t interval_ms; /* 0: never */
    int64_t began_ms;
    int64_t said; /* since it began, of all devices */
};

struct swarm {
    struct swarm_settings settings;
    swarm_send_fn *send;
    swarm_note_fn *note;
    void *ctx;
    int64_t began_ms;
    struct round alive, metrics;
    struct agenda *agenda;
    struct ledger *ledger;
    struct swarm_counts counts;
    struct buf text;
    char *result; /* what everything computes to */
};

struct swarm *swarm_create(const struct swarm_settings *settings, int64_t now_ms,
                           swarm_send_fn *send, swarm_note_fn *note, void *ctx)
{
    struct swarm *swarm = xcalloc(1, sizeof(*swarm));
    size_t bytes = (size_t)settings->result_bytes;

    *swarm = (struct swarm){
        .settings = *settings,
        .send = send,
        .note = note,
        .ctx = ctx,
        .began_ms = now_ms,
        .alive = { settings->alive_ms, now_ms, 0 },
        .metrics = { settings->metrics_ms, now_ms, 0 },
        .agenda = agenda_create(),
        .ledger = ledger_create((size_t)settings->max_ids),
        .text = BUF_INIT(MAX_MESSAGE),
        .result = xcalloc(1, bytes + 1),
    };
    memset(swarm->result, '4', bytes);
    return swarm;
}

void swarm_destroy(struct swarm *swarm)
{
    if (!swarm)
        return;

    agenda_destroy(swarm->agenda);
    ledger_destroy(swarm->ledger);
    buf_release(&swarm->text);
    free(swarm->result);
    free(swarm);
}

uint32_t swarm_device_of(const struct swarm *swarm, const char *identity)
{
    size_t prefix = strlen(swarm->settings.prefix);
    int64_t number;

    if (!identity || strncmp(identity, swarm->settings.prefix, prefix) != 0 ||
        identity[prefix] != '-' || identity[prefix + 1] == '0' ||
        !str_to_int64(identity + prefix + 1, &number) || number < 1 ||
        number > swarm->settings.devices)
        return 0;
    return (uint32_t)number;
}

static uint64_t roll(const struct swarm *swarm, const char *id, uint32_t run, enum dice dice)
{
    uint64_t x = ledger_hash(id) ^ ((uint64_t)swarm->settings.seed << 32) ^ ((uint64_t)run << 8) ^
                 (uint64_t)dice;

    /* splitmix64 (Steele, Lea, Flood, 2014) */
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static bool happens(const struct swarm *swarm, const char *id, uint32_t run, enum dice dice,
                    double percent)
{
    return (double)(roll(swarm, id, run, dice) % 100000) < percent * 1000;
}

static bool is_mute(const struct swarm *swarm, uint32_t device, int64_t now_ms)
{
    return device <= swarm->settings.mute_devices &&
           now_ms >= swarm->began_ms + swarm->settings.mute_after_ms;
}

static void say(struct swarm *swarm, uint32_t device, const char *suffix, const char *result_id)
{
    const struct swarm_message message = {
        .device = device,
        .suffix = suffix,
        .payload = buf_string(&swarm->text),
        .len = swarm->text.len,
        .important = result_id != NULL,
        .id = result_id,
    };

    swarm->send(swarm->ctx, &message);
}

/* Ids come from the controller and are checked at the start: nothing in them needs an escape. */
static void say_result(struct swarm *swarm, uint32_t device, const char *id, const char *result,
                       const char *error)
{
    buf_clear(&swarm->text);
    if (!buf_printf(&swarm->text,
                    "{\"task_id\":\"%s\",\"proplet_id\":\"%s-%u\",\"results\":\"%s\",\"error\":%s}",
                    id, swarm->settings.prefix, device, result, error))
        return;
    ledger_answer(swarm->ledger, id);
    swarm->note(swarm->ctx, device, "result", id);
    say(swarm, device, "results", id);
}

static void say_sample(struct swarm *swarm, uint32_t device, const char *id, int64_t now_ms)
{
    char now[RFC3339_LEN];

    buf_clear(&swarm->text);
    if (buf_printf(&swarm->text,
                   "{\"task_id\":\"%s\",\"proplet_id\":\"%s-%u\",\"metrics\":{\"cpu_percent\":0.5,"
                   "\"memory_bytes\":1048576,\"memory_percent\":0.0,\"disk_read_bytes\":0,"
                   "\"disk_write_bytes\":0,\"uptime_seconds\":0,\"thread_count\":1,"
                   "\"file_descriptor_count\":8},\"aggregated\":null,\"timestamp\":\"%s\"}",
                   id, swarm->settings.prefix, device, rfc3339_format(now_ms * 1000, now)))
        say(swarm, device, "task_metrics", NULL);
}

static void say_alive(struct swarm *swarm, uint32_t device, bool first)
{
    buf_clear(&swarm->text);
    if (first && buf_printf(&swarm->text,
                            "{\"proplet_id\":\"%s-%u\",\"namespace\":\"default\",\"metadata\":{"
                            "\"environment\":\"binary\",\"os\":\"linux\",\"cpu_arch\":\"x86_64\","
                            "\"total_memory_bytes\":1073741824,\"proplet_version\":\"0.5.0\","
                            "\"wasm_runtime\":\"wasmtime-internal\"}}",
                            swarm->settings.prefix, device))
        say(swarm, device, "create", NULL);
    buf_clear(&swarm->text);
    if (buf_printf(&swarm->text,
                   "{\"proplet_id\":\"%s-%u\",\"status\":\"alive\",\"namespace\":\"default\"}",
                   swarm->settings.prefix, device))
        say(swarm, device, "alive", NULL);
    swarm->counts.heartbeats++;
}

static void say_metrics(struct swarm *swarm, uint32_t device, int64_t now_ms)
{
    char now[RFC3339_LEN];

    buf_clear(&swarm->text);
    if (buf_printf(&swarm->text,
                   "{\"proplet_id\":\"%s-%u\",\"namespace\":\"default\",\"timestamp\":\"%s\","
                   "\"cpu_metrics\":{\"user_seconds\":1.0,\"system_seconds\":1.0,\"percent\":%u.0},"
                   "\"memory_metrics\":{\"rss_bytes\":1048576,\"heap_alloc_bytes\":0,"
                   "\"heap_sys_bytes\":0,\"heap_inuse_bytes\":0,\"container_usage_bytes\":0}}",
                   swarm->settings.prefix, device, rfc3339_format(now_ms * 1000, now),
                   device % 100))
        say(swarm, device, "metrics", NULL);
}

/* ---- commands ---- */

static bool is_plain(const char *id)
{
    return !str_is_empty(id) && strlen(id) < 128 &&
           strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_") ==
               strlen(id);
}

static void begin(struct swarm *swarm, int64_t now_ms, uint32_t device, const char *id,
                  uint32_t run)
{
    const struct swarm_settings *settings = &swarm->settings;
    int64_t result_ms = settings->result_ms;

    if (settings->spread_ms)
        result_ms +=
            (int64_t)(roll(swarm, id, run, DICE_SPREAD) % (uint64_t)(settings->spread_ms + 1));
    if (happens(swarm, id, run, DICE_LATE, settings->late_percent))
        result_ms += settings->late_ms;
    agenda_add(swarm->agenda, (struct due){ .at_ms = now_ms + result_ms,
                                            .kind = DUE_RESULT,
                                            .device = device,
                                            .run = run,
                                            .id = xstrdup(id) });
    if (settings->samples && result_ms > SWARM_SAMPLE_MS)
        agenda_add(swarm->agenda, (struct due){ .at_ms = now_ms + SWARM_SAMPLE_MS,
                                                .kind = DUE_SAMPLE,
                                                .device = device,
                                                .run = run,
                                                .id = xstrdup(id) });
}

int swarm_start(struct swarm *swarm, int64_t now_ms, const char *payload, size_t len,
                struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *message;
    uint32_t run = 0;

    if (json_parse(arena, payload, len, &message, NULL) < 0 ||
        !is_plain(json_string(json_get(message, "id"), ""))) {
        swarm->counts.malformed++;
        return 0;
    }

    const char *id = json_string(json_get(message, "id"), "");
    uint32_t device = swarm_device_of(swarm, json_string(json_get(message, "proplet_id"), NULL));
    if (!device) {
        swarm->counts.unknown++;
        return 0;
    }
    if (is_mute(swarm, device, now_ms))
        return 0;

    switch (ledger_start(swarm->ledger, id, device, &run)) {
    case LEDGER_FULL:
        return error_set(err, ERROR_TOO_LARGE, "more than %lld ids: see --max-ids",
                         (long long)swarm->settings.max_ids);
    case LEDGER_IGNORE:
        return 0;
    case LEDGER_RUN:
        break;
    }
    swarm->note(swarm->ctx, device, "start", id);
    if (happens(swarm, id, run, DICE_LOST, swarm->settings.lost_percent))
        ledger_lose(swarm->ledger, id);
    else
        begin(swarm, now_ms, device, id, run);
    return 0;
}

void swarm_stop(struct swarm *swarm, const char *payload, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *message;

    if (json_parse(arena, payload, len, &message, NULL) < 0) {
        swarm->counts.malformed++;
        return;
    }

    const char *id = json_string(json_get(message, "id"), "");
    uint32_t device = swarm_device_of(swarm, json_string(json_get(message, "proplet_id"), NULL));
    if (device && is_plain(id) && ledger_finish(swarm->ledger, id, true))
        say_result(swarm, device, id, "", "\"" CANCELLED "\"");
}

/* ---- time ---- */

static void finish(struct swarm *swarm, const struct due *due)
{
    (void)ledger_finish(swarm->ledger, due->id, false);
    say_result(swarm, due->device, due->id, swarm->result, "null");
    if (happens(swarm, due->id, due->run, DICE_DUPLICATE, swarm->settings.duplicate_percent))
        agenda_add(swarm->agenda, (struct due){ .at_ms = due->at_ms + SWARM_REPEAT_MS,
                                                .kind = DUE_REPEAT,
                                                .device = due->device,
                                                .run = due->run,
                                                .id = xstrdup(due->id) });
}

static void happen(struct swarm *swarm, int64_t now_ms, const struct due *due)
{
    if (is_mute(swarm, due->device, now_ms))
        return;
    if (due->kind == DUE_REPEAT) {
        say_result(swarm, due->device, due->id, swarm->result, "null");
        return;
    }
    if (!ledger_runs(swarm->ledger, due->id, due->run)) /* stopped */
        return;
    if (due->kind == DUE_RESULT) {
        finish(swarm, due);
        return;
    }
    say_sample(swarm, due->device, due->id, now_ms);
    agenda_add(swarm->agenda, (struct due){ .at_ms = due->at_ms + SWARM_SAMPLES_MS,
                                            .kind = DUE_SAMPLE,
                                            .device = due->device,
                                            .run = due->run,
                                            .id = xstrdup(due->id) });
}

/* When the next device has its turn. */
static int64_t round_next_ms(const struct swarm *swarm, const struct round *round)
{
    int64_t devices = swarm->settings.devices;

    if (!round->interval_ms)
        return INT64_MAX;
    return round->began_ms + round->said / devices * round->interval_ms +
           round->said % devices * round->interval_ms / devices;
}

static bool round_turn(struct swarm *swarm, struct round *round, int64_t now_ms,
                       uint32_t *ret_device)
{
    if (round_next_ms(swarm, round) > now_ms)
        return false;

    *ret_device = (uint32_t)(round->said % swarm->settings.devices) + 1;
    round->said++;
    return true;
}

/* false: nothing is due. */
static bool step(struct swarm *swarm, int64_t now_ms)
{
    uint32_t device;
    struct due due;

    if (agenda_take(swarm->agenda, now_ms, &due)) {
        happen(swarm, now_ms, &due);
        free(due.id);
        return true;
    }
    if (round_turn(swarm, &swarm->alive, now_ms, &device)) {
        if (!is_mute(swarm, device, now_ms))
            say_alive(swarm, device, swarm->alive.said <= swarm->settings.devices);
        return true;
    }
    if (round_turn(swarm, &swarm->metrics, now_ms, &device)) {
        if (!is_mute(swarm, device, now_ms))
            say_metrics(swarm, device, now_ms);
        return true;
    }
    return false;
}

void swarm_advance(struct swarm *swarm, int64_t now_ms, size_t most)
{
    while (most > 0 && step(swarm, now_ms))
        most--;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t swarm_next_ms(const struct swarm *swarm)
{
    return earlier(agenda_next_ms(swarm->agenda), earlier(round_next_ms(swarm, &swarm->alive),
                                                          round_next_ms(swarm, &swarm->metrics)));
}

struct swarm_counts swarm_counts(const struct swarm *swarm)
{
    struct swarm_counts counts = swarm->counts;

    counts.ledger = ledger_counts(swarm->ledger);
    return counts;
}
