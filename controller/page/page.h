/*
 * The page shows the fleet to people: a small HTTP server with static files, logins, lists, details and feeds.
 *
 *   GET  /, /page.css, /page.js, /vendor/…   the client; no login needed
 *   POST /login    {"token": text}           204 and a cookie; 401; 429
 *   POST /logout                             204
 *   GET  /api/me                             {"user", "now": milliseconds since the epoch, "all": {list: bool}}
 *   GET  /api/stream?list=L[&ns=N]           text/event-stream (feed.h); L: a list of rows.h, or "fleet"
 *   GET  /api/object?list=L&ns=N&name=O      {"object","why","timeline","children"}; of a FederatedJob also
 *                                            "participants": those of the round that has not ended;
 *                                            of a Proplet also "load" (trend.h), as this process heard it
 *   GET  /api/events[?ns=N]                  {"events":[…]}: the last PAGE_EVENTS
 *
 * HEAD is answered as GET, without the body.
 *
 * It reads only, and everything with the rights of the viewer. Errors are {"error": text}. Any other Host, or another
 * site, gets 403 (guard.h).
 */
#pragma once

#include "controller/page/feed.h"

#define PAGE_EVENTS 100
#define PAGE_MAX_CHILDREN 1000

struct page_options {
    const char *address;
    const char *const *hosts; /* further names in Host headers */
    size_t host_count;
    const struct clock *clock;
    struct viewers *viewers;
    struct feeds *feeds;
    struct fleet *fleet; /* of the load of devices */
    struct informer *informers[PAGE_LISTS];
};

struct page;
int page_start(const struct page_options *options, struct page **ret, struct error *err) MUST_CHECK;
void page_stop(struct page *page); /* NULL is fine */
unsigned page_port(const struct page *page);
