/*
 * A feed sends one list of the page to a browser as server-sent events (WHATWG HTML, 9.2): a snapshot,
 * then the rows that change.
 *
 *   snapshot   {"rows":[…]}               replaces everything that the browser has
 *   change     {"rows":[…],"gone":[…]}    what changed in FEED_GATHER_MS
 *   beat       {"ns/name": seconds,…}     Proplets: the last heartbeat as the leader hears it, since the epoch
 *   counts     {"kinds": {kind: {phase: number}},…}   the list "fleet": numbers of the kinds that the viewer may list
 *   end        {"why": text, "login": bool}   the login (true) or the right is gone; the stream ends
 *   ping       {"now": milliseconds}      every FEED_PING_MS: the time of the server, since the epoch
 *
 * A feed keeps the names that changed and no rows. A browser that reads slowly makes it wait; when more than
 * FEED_MAX_DIRTY names wait, it gets a snapshot. Without a feed a change of an object costs one atomic read.
 *
 * feeds_changed is an informer_fn for one list; a feed is used by the thread of its connection.
 */
#pragma once

#include "common/net/http_server.h"
#include "common/runtime/informer.h"
#include "controller/page/rows.h"
#include "controller/page/viewers.h"

#define FEEDS_MAX 64
#define FEEDS_OF_A_VIEWER 4
#define FEEDS_OF_A_USER                                                                            \
    48 /* of all logins of one user, which may be a ServiceAccount that a team shares */
#define FEED_GATHER_MS 500
#define FEED_COUNTS_MS 2000
#define FEED_BEAT_MS 5000
#define FEED_PING_MS 15000
#define FEED_MAX_DIRTY 4096
#define FEED_FLEET PAGE_LISTS /* the number of the list "fleet" */

struct fleet;

struct feeds_options {
    struct informer *informers[PAGE_LISTS];
    struct fleet *fleet; /* of live heartbeats */
    /* Sets the members of the event `counts`; ns NULL: of all namespaces. */
    void (*count)(void *ctx, struct arena *arena, const char *ns, cJSON *ret);
    void *ctx;
    const struct clock *clock;
};

struct feeds;
/* Subscribes to the informers, so before they start. */
struct feeds *feeds_create(const struct feeds_options *options);
void feeds_destroy(struct feeds *feeds);

/* Opens a feed; ns NULL: all namespaces. NULL: the page, or the viewer, has as many as it may have. */
const struct http_stream *feed_open(struct feeds *feeds, struct arena *arena, struct viewer *viewer,
                                    size_t list, const char *ns);
