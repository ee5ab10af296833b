/* N simulated devices without sockets: takes commands and times, and returns messages. */
#pragma once

#include "bench/fleet/ledger.h"
#include "common/base/error.h"

/*
 * Devices are PREFIX-1 ... PREFIX-N; each sends a heartbeat once in an interval, spread evenly. It
 * handles a start as the Linux device does: it ignores an id that runs, runs a finished one again,
 * sends a sample after 100 ms and then every 10 s, and then the result. A device needs no memory of
 * its own. A start needs a ledger entry, and while it runs an agenda entry.
 *
 * Faults depend on the id, the run and the seed only, so they can be repeated.
 */
struct swarm_settings {
    int64_t devices;
    const char *prefix;
    int64_t alive_ms;
    int64_t metrics_ms; /* 0: none */
    int64_t result_ms;  /* from start to result */
    int64_t spread_ms;  /* maximum random addition */
    int64_t result_bytes;
    bool samples;
    double lost_percent;      /* of starts: overlooked */
    double duplicate_percent; /* of results: sent again after REPEAT_MS */
    double late_percent;      /* of results: late_ms later */
    int64_t late_ms;
    int64_t mute_devices; /* number of devices that fall silent */
    int64_t mute_after_ms;
    int64_t seed;
    int64_t max_ids;
};
#define SWARM_REPEAT_MS 50
#define SWARM_SAMPLE_MS 100
#define SWARM_SAMPLES_MS 10000

/* A message of a device. suffix follows control/proplet/, such as "alive". */
struct swarm_message {
    uint32_t device; /* 1 and up */
    const char *suffix;
    const char *payload;
    size_t len;
    bool important; /* to be sent with an acknowledgement */
    const char *id; /* of a result */
};
/* Must not call the swarm. */
typedef void swarm_send_fn(void *ctx, const struct swarm_message *message);
/* For a journal: "start" or "result". */
typedef void swarm_note_fn(void *ctx, uint32_t device, const char *event, const char *id);

/* now_ms: wall clock, which the samples carry. */
struct swarm;
struct swarm *swarm_create(const struct swarm_settings *settings, int64_t now_ms,
                           swarm_send_fn *send, swarm_note_fn *note, void *ctx);
void swarm_destroy(struct swarm *swarm);

/* A start or a stop of some channel. ERROR_TOO_LARGE: more ids than max_ids; anything else that is
 * wrong with it is counted, as devices say nothing about it. */
int swarm_start(struct swarm *swarm, int64_t now_ms, const char *payload, size_t len,
                struct error *err) MUST_CHECK;
void swarm_stop(struct swarm *swarm, const char *payload, size_t len);

/* Sends the messages that are due, at most `most`, so that sockets are served in between. */
void swarm_advance(struct swarm *swarm, int64_t now_ms, size_t most);
int64_t swarm_next_ms(const struct swarm *swarm);

struct swarm_counts {
    struct ledger_counts ledger;
    uint64_t heartbeats;
    uint64_t malformed; /* starts and stops that could not be read */
    uint64_t unknown;   /* starts for other devices */
};
struct swarm_counts swarm_counts(const struct swarm *swarm);
/* 0: not one of the fleet. */
uint32_t swarm_device_of(const struct swarm *swarm, const char *identity);
