/*
 * This module serves /healthz, /readyz, /metrics and further pages on plain HTTP.
 *
 * The objects behind ctx outlive it. Checks and pages are added before health_start, and run on the
 * thread of the HTTP server. Only health_start fails.
 */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

/* Returns 1 if ready, HEALTH_REMARK if ready with a remark in why, 0 if not ready with the reason
 * in why ("mqtt: connecting to …: refused"). size is that of why, in bytes. Any thread; no I/O,
 * must not block. */
#define HEALTH_REMARK 2
typedef int health_check_fn(void *ctx, char *why, size_t size);
/* Answers GET <path> on the health address. query is as sent, or "". Returns the HTTP status, and
 * the body in the arena. Runs on the thread of the server; must not block. */
typedef int health_page_fn(void *ctx, struct arena *arena, const char *query,
                           const char **ret_body);

/*
 * Answers GET and HEAD only. /healthz is always 200 "ok". /readyz is 200 "ok", or 503 with a line
 * "[-]<name> failed: <why>" for each check that fails. With ?verbose it has a line for each check,
 * as the API server writes them.
 */
struct health;
struct health *health_create(void);
void health_destroy(struct health *health); /* stops it, too */
void health_add_check(struct health *health, const char *name, health_check_fn *check,
                      void *ctx); /* before start */
void health_add_page(struct health *health, const char *path, health_page_fn *page,
                     void *ctx); /* before start */
/* Makes /readyz answer 503 "shutting down" from now on. Any thread. */
void health_set_stopping(struct health *health);
/* Starts the servers. Addresses are ":8080", "127.0.0.1:0" or "[::1]:8081"; "0" or "" is off.
 * Metrics and health may share one address. */
int health_start(struct health *health, const char *health_address, const char *metrics_address,
                 struct error *err) MUST_CHECK;
void health_stop(struct health *health);
/* Return the port of the listener; 0: off. */
unsigned health_port(const struct health *health);
unsigned health_metrics_port(const struct health *health);
