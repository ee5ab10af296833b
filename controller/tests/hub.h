/* Where messages meet objects: the real store, mailbox, fleet and queues, without a broker. */
#pragma once

#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "controller/bridge/bridge_messages.h"

#define HUB_CHANNEL "dom-1/chan-1"
#define HUB_TOPIC(suffix) "m/dom-1/c/chan-1/control/" suffix
#define HUB_KEY HUB_CHANNEL "/device-1"

/* Begins with one running Task "one" in its second attempt, one Proplet "alpha" of device-1; room
 * for two messages. */
struct hub {
    struct arena *arena;
    struct fake_clock clock;
    struct bridge_sink sink;
    const char *marker; /* the last that came */
};
extern struct hub hub;

void hub_set_up(void);
void hub_tear_down(void);
void hub_put_task(const char *name, const char *status); /* its uid: "uid-<name>" */
void hub_put_proplet(const char *name, const char *client);
/* Its two pods are a device each: "<client>-0" and "<client>-1". */
void hub_put_pool(const char *name, const char *client);
/* An Enrollment of the domain "dom-1"; where: members of its spec. */
void hub_listen(const char *name, const char *where);
void hub_receive(const char *topic, const char *payload);
/* The names that were woken, in order, with blanks between them. */
const char *hub_woken(struct workqueue *queue);
void hub_expect_nothing(void);
struct fleet_device hub_device(const char *key);
