#include "controller/device/samples.h"

#include <math.h>

#include "common/base/clock.h"
#include "controller/device/messages.h"

const char *const SAMPLE_VERDICT_NAMES[SAMPLE_VERDICTS] = {
    [SAMPLE_PLAUSIBLE] = "plausible",       [SAMPLE_EMPTY] = "empty",
    [SAMPLE_NOT_A_NUMBER] = "not_a_number", [SAMPLE_NEGATIVE] = "negative",
    [SAMPLE_TOO_LARGE] = "too_large",
};

#define UNSAID (-1)
#define DEVICE_MEMORY_FACTOR 1024

/* A number from 0 to max, times scale, rounded down; UNSAID: none, or one that cannot be meant. The
 * first objection of a message stays. */
static int64_t take(enum sample_verdict *verdict, const cJSON *item, double max, double scale)
{
    if (!item || cJSON_IsNull(item))
        return UNSAID;

    enum sample_verdict objection = SAMPLE_PLAUSIBLE;
    double value = json_double(item, INFINITY); /* 1e999 is a number, too */
    if (!json_is_number(item))
        objection = SAMPLE_NOT_A_NUMBER;
    else if (value < 0)
        objection = SAMPLE_NEGATIVE;
    else if (value > max)
        objection = SAMPLE_TOO_LARGE;
    if (objection == SAMPLE_PLAUSIBLE)
        return (int64_t)(value * scale);

    if (*verdict == SAMPLE_PLAUSIBLE)
        *verdict = objection;
    return UNSAID;
}

static int64_t take_percent(enum sample_verdict *verdict, const cJSON *item)
{
    return take(verdict, item, SAMPLE_MAX_PERCENT, 1000);
}

static int64_t take_bytes(enum sample_verdict *verdict, const cJSON *item)
{
    return take(verdict, item, (double)SAMPLE_MAX_BYTES, 1);
}

static enum sample_verdict judge(enum sample_verdict verdict, const struct sample *sample)
{
    bool empty = sample->cpu_milli_percent == UNSAID && sample->memory_bytes == UNSAID;

    return verdict == SAMPLE_PLAUSIBLE && empty ? SAMPLE_EMPTY : verdict;
}

/* Of bytes in what there is of them; limits that mean "none" are beyond every machine. */
static int64_t share(int64_t bytes, int64_t limit)
{
    if (bytes < 0 || limit <= 0 || limit > SAMPLE_MAX_BYTES)
        return UNSAID;

    double milli_percent = (double)bytes / (double)limit * 100000;
    return milli_percent > SAMPLE_MAX_PERCENT * 1e3 ? UNSAID : (int64_t)milli_percent;
}

int message_metrics_parse(struct arena *arena, const char *text, size_t len,
                          struct metrics_message *ret, struct error *err)
{
    const cJSON *json;
    int r = message_read(arena, text, len, &json, err);
    if (r < 0)
        return r;

    struct metrics_message message = { 0 };
    r = message_string(json, "proplet_id", &message.proplet_id, err);
    if (r < 0)
        return r;

    enum sample_verdict verdict = SAMPLE_PLAUSIBLE;
    const cJSON *memory = json_get(json, "memory_metrics");
    int64_t process = take_bytes(&verdict, json_get(memory, "rss_bytes"));
    int64_t heap = take_bytes(&verdict, json_get(memory, "heap_alloc_bytes"));
    bool has_process = process > 0 || heap <= 0;
    const cJSON *limit = json_get(memory, has_process ? "container_limit_bytes" : "heap_sys_bytes");

    message.sample = (struct sample){
        .cpu_milli_percent =
            take_percent(&verdict, json_path(json, "cpu_metrics", "percent", NULL)),
        .memory_bytes = has_process ? process : heap,
    };
    message.sample.memory_milli_percent = share(message.sample.memory_bytes, json_int(limit, 0));
    message.verdict = judge(verdict, &message.sample);
    *ret = message;
    return 0;
}

int message_task_metrics_parse(struct arena *arena, const char *text, size_t len,
                               struct task_metrics_message *ret, struct error *err)
{
    const cJSON *json;
    int r = message_read(arena, text, len, &json, err);
    if (r < 0)
        return r;

    struct task_metrics_message message = { 0 };
    r = message_string(json, "task_id", &message.task_id, err);
    if (r == 0)
        r = message_optional_string(json, "proplet_id", &message.proplet_id, err);
    if (r < 0)
        return r;

    enum sample_verdict verdict = SAMPLE_PLAUSIBLE;
    const cJSON *metrics = json_get(json, "metrics");
    message.sample = (struct sample){
        .cpu_milli_percent = take_percent(&verdict, json_get(metrics, "cpu_percent")),
        .memory_milli_percent = take_percent(&verdict, json_get(metrics, "memory_percent")),
        .memory_bytes = take_bytes(&verdict, json_get(metrics, "memory_bytes")),
    };
    message.verdict = judge(verdict, &message.sample);
    *ret = message;
    return 0;
}

void sample_correct(struct sample *sample, enum proplet_dialect dialect)
{
    if (dialect != DIALECT_STANDARD)
        return;

    if (sample->memory_bytes > 0)
        sample->memory_bytes /= DEVICE_MEMORY_FACTOR;
    sample->memory_milli_percent = UNSAID;
}

const cJSON *sample_json(struct arena *arena, const struct sample *sample, int64_t at_us)
{
    cJSON *json = json_object(arena);
    char text[RFC3339_LEN];

    json_set_string(json, "timestamp", rfc3339_format(at_us, text));
    if (sample->cpu_milli_percent >= 0)
        json_set_int(json, "cpuMilliPercent", sample->cpu_milli_percent);
    if (sample->memory_milli_percent >= 0)
        json_set_int(json, "memoryMilliPercent", sample->memory_milli_percent);
    if (sample->memory_bytes >= 0)
        json_set_int(json, "memoryBytes", sample->memory_bytes);
    return json;
}
