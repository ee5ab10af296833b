/* The page on caches that the test fills, and an API server that is one function: it knows the tokens "good", "good-2" and
 * so on, which may list everything, "lab", which may list in the namespace "lab" alone, and "tasks", which may list
 * Tasks alone. */
#pragma once

#include "common/tests/arena_fixture.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"
#include "controller/device/fleet.h"
#include "controller/page/page.h"

struct page_fixture {
    struct fake_clock clock;
    struct kube_config *config;
    struct watch_loop *loop; /* never started */
    struct informer *informers[PAGE_LISTS];
    struct fleet *fleet;
    struct viewers *viewers;
    struct feeds *feeds;
    const char *object;      /* the answer to a GET of an object, JSON; NULL: 404 */
    const char *events;      /* the items of the list of Events; NULL: none */
    const char *events_of_u; /* those about the object with the uid "u" */
    bool is_away;            /* the API server does not answer */
    bool is_revoked;         /* no token counts any more */
    bool cancels;            /* the requests of viewers are canceled while one is under way */
    unsigned reviews;        /* SelfSubjectAccessReviews that were asked */
};
extern struct page_fixture page_fixture;

void page_set_up(void);
void page_tear_down(void);
/* Puts an object, JSON, into the cache of this list. */
void page_put(const char *list, const char *json);
/* A login that succeeds: a reference. */
struct viewer *page_login(const char *token);
