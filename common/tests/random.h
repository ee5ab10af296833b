/* Numbers that look random and are the same in each run: xorshift64 (Marsaglia, 2003). */
#pragma once

#include <stdint.h>

/* 0 … below - 1. *state must not be 0. */
static inline uint64_t random_below(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 33) % below;
}
