/*
 * The reconciler of Enrollments: it lists devices without a Proplet, and with approval Automatic creates their Proplets.
 *
 * The module has no flag. Without an Enrollment it has no subscription and no work, and its cache costs one watch.
 */
#pragma once

#include "controller/bridge/bridge.h"
#include "controller/module/module.h"
#include "controller/shared/options.h"
#include "controller/shared/refresh_budget.h"

/* Proplets by the Enrollment that made them: "<ns>/<value of the label>". */
#define INDEX_ENROLLED "enrolled"
void indexes_add_enrolled(struct store *store);

struct enrollment_deps {
    const struct controller_settings *settings;
    struct timeline *timeline;
    struct informer *enrollments, *proplets;
    struct fleet *fleet;
    struct bridge *bridge; /* NULL: no MQTT */
    struct refresh_budget *budget;
    struct enrollment_notes *notes;
};

/* The memory of this process for each Enrollment. Any thread; one leaf mutex. */
struct enrollment_notes *enrollment_notes_create(void);
void enrollment_notes_destroy(struct enrollment_notes *notes);

/* self: struct enrollment_deps. */
reconcile_fn enrollment_reconcile;
map_fn enrollment_map_enrollment; /* itself, and those of the same channel */
map_fn enrollment_map_proplet;    /* the Enrollments that list its device or made it */
