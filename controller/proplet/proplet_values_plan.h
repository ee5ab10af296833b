/* The values of a Proplet that its devices tell and that are written when there is time for it. Pure,
 * parts of proplet_plan. */
#pragma once

#include "controller/proplet/proplet_plan.h"

/* Its device. Where each pod is one, the one that speaks for all, and the health of the worst. */
struct fleet_device proplet_summary(const struct proplet_observed *observed);

/* true if any of them differs from what is stored. */
bool proplet_plan_values(struct arena *arena, const struct proplet_observed *observed,
                         struct proplet_plan *plan);
