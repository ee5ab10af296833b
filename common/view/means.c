#include "common/view/means.h"

#include <math.h>

#include "common/base/str.h"

struct mean {
    const char *round_uid, *metric;
    double sum, samples;
};

struct means {
    struct arena *arena;
    struct mean *items; /* MEANS_MAX */
    size_t len;
};

struct means *means_create(struct arena *arena)
{
    struct means *means = arena_new(arena, struct means);

    *means = (struct means){ .arena = arena, .items = arena_array(arena, struct mean, MEANS_MAX) };
    return means;
}

/* NULL: there is no room for another one. */
static struct mean *mean_of(struct means *means, const char *round_uid, const char *metric)
{
    for (size_t i = 0; i < means->len; i++) {
        if (str_equal(means->items[i].round_uid, round_uid) &&
            str_equal(means->items[i].metric, metric))
            return &means->items[i];
    }
    if (means->len == MEANS_MAX)
        return NULL;

    struct mean *mean = &means->items[means->len++];
    mean->round_uid = arena_strdup(means->arena, round_uid);
    mean->metric = arena_strdup(means->arena, metric);
    return mean;
}

void means_add(struct means *means, const char *round_uid, const cJSON *results)
{
    double samples = json_double(json_get(results, "numSamples"), 0);

    if (!(samples > 0))
        return;
    json_for_each (metric, json_get(results, "metrics")) {
        double value = json_double(metric, NAN);
        struct mean *mean = isfinite(value) ? mean_of(means, round_uid, metric->string) : NULL;

        if (!mean)
            continue;
        mean->sum += value * samples;
        mean->samples += samples;
    }
}

void means_show(const struct means *means, const char *round_uid, cJSON *object)
{
    for (size_t i = 0; i < means->len; i++) {
        const struct mean *mean = &means->items[i];

        /* large values of one device may have left the numbers of a double */
        if (str_equal(mean->round_uid, round_uid) && isfinite(mean->sum / mean->samples))
            json_set(object, mean->metric, cJSON_CreateNumber(mean->sum / mean->samples));
    }
}
