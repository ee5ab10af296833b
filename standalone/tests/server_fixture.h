/* The API behind its HTTP server, on a port of its own, with a file of users that the test writes. */
#pragma once

#include "common/tests/http_talk.h"
#include "standalone/server/server.h"
#include "standalone/tests/api_fixture.h"

extern struct server *api_server;

/* Their tokens are their names. */
#define ALL_USERS "admin:admin editor:edit viewer:view"

void write_users(const char *text); /* "name:role name:role", renamed over the old file */
const char *users_path(void);
void server_setup(void); /* ALL_USERS; nothing is served yet */
void server_serve(struct server_options options);
void server_teardown(void);

int server_dial(void);
/* Says a request of these lines (each with its end), with the user's token ("": none) and an empty line;
 * body may be "". */
void server_say(int fd, const char *user, const char *lines, const char *body);
/* The same on a connection of its own: the whole answer. */
const char *server_ask(const char *user, const char *method, const char *path, const char *lines,
                       const char *body);
int status_of(const char *answer);
/* "message" of a Status, "" without. */
const char *message_of(const char *answer);
