#include "common/tests/patience.h"

#include <check.h>

/* No machine that works at all is so slow. */
#define ENOUGH_MS 60000
#define GROWTH 4

void ck_timed(timed_fn *fn, uint32_t ms)
{
    for (; !fn(ms); ms *= GROWTH)
        ck_assert_msg(ms < ENOUGH_MS, "it is not so with %u ms either", ms);
}
