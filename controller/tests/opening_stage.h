/* Proplets that open and close on the stage (stage.h): their specs, time that passes, and what they say of it. */
#pragma once

#include "controller/tests/outside.h"
#include "controller/tests/stage.h"

/* The stage begins at 2026-01-01T00:00:00Z, a Thursday. */
#define PROPLET(client, members)                                                                   \
    "{\"type\":\"external\"" members                                                               \
    ",\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","                  \
    "\"channelId\":\"c\",\"clientId\":\"" client "\"}}"
#define TASK(more)                                                                                 \
    "{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"monitoringProfile\":{\"enabled\":false}" more "}"
#define ON(proplet) ",\"propletSelector\":{\"propletId\":\"" proplet "\"}"

/* The Events of "beta": their reasons in the order in which they are made, each behind a space, and the last note. */
extern struct opening {
    char events[256], note[256];
} opening;

void opening_reset(void);
/* Keeps what a request of the reconcilers says, if it makes an Event. */
void opening_note_event(struct arena *arena, const struct http_request *request);

/* Turns of the reconcilers every ten seconds. */
void opening_pass_minutes(int minutes);
/* Returns the status of a Proplet. */
const cJSON *opening_status(const char *proplet);
/* Returns state, reason and status of the condition, as in "Closed OverrideClosed False". "": it says nothing of it. */
const char *opening_state(const char *proplet);
/* Whether the last Task that began on a device runs there no more. */
bool opening_is_stopped(void);
