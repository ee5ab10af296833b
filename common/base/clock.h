/* Time behind a table, so that tests own it; RFC 3339. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * monotonic_ms  CLOCK_MONOTONIC: time-outs and back-off of this process
 * boot_ms       CLOCK_BOOTTIME: leases, which go on while the machine sleeps
 * wall_us       CLOCK_REALTIME, microseconds since 1970: what objects carry
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

/* "2026-11-21T10:00:00Z" (metav1.Time) and "2026-11-21T10:00:00.000000Z" (metav1.MicroTime). */
#define RFC3339_LEN 32
const char *rfc3339_format(int64_t wall_us, char ret[static RFC3339_LEN]);
const char *rfc3339_format_micro(int64_t wall_us, char ret[static RFC3339_LEN]);
/* Accepts any fraction and any offset; false: not RFC 3339, *ret_us untouched. */
bool rfc3339_parse(const char *text, int64_t *ret_us);
