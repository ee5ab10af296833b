/* Events of the simulated devices, in a heap by their time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum due_kind { DUE_SAMPLE, DUE_RESULT, DUE_REPEAT };

struct due {
    int64_t at_ms;
    uint64_t number; /* set by agenda_add; orders events of the same time */
    enum due_kind kind;
    uint32_t device;
    uint32_t run;
    char *id; /* its own */
};

struct agenda;
struct agenda *agenda_create(void);
void agenda_destroy(struct agenda *agenda);

void agenda_add(struct agenda *agenda, struct due due); /* takes the id */
/* Takes the first event that is due at now_ms; the caller frees its id. false: none is due. */
bool agenda_take(struct agenda *agenda, int64_t now_ms, struct due *ret);
int64_t agenda_next_ms(const struct agenda *agenda); /* INT64_MAX: nothing waits */
size_t agenda_len(const struct agenda *agenda);
