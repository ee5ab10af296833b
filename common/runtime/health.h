/* /healthz, /readyz, /metrics on plain HTTP. */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

/* ready: 1 yes, HEALTH_REMARK yes with a remark in why, 0 no with a reason in why ("mqtt: connecting to …: refused").
 * Any thread, no I/O, no waiting. */
#define HEALTH_REMARK 2
typedef int health_check_fn(void *ctx, char *why, size_t size);
/* Body of GET <path> on the health address; query as sent, "" without. Returns the status; the body
 * is in the arena. MHD thread. */
typedef int health_page_fn(void *ctx, struct arena *arena, const char *query,
                           const char **ret_body);

/*
 * GET and HEAD only. /healthz is always 200 "ok". /readyz is 200 "ok", or 503 and a line "[-]<name>
 * failed: <why>" for each check that says no; with ?verbose a line for each check, as the API
 * server writes them.
 */
struct health;
struct health *health_create(void);
void health_destroy(struct health *health); /* stops */
void health_add_check(struct health *health, const char *name, health_check_fn *check,
                      void *ctx); /* before start */
void health_add_page(struct health *health, const char *path, health_page_fn *page,
                     void *ctx); /* before start */
/* Any thread. Readyz says 503 "shutting down" from now on. */
void health_set_stopping(struct health *health);
/* Addresses as ":8080", "127.0.0.1:0", "[::1]:8081"; "0" or "" is off. Metrics and health may share
 * one address. */
int health_start(struct health *health, const char *health_address, const char *metrics_address,
                 struct error *err) MUST_CHECK;
void health_stop(struct health *health);
/* Where they listen; 0: they do not. */
unsigned health_port(const struct health *health);
unsigned health_metrics_port(const struct health *health);
