#include "common/tests/power.h"

#include <stdlib.h>

#include "common/base/str.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

size_t power_count(size_t sample, size_t usual, size_t full)
{
    const char *power = getenv("TEST_POWER");

    if (str_equal(power, "sample"))
        return sample;
    if (str_equal(power, "full"))
        return full;
    return IS_SANITIZED ? sample : usual;
}
