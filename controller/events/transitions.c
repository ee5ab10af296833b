#include "controller/events/transitions.h"

#define EVENT(name, type, text, note) const struct event name = { type, text, note };
#include "common/api/reasons.def"

static const struct event WAITING[REASON_COUNT] = {
#define REASON(name, text, kinds, severity, meaning, remedy)                                       \
    [REASON_##name] = { EVENT_##severity, text, meaning ". " remedy },
#include "common/api/reasons.def"
};

static const struct event ENDED[REASON_COUNT] = {
#define REASON(name, text, kinds, severity, meaning, remedy)                                       \
    [REASON_##name] = { EVENT_WARNING, "Failed", text ": " meaning ". " remedy },
#include "common/api/reasons.def"
};

const struct event *event_of_waiting(enum reason reason)
{
    return WAITING[reason].reason ? &WAITING[reason] : NULL;
}

const struct event *event_of_failure(enum reason reason)
{
    return ENDED[reason].reason ? &ENDED[reason] : &TASK_EVENT_FAILED;
}
