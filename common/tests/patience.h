/* Tests in which a limit of time of the code under test passes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Asserts all that no delay can change, and returns whether the rest was so, too: false may come of a machine
 * that did something else for ms. Called again, it begins anew.
 */
typedef bool timed_fn(uint32_t ms);

/* Calls fn with ms, and with more and more of it while that returns false; in the end it must be true. */
void ck_timed(timed_fn *fn, uint32_t ms);

/* A host whose name no resolver has to be asked for: a part of it is longer than any may be. */
#define NO_HOST                                                                                    \
    "a-part-of-a-name-has-sixty-three-characters-at-the-most-and-this-one-has-more.invalid"
