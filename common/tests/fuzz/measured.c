/* libFuzzer's entry point of every target: no input of n bytes may allocate more than 64 n + 1 MiB. */
#include <stdbool.h>

#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"

#define BYTES_FOR_ONE ((size_t)64)
#define BYTES_FOR_NONE ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static bool warm;

    if (!warm)
        fuzz_input(bytes, len); /* so that tables that are made once are not counted */
    warm = true;
    heap_watch();
    fuzz_input(bytes, len);

    size_t used = heap_peak(), allowed = BYTES_FOR_ONE * len + BYTES_FOR_NONE;
    if (used > allowed) {
        fprintf(stderr, "%zu bytes of input allocated %zu bytes, %zu are allowed\n", len, used,
                allowed);
        abort();
    }
    return 0;
}
