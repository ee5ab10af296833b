#include "controller/device/trend.h"

#include <stdlib.h>
#include <string.h>

static uint8_t trend_encode(int64_t milli_percent)
{
    int64_t percent = milli_percent / 1000;

    if (milli_percent < 0)
        return 0;
    return (uint8_t)(1 + (percent > TREND_MAX_PERCENT ? TREND_MAX_PERCENT : percent));
}

static int64_t trend_step_at(int64_t now_us)
{
    return now_us / 1000000 / TREND_STEP_S;
}

void trend_add(struct trend *trend, const struct sample *sample, int64_t now_us)
{
    int64_t step = trend_step_at(now_us);

    if (llabs(step - trend->step) >= TREND_LEN)
        memset(trend, 0, sizeof(*trend));
    for (int64_t skipped = trend->step + 1; trend->step && skipped <= step; skipped++)
        trend->cpu[skipped % TREND_LEN] = trend->memory[skipped % TREND_LEN] = 0;
    if (step > trend->step)
        trend->step = step;
    trend->cpu[trend->step % TREND_LEN] = trend_encode(sample->cpu_milli_percent);
    trend->memory[trend->step % TREND_LEN] = trend_encode(sample->memory_milli_percent);
}

static void trend_show_values(const struct trend *trend, const uint8_t *values, int64_t last,
                              cJSON *array)
{
    for (int64_t step = last - TREND_LEN + 1; step <= last; step++) {
        uint8_t value = step <= trend->step ? values[step % TREND_LEN] : 0;

        cJSON_AddItemToArray(array, value ? cJSON_CreateNumber(value - 1) : cJSON_CreateNull());
    }
}

void trend_show(const struct trend *trend, int64_t now_us, cJSON *holder)
{
    int64_t last = trend_step_at(now_us);

    if (last < trend->step)
        last = trend->step;
    if (!trend->step || last - trend->step >= TREND_LEN)
        return;
    cJSON *load = json_set_object(holder, "load");
    json_set_int(load, "step", TREND_STEP_S);
    trend_show_values(trend, trend->cpu, last, json_set_array(load, "cpu"));
    trend_show_values(trend, trend->memory, last, json_set_array(load, "memory"));
}
