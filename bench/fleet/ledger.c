#include "bench/fleet/ledger.h"

#include <stdlib.h>

#include "common/base/alloc.h"

#define FIRST_CAPACITY 1024
#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

struct entry {
    uint64_t hash; /* 0: none */
    uint32_t device;
    uint32_t run; /* how often it was started */
    bool running;
    bool answered;
};

struct ledger {
    struct entry *entries; /* open addressing; cap is a power of two */
    size_t cap, max;
    struct ledger_counts counts;
};

uint64_t ledger_hash(const char *id)
{
    uint64_t hash = FNV_OFFSET;

    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * FNV_PRIME;
    return hash ? hash : 1;
}

struct ledger *ledger_create(size_t max_ids)
{
    struct ledger *ledger = xcalloc(1, sizeof(*ledger));

    ledger->max = max_ids;
    ledger->cap = FIRST_CAPACITY;
    ledger->entries = xcalloc(ledger->cap, sizeof(struct entry));
    return ledger;
}

void ledger_destroy(struct ledger *ledger)
{
    if (!ledger)
        return;

    free(ledger->entries);
    free(ledger);
}

/* Where it is, or where it would go. */
static struct entry *slot(const struct ledger *ledger, uint64_t hash)
{
    size_t at = hash & (ledger->cap - 1);

    while (ledger->entries[at].hash && ledger->entries[at].hash != hash)
        at = (at + 1) & (ledger->cap - 1);
    return &ledger->entries[at];
}

static void grow(struct ledger *ledger)
{
    struct entry *old = ledger->entries;
    size_t cap = ledger->cap;

    ledger->cap = 2 * cap;
    ledger->entries = xcalloc(ledger->cap, sizeof(struct entry));
    for (size_t i = 0; i < cap; i++) {
        if (old[i].hash)
            *slot(ledger, old[i].hash) = old[i];
    }
    free(old);
}

/* NULL: there would be too many. */
static struct entry *entry_of(struct ledger *ledger, const char *id, uint32_t device)
{
    uint64_t hash = ledger_hash(id);
    struct entry *entry = slot(ledger, hash);

    if (entry->hash)
        return entry;
    if (ledger->counts.ids >= ledger->max)
        return NULL;
    if (3 * (ledger->counts.ids + 1) > 2 * ledger->cap) {
        grow(ledger);
        entry = slot(ledger, hash);
    }
    ledger->counts.ids++;
    *entry = (struct entry){ .hash = hash, .device = device };
    return entry;
}

static struct entry *find(const struct ledger *ledger, const char *id)
{
    struct entry *entry = slot(ledger, ledger_hash(id));

    return entry->hash ? entry : NULL;
}

enum ledger_verdict ledger_start(struct ledger *ledger, const char *id, uint32_t device,
                                 uint32_t *ret_run)
{
    struct entry *entry = entry_of(ledger, id, device);

    if (!entry)
        return LEDGER_FULL;

    ledger->counts.starts++;
    if (entry->device != device)
        ledger->counts.elsewhere++;
    if (entry->running) {
        ledger->counts.ignored++;
        return LEDGER_IGNORE;
    }
    if (entry->run && entry->device == device)
        ledger->counts.repeated++;
    entry->device = device;
    entry->running = true;
    ledger->counts.running++;
    *ret_run = ++entry->run;
    return LEDGER_RUN;
}

bool ledger_finish(struct ledger *ledger, const char *id, bool stopped)
{
    struct entry *entry = find(ledger, id);

    if (!entry || !entry->running)
        return false;

    entry->running = false;
    ledger->counts.running--;
    ledger->counts.stopped += stopped;
    return true;
}

void ledger_lose(struct ledger *ledger, const char *id)
{
    ledger->counts.lost += ledger_finish(ledger, id, false);
}

bool ledger_runs(const struct ledger *ledger, const char *id, uint32_t run)
{
    const struct entry *entry = find(ledger, id);

    return entry && entry->running && entry->run == run;
}

void ledger_answer(struct ledger *ledger, const char *id)
{
    struct entry *entry = find(ledger, id);

    ledger->counts.answers++;
    if (!entry || entry->answered)
        return;
    entry->answered = true;
    ledger->counts.answered++;
}

struct ledger_counts ledger_counts(const struct ledger *ledger)
{
    return ledger->counts;
}
