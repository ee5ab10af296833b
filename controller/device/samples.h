/* The measurements of devices and of their Tasks, in the units of latestMetrics (the Propeller
 * MQTT contract, section 8). */
#pragma once

#include "common/api/proplet.h"
#include "common/json/json.h"

/* -1 where the device says nothing: left out, or null, as its serializer writes NaN. */
struct sample {
    int64_t cpu_milli_percent; /* of all cores for a device, of one core for a Task */
    int64_t memory_milli_percent;
    int64_t memory_bytes;
};

/* Whether the numbers can be meant. Impossible ones are counted by this and dropped. */
enum sample_verdict {
    SAMPLE_PLAUSIBLE,
    SAMPLE_EMPTY, /* neither processor time nor memory */
    SAMPLE_NOT_A_NUMBER,
    SAMPLE_NEGATIVE,
    SAMPLE_TOO_LARGE,
    SAMPLE_VERDICTS,
};
extern const char *const SAMPLE_VERDICT_NAMES[SAMPLE_VERDICTS];

/* Beyond what any machine has: ten thousand cores, an exbibyte. */
#define SAMPLE_MAX_PERCENT 1000000
#define SAMPLE_MAX_BYTES (INT64_C(1) << 60)

/*
 * Of a device: cpu_metrics.percent; the resident memory of its process, where it has none (a
 * microcontroller) the heap in use; their share of the container's limit or of the heap, if there
 * is such a thing (cgroup v1 says "no limit" with a number near 2^63).
 */
struct metrics_message {
    const char *proplet_id;
    enum sample_verdict verdict;
    struct sample sample; /* if plausible */
};
int message_metrics_parse(struct arena *arena, const char *text, size_t len,
                          struct metrics_message *ret, struct error *err) MUST_CHECK;

/* Of a running attempt, and the first sign of it, whatever its numbers are. */
struct task_metrics_message {
    const char *task_id;
    const char *proplet_id; /* NULL: none */
    enum sample_verdict verdict;
    struct sample sample; /* if plausible; as the device sent it: see sample_correct */
};
int message_task_metrics_parse(struct arena *arena, const char *text, size_t len,
                               struct task_metrics_message *ret, struct error *err) MUST_CHECK;

/* The Linux device multiplies a Task's bytes by 1024 once too often, and its memory_percent is
 * always 0. */
void sample_correct(struct sample *sample, enum proplet_dialect dialect);

/* status.latestMetrics; at_us: when it came, since devices' clocks mean different things. */
const cJSON *sample_json(struct arena *arena, const struct sample *sample, int64_t at_us);
