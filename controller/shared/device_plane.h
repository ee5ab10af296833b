/* The state that Proplets and Tasks share: devices, attempts, and the connections to the broker. */
#pragma once

#include "common/runtime/mailbox.h"
#include "controller/bridge/bridge.h"
#include "controller/device/availabilities.h"
#include "controller/device/fleet_brake.h"
#include "controller/module/module.h"
#include "controller/scheduler/placements.h"
#include "controller/shared/refresh_budget.h"

/* A module of its own, before all kinds; it connects to the broker. */
struct device_plane {
    struct fleet *fleet;
    struct fleet_brake *brake;
    struct refresh_budget *budget;
    struct availabilities *availabilities;
    struct refresh_budget *openings; /* for statuses of Proplets that open or close by time */
    struct placements *placements;
    struct attempts *attempts;
    struct mailbox *mailbox;
    struct bridge *bridge; /* NULL: no MQTT */
};

/* For create of the others. */
const struct device_plane *device_plane_of(const struct module_host *host);
