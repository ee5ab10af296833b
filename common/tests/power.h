/* How much a test does, by TEST_POWER: "sample" while code is edited, "full" in make test-full, otherwise what make
 * test does: there a sanitizer, which looks for memory and races and takes several times as long, has a sample too. */
#pragma once

#include <stddef.h>

/* At run time; the same for the whole program. */
size_t power_count(size_t sample, size_t usual, size_t full);
