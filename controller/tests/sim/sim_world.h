/* What happens in a simulation: users, devices, networks and machines that do what the seed says, then
 * a time without faults, and what must hold at its end. */
#pragma once

#include "controller/tests/sim/sim.h"

/* begin of sim_run. Ends with sim_fail if a guarantee does not hold. */
void sim_world(void);
/* Before sim_run: a kubeconfig that names a server that nobody asks. */
extern const char *sim_kubeconfig;
