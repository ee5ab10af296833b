/* Watches as streams of this process, or as HTTP streams of a user, which end when the user may not have them any
 * more. */
#pragma once

#include "common/base/digest.h"
#include "common/net/http_server.h"
#include "standalone/api/api.h"

struct users_file;

/* A user of the server, as a request was let in. */
struct sender_user {
    struct users_file *users; /* borrowed; NULL: this process itself, which cannot be removed */
    struct user user;
    char token_hash[SHA256_HEX_LEN];
};

/* Takes the watch. A stream looks before each line, and each five seconds, whether the token is still that of the same
 * user with the same role. */
struct http_stream stream_open(struct api_watch *watch, const struct sender_user *sender);
