/* The Proplets that run and those that do not, counted as they change, and whether the brake holds:
 * fleet_brake_plan.h says when. */
#pragma once

#include "common/kube/object.h"
#include "controller/device/fleet_brake_plan.h"

/*
 * The fleet are all Proplets that this controller serves, of all namespaces: they share its
 * connection to the broker. It is known from their statuses, so the next process knows the same.
 * Any thread; one leaf mutex. offline_since_us and now_us are of timeline_steady_us; now_ms is
 * monotonic.
 */
struct fleet_brake;
struct fleet_brake *fleet_brake_create(void);
void fleet_brake_destroy(struct fleet_brake *brake);

enum brake_member {
    BRAKE_NO_MEMBER, /* gone, going, or never heard */
    BRAKE_RUNNING,
    BRAKE_OFFLINE,
};
/* true: it held before this and does no more, so that every Task that waited for it goes on. */
bool fleet_brake_note(struct fleet_brake *brake, const struct kube_name *proplet,
                      enum brake_member member, int64_t offline_since_us, int64_t now_us,
                      int64_t now_ms);

struct brake_state {
    struct brake_plan plan;
    int64_t released_ms; /* the time of its last end in this process; 0: never */
};
struct brake_state fleet_brake_state(struct fleet_brake *brake, int64_t now_us, int64_t now_ms);

/* true: it began, or ended, since this was asked last, and the caller is the one to say so. */
bool fleet_brake_news(struct fleet_brake *brake, int64_t now_us, int64_t now_ms,
                      struct brake_plan *ret);
