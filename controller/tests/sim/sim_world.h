/* The script of a simulation: users, devices, networks and machines act as the seed says, then all
 * faults end, and the guarantees are checked. */
#pragma once

#include "controller/tests/sim/sim.h"

/* begin of sim_run. Ends with sim_fail if a guarantee does not hold. */
void sim_world(void);
/* Path of a kubeconfig; must be set before sim_run. No server of this name is ever asked. */
extern const char *sim_kubeconfig;
