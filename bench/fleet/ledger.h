/* Record of the starts and results of all devices, which is the oracle of the fleet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Holds one entry for each id while the program runs, so that it recognizes a repeated start, also on
 * another device. An id is a 64-bit FNV-1a hash: two of a million ids collide with a probability of
 * 3e-8. An entry has 24 bytes; two thirds of the entries are in use.
 */
struct ledger;

struct ledger_counts {
    uint64_t starts;    /* that were for a device of the fleet */
    uint64_t ids;       /* different ones */
    uint64_t repeated;  /* a finished or lost id was asked for again on the same device */
    uint64_t ignored;   /* the id ran already */
    uint64_t elsewhere; /* the id was asked for on another device before: never right */
    uint64_t lost;      /* starts that the device was made to overlook */
    uint64_t answered;  /* ids with at least one answer */
    uint64_t answers;   /* results published, repeated ones included */
    uint64_t running;
    uint64_t stopped;
};

enum ledger_verdict {
    LEDGER_RUN,    /* the device runs it now */
    LEDGER_IGNORE, /* it runs already */
    LEDGER_FULL,   /* more ids than were allowed for; nothing was noted */
};

struct ledger *ledger_create(size_t max_ids);
void ledger_destroy(struct ledger *ledger);
uint64_t ledger_hash(const char *id);

/* run: which run of the id this is, 1 and up; for ledger_runs. */
enum ledger_verdict ledger_start(struct ledger *ledger, const char *id, uint32_t device,
                                 uint32_t *ret_run);
/* That start is overlooked: as if it had never come, but counted. */
void ledger_lose(struct ledger *ledger, const char *id);
/* Whether this run of the id still goes on. */
bool ledger_runs(const struct ledger *ledger, const char *id, uint32_t run);
/* It ran to its end, or was stopped; false: it did not run. */
bool ledger_finish(struct ledger *ledger, const char *id, bool stopped);
void ledger_answer(struct ledger *ledger, const char *id); /* a result leaves */
struct ledger_counts ledger_counts(const struct ledger *ledger);
