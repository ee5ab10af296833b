/* The query of a request that hands over a checkpoint. */
#include <ctype.h>

#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "controller/checkpoint/checkpoint_query.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = arena_strndup(arena, (const char *)bytes, len);
    struct checkpoint_query query;
    struct error err = { 0 };
    int r = checkpoint_query_parse(arena, text, &query, &err);

    if (r < 0) {
        REQUIRE(r == -ERROR_INVALID && err.message[0]);
        return;
    }
    REQUIRE(query.step >= 0 && query.step <= CHECKPOINT_MAX_STEP);
    REQUIRE(!query.samples.set || query.samples.value >= 0);
    REQUIRE(!query.sha256 || strlen(query.sha256) == 64);
    REQUIRE(!query.uri || (query.sha256 && strlen(query.uri) <= CHECKPOINT_MAX_URI));
    for (const char *c = query.uri ? query.uri : ""; *c; c++)
        REQUIRE(!iscntrl((unsigned char)*c));
}
