/* How much a test does, by TEST_POWER: "sample" while code is edited, "full" in make test-full, otherwise what make
 * test does. */
#pragma once

#include <stddef.h>

/* At run time; the same for the whole program. */
size_t power_count(size_t sample, size_t usual, size_t full);
