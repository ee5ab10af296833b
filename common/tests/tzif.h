/* Time zones made up for tests, as TZif files of version 2. */
#pragma once

#include "common/api/zone.h"
#include "common/base/buf.h"

#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"
#define LORD_HOWE "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0" /* changes by half an hour */

struct tzif_change {
    int64_t at_s;
    int32_t offset_s;
};

/* What a file would hold; first_s: the offset before the first change. At most 8 changes. */
void tzif_write(struct buf *ret, int32_t first_s, const struct tzif_change *changes, size_t len,
                const char *rule);
/* The zone of a rule alone. */
const struct zone *tzif_zone(struct arena *arena, const char *rule);
/* "2026-03-29T01:00:00Z", in microseconds. */
int64_t tzif_time_us(const char *text);
