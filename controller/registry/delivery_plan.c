#include "controller/registry/delivery_plan.h"

static bool lacks(int64_t sent_ms, int64_t floor_ms)
{
    return !sent_ms || sent_ms <= floor_ms;
}

size_t delivery_next(const struct delivery_observed *observed)
{
    size_t next = DELIVERY_NONE;
    int64_t floor_ms = INT64_MIN;

    for (size_t i = 0; i < observed->floor_count; i++) {
        if (observed->floors_ms[i] < observed->now_ms && observed->floors_ms[i] > floor_ms)
            floor_ms = observed->floors_ms[i];
    }
    for (size_t i = 0; i < observed->parts && floor_ms != INT64_MIN; i++) {
        int64_t sent_ms = observed->sent_ms[i];

        if (lacks(sent_ms, floor_ms) &&
            (next == DELIVERY_NONE || sent_ms < observed->sent_ms[next]))
            next = i;
    }
    return next;
}

bool delivery_reached(const int64_t *sent_ms, size_t parts, int64_t floor_ms)
{
    for (size_t i = 0; i < parts; i++) {
        if (lacks(sent_ms[i], floor_ms))
            return false;
    }
    return true;
}

int64_t delivery_floor(int64_t started_ms, int64_t fresh_ms, int64_t now_ms)
{
    int64_t floor_ms = now_ms - DELIVERY_KEPT_MS;

    if (started_ms > floor_ms)
        floor_ms = started_ms;
    if (fresh_ms && fresh_ms + DELIVERY_SUBSCRIBED_MS > floor_ms)
        floor_ms = fresh_ms + DELIVERY_SUBSCRIBED_MS;
    return floor_ms;
}

int64_t delivery_rate_ms(int64_t began_ms, size_t len, int64_t bytes_per_s)
{
    return began_ms + ((int64_t)len * 1000 + bytes_per_s - 1) / bytes_per_s;
}

bool delivery_is_too_slow(int64_t pass_ms, int64_t now_ms)
{
    return pass_ms && now_ms - pass_ms > DELIVERY_KEPT_MS;
}
