/* The program itself, as a process of the test: build/<flavour>/bin/propeller-webhook. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* In an unchecked fixture, so that one process lives through all tests. */
struct webhook_process;
/* timeout: --request-timeout. Serves when this returns. */
struct webhook_process *webhook_process_start(const char *timeout);
/* Asks it to end. False, with what it wrote on stderr: it had ended before, or not with 0 (under a
 * sanitizer: not without a finding). Frees. */
bool webhook_process_stop(struct webhook_process *process);

unsigned webhook_process_port(const struct webhook_process *process);
const char *webhook_process_ca(const struct webhook_process *process);  /* PEM file */
size_t webhook_process_peak_kib(const struct webhook_process *process); /* VmHWM */
size_t webhook_process_descriptors(const struct webhook_process *process);
