/*
 * This module is what the censuses of several kinds share (module_census): the class of an object
 * by its phase, and the gauge propeller_jobs.
 *
 * `names` are the phases of a kind, as common/api lists them; NULL ends the list. Any thread; no
 * function fails.
 */
#pragma once

#include "common/json/json.h"

/* Returns the index of status.phase in the names; 0, the first phase, if there is none. */
size_t census_phase(const cJSON *object, const char *const *names);
/* Sets propeller_jobs of a kind; counts has one for each name. */
void census_report_jobs(const char *kind, const char *const *names, const size_t *counts);
