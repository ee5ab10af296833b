/* Connections of the fleet to the broker: one receives, the others publish for the devices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/*
 * The identity of a device is in its payloads, so one connection can publish for many. A message of
 * the controller is the same for every device of a channel, so one connection receives for all.
 * With last_wills device i has connection i for itself, with its identity as client id and a will
 * on the alive topic, as the microcontroller has; it subscribes to nothing.
 *
 * Not thread-safe. Connects again LINKS_RETRY_MS after the end of a connection, at most
 * LINKS_AT_A_TIME at once.
 */
struct links_settings {
    const char *host;
    int64_t port;
    const char *user;     /* NULL: none */
    const char *password; /* NULL: none */
    const char *domain, *channel, *prefix;
    int64_t channels; /* 1: `channel`; more: `channel-1` ... */
    int64_t count;    /* connections that speak */
    bool last_wills;
    int64_t
        addresses; /* more than one: connections leave from 127.0.0.1 ... 127.0.0.N in turn, each
                          of which has 28,000 ports */
};
#define LINKS_RETRY_MS 1000
#define LINKS_AT_A_TIME 200

struct links;
/* start: of control/manager/start, otherwise stop. Must not call links_step. */
typedef void links_command_fn(void *ctx, bool start, const char *payload, size_t len);

/* ERROR_INVALID, ERROR_UNAVAILABLE: no broker answers, or too few files may be open. */
int links_create(const struct links_settings *settings, links_command_fn *command, void *ctx,
                 struct links **ret, struct error *err) MUST_CHECK;
void links_destroy(struct links *links);

/* Connects, reads and writes for at most timeout_ms. */
int links_step(struct links *links, int64_t now_ms, int timeout_ms, struct error *err) MUST_CHECK;

/* As device; suffix behind control/proplet/. false: its connection is away, and nothing was sent,
 * or, with qos 1, it will be. */
bool links_publish(struct links *links, uint32_t device, const char *suffix, const char *payload,
                   size_t len, int qos);
/* Breaks the connection without DISCONNECT, so that the broker sends the will. Requires last_wills. */
void links_break(struct links *links, uint32_t device);

struct links_counts {
    uint64_t connected; /* now, the listener included */
    uint64_t wanted;
    bool listening; /* the subscriptions are granted */
    uint64_t reconnects;
    uint64_t unsent;       /* messages whose connection was away */
    uint64_t acknowledged; /* by the broker, of those with qos 1 */
};
struct links_counts links_counts(const struct links *links);
