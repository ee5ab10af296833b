/* Following one object until something is true of it. Main thread only. */
#pragma once

#include "plugin/cli/objects.h"

/*
 * Sees the object as it is now and after each change; NULL: it does not exist, or not any more. Changes that follow each
 * other quickly may be seen as one. Returns FOLLOW_ON, or the exit status that ends it.
 */
#define FOLLOW_ON 1000 /* no exit status, no error */
typedef int follow_fn(void *ctx, const cJSON *object);

/*
 * Begins with a request, whose error is its own. Returns what `look` returned, or the exit status of session_ended: call
 * session_set_limit before, where there is a limit. A connection that breaks later is no error, and one line says so: the
 * watch goes on when it can. ERROR_FORBIDDEN: the API server refuses the watch for good.
 */
int follow(struct session *session, const struct object_ref *ref, follow_fn *look, void *ctx,
           struct error *err) MUST_CHECK;
