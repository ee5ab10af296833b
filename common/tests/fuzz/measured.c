/* libFuzzer's entry point of every target: no input of n bytes may allocate more than 64 n bytes and the target's base. */
#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"

#define BYTES_FOR_ONE ((size_t)64)

__attribute__((weak)) size_t fuzz_base(void)
{
    return (size_t)1 << 20;
}

static size_t peak_of(const uint8_t *bytes, size_t len)
{
    heap_watch();
    fuzz_input(bytes, len);
    return heap_peak();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    size_t allowed = BYTES_FOR_ONE * len + fuzz_base();
    size_t used = peak_of(bytes, len);

    /* Again, without the tables that are made once, for the first input that needs them. */
    if (used > allowed)
        used = peak_of(bytes, len);
    if (used > allowed) {
        fprintf(stderr, "%zu bytes of input allocated %zu bytes, %zu are allowed\n", len, used,
                allowed);
        abort();
    }
    return 0;
}
