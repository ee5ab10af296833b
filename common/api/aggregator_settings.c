#include "common/api/aggregator_settings.h"

#include <math.h>

#include "common/base/str.h"

struct reading {
    struct arena *arena;
    const cJSON *config;
    aggregator_problem_fn *problem;
    void *ctx;
};

static void tell(const struct reading *reading, const char *field, const char *message)
{
    if (reading->problem)
        reading->problem(reading->ctx, field, message);
}

static enum aggregator_algorithm_id algorithm_of(const struct aggregator *aggregator)
{
    static const char *const NAMES[] = {
        [AGGREGATOR_FEDAVG] = "fedavg", [AGGREGATOR_CONCAT] = "concat",
        [AGGREGATOR_MEDIAN] = "median", [AGGREGATOR_TRIMMED_MEAN] = "trimmed-mean",
        [AGGREGATOR_KRUM] = "krum",
    };
    const char *name = aggregator_algorithm(aggregator);

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (str_equal(NAMES[i], name))
            return (enum aggregator_algorithm_id)i;
    }
    return AGGREGATOR_FEDAVG;
}

static int64_t read_int(const struct reading *reading, const char *key, int64_t least, int64_t most,
                        int64_t fallback)
{
    const cJSON *value = json_get(reading->config, key);
    int64_t number = json_int(value, INT64_MIN);

    if (!value || (number >= least && number <= most))
        return value ? number : fallback;
    tell(reading, arena_printf(reading->arena, "config.%s", key),
         arena_printf(reading->arena, "must be an integer between %lld and %lld, is not used",
                      (long long)least, (long long)most));
    return fallback;
}

static double read_trim(const struct reading *reading)
{
    const cJSON *value = json_get(reading->config, "trim");
    double number = json_double(value, NAN);

    if (!value || (number >= 0 && number < 0.5))
        return value ? number : AGGREGATOR_DEFAULT_TRIM;
    tell(reading, "config.trim", "must be a number of at least 0 and below 0.5, is not used");
    return AGGREGATOR_DEFAULT_TRIM;
}

static const char *read_mu(const struct reading *reading)
{
    const cJSON *value = json_get(reading->config, "mu");
    double number = json_double(value, NAN);

    if (!value)
        return NULL;
    if (number >= 0 && isfinite(number))
        return json_text(reading->arena, value, NULL);
    tell(reading, "config.mu", "must be a number of at least 0, is not used");
    return NULL;
}

void aggregator_settings_read(struct arena *arena, const struct aggregator *aggregator,
                              aggregator_problem_fn *problem, void *ctx,
                              struct aggregator_settings *ret)
{
    struct reading reading = {
        .arena = arena,
        .config = aggregator ? aggregator->config : NULL,
        .problem = problem,
        .ctx = ctx,
    };

    if (aggregator && !str_is_empty(aggregator->algorithm) &&
        !aggregator_is_known(aggregator->algorithm))
        tell(&reading, "algorithm", "not known, " AGGREGATOR_DEFAULT " is used");
    if (reading.config && !cJSON_IsObject(reading.config) && !cJSON_IsNull(reading.config))
        tell(&reading, "config", "must be an object, is not used");

    *ret = (struct aggregator_settings){
        .algorithm = algorithm_of(aggregator),
        .max_samples = read_int(&reading, "maxSamples", 1, AGGREGATOR_MAX_SAMPLES,
                                AGGREGATOR_DEFAULT_MAX_SAMPLES),
        .trim = read_trim(&reading),
        .byzantine = read_int(&reading, "byzantine", 0, AGGREGATOR_MAX_BYZANTINE, -1),
        .proximal_mu = read_mu(&reading),
    };
}
