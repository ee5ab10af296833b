/* The end of every test program. */
#pragma once

#include <check.h>

/* Runs and frees the suite; what main returns: 0 when all passed. */
int suite_run(Suite *suite);
