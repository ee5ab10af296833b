#include "controller/events/transitions.h"

#define EVENT(name, type, text, note) const struct event name = { type, text, note };
#include "common/api/reasons.def"
