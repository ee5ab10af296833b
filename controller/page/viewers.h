/*
 * This module knows the viewers of the page, and what each of them may see.
 *
 * A viewer gives a bearer token, and the API server says with this token who that is and what they may
 * list. So the operator needs no right of its own for the page. A login is a random cookie of 256 bits, kept as its
 * SHA-256. Tokens are in memory only, and no message has one.
 *
 * A login ends after VIEWER_LIFE_MS, after VIEWER_IDLE_MS without a request or a stream, at its logout, and
 * when the API server answers 401. Answers about rights count for VIEWER_RIGHTS_MS.
 *
 * Any thread. viewers_login and viewer_may block for requests to the API server. Times are monotonic milliseconds.
 */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"

#define VIEWERS_MAX 64       /* the one that was idle longest makes room */
#define VIEWERS_OF_A_USER 48 /* likewise among the logins of this user */
#define VIEWER_LIFE_MS INT64_C(43200000)
#define VIEWER_IDLE_MS INT64_C(1800000)
#define VIEWER_RIGHTS_MS INT64_C(60000)
#define VIEWER_RETRY_MS                                                                            \
    INT64_C(30000) /* after a question without an answer: the last answers count meanwhile */
#define VIEWER_MAX_RIGHTS 64     /* pairs of kind and namespace that are remembered for a viewer */
#define VIEWERS_FAILED_LOGINS 10 /* in VIEWERS_FAILED_MS; the next one is not tried */
#define VIEWERS_FAILED_MS INT64_C(60000)
#define VIEWER_MAX_TOKEN 16384
#define VIEWER_COOKIE_LEN 65

struct viewers;
struct viewer;

/* config and clock are borrowed. */
struct viewers *viewers_create(struct kube_config *config, const struct clock *clock);
void viewers_destroy(struct viewers *viewers); /* no reference is left; NULL is fine */
/* Requests of viewers under way end, those of logins too, and later ones fail. */
void viewers_cancel(struct viewers *viewers);

/*
 * ERROR_FORBIDDEN: the API server does not accept this token. ERROR_UNAVAILABLE with retry_after_ms: too many logins have failed. Other
 * errors are those of the request.
 */
int viewers_login(struct viewers *viewers, const char *token, char ret[static VIEWER_COOKIE_LEN],
                  struct error *err) MUST_CHECK;
/* Returns a reference to the viewer with this cookie; NULL: none. */
struct viewer *viewers_find(struct viewers *viewers, const char *cookie);
void viewers_logout(struct viewers *viewers, struct viewer *viewer);

struct viewer *viewer_ref(struct viewer *viewer);
void viewer_unref(struct viewer *viewer); /* NULL is fine */
const char *viewer_name(const struct viewer *viewer);
/* With the token of the viewer. */
struct kube_client *viewer_client(struct viewer *viewer);
/* Whether the login has ended. A stream asks it, which also counts as a sign of life. */
bool viewer_has_ended(struct viewer *viewer);
/* Whether the viewer may list and watch the kind in the namespace; ns NULL: in all. */
int viewer_may(struct viewer *viewer, const struct kube_kind *kind, const char *ns, bool *ret,
               struct error *err) MUST_CHECK;
