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
 * Returns what `look` returned; EXIT_TIME_OUT after timeout_ms (0: never); 128 and the number of a signal that asked to
 * end. < 0: an error, ERROR_FORBIDDEN among them. A broken connection is none: the watch goes on when it can.
 */
int follow(struct session *session, const struct object_ref *ref, int64_t timeout_ms,
           follow_fn *look, void *ctx, struct error *err) MUST_CHECK;
