#include "common/runtime/passed_over.h"

bool passed_over(struct passed_over *state, int64_t now_ms, int64_t others_ms)
{
    if (!state->since_ms)
        *state = (struct passed_over){ .since_ms = now_ms, .others_ms = others_ms };
    state->times += others_ms != state->others_ms;
    state->others_ms = others_ms;
    return now_ms - state->since_ms >= PASSED_OVER_MS && state->times >= PASSED_OVER_TIMES;
}
