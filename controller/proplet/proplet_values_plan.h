/* The values of a Proplet that its devices tell and that are written when there is time for it. Pure,
 * parts of proplet_plan. */
#pragma once

#include "controller/proplet/proplet_plan.h"

/* Its device. Where each pod is one, the one that speaks for all, and the health of the worst. */
struct fleet_device proplet_summary(const struct proplet_observed *observed);

/* Sets them, and asks for a write if any of them differs from what is stored. */
void proplet_plan_values(struct arena *arena, const struct proplet_observed *observed,
                         struct proplet_plan *plan);
