#include "bench/fleet/agenda.h"

#include <stdlib.h>

#include "common/base/alloc.h"

#define FIRST_CAPACITY 64

struct agenda {
    struct due *items;
    size_t len, cap;
    uint64_t added;
};

struct agenda *agenda_create(void)
{
    return xcalloc(1, sizeof(struct agenda));
}

void agenda_destroy(struct agenda *agenda)
{
    if (!agenda)
        return;

    for (size_t i = 0; i < agenda->len; i++)
        free(agenda->items[i].id);
    free(agenda->items);
    free(agenda);
}

static bool is_before(const struct due *a, const struct due *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

void agenda_add(struct agenda *agenda, struct due due)
{
    if (agenda->len == agenda->cap) {
        agenda->cap = agenda->cap ? 2 * agenda->cap : FIRST_CAPACITY;
        agenda->items = xrealloc(agenda->items, agenda->cap * sizeof(struct due));
    }
    due.number = agenda->added++;

    size_t at = agenda->len++;
    for (; at > 0 && is_before(&due, &agenda->items[(at - 1) / 2]); at = (at - 1) / 2)
        agenda->items[at] = agenda->items[(at - 1) / 2];
    agenda->items[at] = due;
}

/* The last one goes down from the top. */
static void close_gap(struct agenda *agenda)
{
    const struct due last = agenda->items[--agenda->len];
    size_t at = 0;

    for (size_t child = 1; child < agenda->len; child = 2 * at + 1) {
        if (child + 1 < agenda->len && is_before(&agenda->items[child + 1], &agenda->items[child]))
            child++;
        if (is_before(&last, &agenda->items[child]))
            break;
        agenda->items[at] = agenda->items[child];
        at = child;
    }
    agenda->items[at] = last;
}

bool agenda_take(struct agenda *agenda, int64_t now_ms, struct due *ret)
{
    if (!agenda->len || agenda->items[0].at_ms > now_ms)
        return false;

    *ret = agenda->items[0];
    close_gap(agenda);
    return true;
}

int64_t agenda_next_ms(const struct agenda *agenda)
{
    return agenda->len ? agenda->items[0].at_ms : INT64_MAX;
}

size_t agenda_len(const struct agenda *agenda)
{
    return agenda->len;
}
