/* The functions that a fuzz target defines. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Reads one input; what is wrong aborts. measured.c calls it, and holds it to what its memory may be:
 * what it allocates for checks is between heap_pause and heap_resume. */
void fuzz_input(const uint8_t *bytes, size_t len);

/* Bytes that every input may allocate; 1 MiB unless the target defines it. */
size_t fuzz_base(void);

/* libFuzzer's entry point, in measured.c. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* A crash, which the fuzzer reports, unless the condition holds. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)
