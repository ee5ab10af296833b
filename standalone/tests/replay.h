/* What standalone/schema and standalone/patch make of a write, for comparison with a recorded answer. */
#pragma once

#include "standalone/tests/resources_fixture.h"

struct replay {
    int code;            /* HTTP */
    const cJSON *object; /* of 200 and 201 */
    const cJSON *causes; /* of 422 and 409 */
    const char *message; /* of the others */
};

/* record: a line of e2e/tools/record_writes.py. In test_arena. */
struct replay replay_write(const cJSON *record);
