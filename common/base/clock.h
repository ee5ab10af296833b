/*
 * This module reads clocks through a table, which tests replace, and converts times to RFC 3339.
 *
 * A clock is borrowed and outlives its users. Reading one never fails or blocks; any thread. The
 * conversions are pure. Units are in the names: _ms is milliseconds, _us microseconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;

/*
 * monotonic_ms  CLOCK_MONOTONIC: time-outs and back-off of this process
 * boot_ms       CLOCK_BOOTTIME: the Lease, whose time goes on while the machine sleeps
 * wall_us       CLOCK_REALTIME, since 1970: timestamps of objects
 */
struct clock {
    void *ctx;
    int64_t (*monotonic_ms)(void *ctx);
    int64_t (*boot_ms)(void *ctx);
    int64_t (*wall_us)(void *ctx);
};

extern const struct clock CLOCK_SYSTEM;

int64_t clock_monotonic_ms(const struct clock *clock);
int64_t clock_boot_ms(const struct clock *clock);
int64_t clock_wall_us(const struct clock *clock);

/* Write "2026-11-21T10:00:00Z" (metav1.Time) or "2026-11-21T10:00:00.000000Z" (metav1.MicroTime) to
 * ret, and return ret. */
#define RFC3339_LEN 32
const char *rfc3339_format(int64_t wall_us, char ret[static RFC3339_LEN]);
const char *rfc3339_format_micro(int64_t wall_us, char ret[static RFC3339_LEN]);
/* Accepts any fraction and any offset. Returns false, and leaves *ret_us as it was, if text is not
 * RFC 3339. */
bool rfc3339_parse(const char *text, int64_t *ret_us);
/* Returns a duration as kubectl prints an age, in at most two units: "3m20s", "5h30m", "12d"; in the arena. Less than a
 * second, and a negative duration, is "0s". */
const char *duration_text(struct arena *arena, int64_t us);
