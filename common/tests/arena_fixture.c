#include "common/tests/arena_fixture.h"

#include "common/json/json.h"

struct arena *arena;

void arena_set_up(void)
{
    json_init();
    arena = arena_create();
}

void arena_tear_down(void)
{
    arena_destroy(arena);
}
