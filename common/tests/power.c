#include "common/tests/power.h"

#include <stdlib.h>

#include "common/base/str.h"

size_t power_count(size_t sample, size_t usual, size_t full)
{
    const char *power = getenv("TEST_POWER");

    if (str_equal(power, "sample"))
        return sample;
    return str_equal(power, "full") ? full : usual;
}
