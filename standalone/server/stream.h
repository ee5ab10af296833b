/* Watches as HTTP streams, which end when their users may not have them any more. */
#pragma once

#include "common/base/digest.h"
#include "common/net/http_server.h"
#include "standalone/api/user.h"

struct api_watch;
struct streams;
struct users_file;

/* Of one user no more than max_each are open at once. users: borrowed. */
struct streams *streams_create(struct users_file *users, size_t max_each);
void streams_destroy(struct streams *streams); /* none is open; NULL is fine */
/* The users have changed: those whose user is not what it was are ended. Any thread. */
void streams_check(struct streams *streams);

/* Takes the watch. The answer is in the arena, the stream lives until its close. NULL is
 * returned when the user has reached the limit of watches, and the watch is closed. */
const struct http_stream *stream_open(struct streams *streams, struct arena *arena,
                                      struct api_watch *watch,
                                      const char token_hash[static SHA256_HEX_LEN],
                                      const struct user *user);
