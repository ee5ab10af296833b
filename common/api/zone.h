/* A time zone: its offset from UTC at every second, from the bytes of a TZif file (RFC 9636). */
#pragma once

#include <stddef.h>

#include "common/api/zone_rule.h"
#include "common/base/arena.h"
#include "common/base/error.h"

/*
 * The tables are our own, because there is no library to take: C and POSIX know one zone for the
 * whole process (TZ), which other threads read; ICU and GLib would be larger than this program.
 * Pure: timezone.h reads the file. Immutable. NULL is UTC.
 */
struct zone;

/* Larger ones than the database has. */
#define ZONE_MAX_BYTES (64u << 10)

/* ret borrows nothing from bytes. ERROR_INVALID: no TZif file, a broken one, or one that counts
 * leap seconds, as no other clock here does. */
int zone_parse(struct arena *arena, const void *bytes, size_t len, const struct zone **ret,
               struct error *err) MUST_CHECK;

/* Returns the offset at this second, and the span in which it holds. */
struct zone_span zone_span_at(const struct zone *zone, int64_t at_s);
/*
 * The first second at which local clocks show local_s (in seconds, as if it were UTC) or later. Of a
 * time that comes twice the first one; of a time that the clock jumps over, the second of the jump.
 */
int64_t zone_instant(const struct zone *zone, int64_t local_s);
