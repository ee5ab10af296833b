/* The parts of federated learning in the controller process. */
#pragma once

#include "controller/process/process.h"

/* Before the controllers: the model stores, and the coordinator if it is wanted. */
int process_make_federated(struct process *process, struct error *err) MUST_CHECK;
/* After the other controllers: those of FederatedJobs and TrainingRounds. */
void process_make_federated_controllers(struct process *process);
/* After everything that uses them has stopped. */
void process_destroy_federated(struct process *process);
/* The coordinator's server, on standbys, too: they answer that they do not lead. */
void process_add_coordinator(struct process *process);
