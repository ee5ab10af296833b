/* This module decides which part of a module is sent next on a channel, and whether a device has all of them. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A device collects all parts of its channel, by the name of the module. It removes an assembly when it takes it, and
 * forgets it 5 minutes after its first part. Messages are handled side by side: a start may be looked at before the part
 * before it is stored. So each device has a floor, a time before which parts do not count for it, and starts follow the
 * last part after DELIVERY_SETTLE_MS.
 *
 * One pass serves every device that waits, or begins to wait while it is sent. Times are monotonic milliseconds.
 */

/* Less than the 5 minutes of devices by the time that a start may need. */
#define DELIVERY_KEPT_MS 240000
#define DELIVERY_SETTLE_MS 300
/* A device that becomes Running has subscribed by then. */
#define DELIVERY_SUBSCRIBED_MS 1000
/* A device looks at once, and after 5 s. A device that has not started by then lacks parts. */
#define DELIVERY_REQUEST_MS 7000
/* Of one attempt, that its device causes: by requests, and by coming up again while it waits. */
#define DELIVERY_MAX_PASSES 2
/* The time for which a device looks. */
#define DELIVERY_LOOK_MS 60000

#define DELIVERY_NONE ((size_t)-1)

struct delivery_observed {
    const int64_t
        *sent_ms; /* of each part: begin of the last publish that was acknowledged; 0: never */
    size_t parts;
    const int64_t *floors_ms; /* of the devices that wait; a later one than now_ms does not count */
    size_t floor_count;
    int64_t now_ms;
};

/* Returns the part that was sent longest ago of those that a waiting device lacks; among equals the lowest.
 * DELIVERY_NONE: no device lacks any. */
size_t delivery_next(const struct delivery_observed *observed);
/* Every part was sent after this floor. */
bool delivery_reached(const int64_t *sent_ms, size_t parts, int64_t floor_ms);
/* started_ms: the last start with this module; fresh_ms: it became Running or was restarted. 0: not in this process. */
int64_t delivery_floor(int64_t started_ms, int64_t fresh_ms, int64_t now_ms);
/* Returns the time at which the next part may be sent, after one of len bytes whose publish began then. */
int64_t delivery_rate_ms(int64_t began_ms, size_t len, int64_t bytes_per_s);
/* A pass that began then cannot reach anyone any more: devices forget its beginning. */
bool delivery_is_too_slow(int64_t pass_ms, int64_t now_ms);
