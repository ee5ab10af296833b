/* A tiny server, a kubeconfig that leads to it, and a watch loop: what tests with real bytes need.
 */
#pragma once

#include "common/kube/watch.h"
#include "common/tests/tiny_server.h"

extern struct tiny_server *server; /* a test may stop it, and start another or set NULL */
extern struct watch_loop *loop;

/* For TEST_GROUP. A test that adds a watch destroys it after watch_loop_stop. */
void loop_set_up(void);
void loop_tear_down(void);
void loop_start(void);
void loop_write_token(const char *token); /* instead of "first-token" */
