/* Everything outside the process: a broker that keeps what is not acknowledged, devices that behave
 * as the real ones do, and failures at a step of one's choice. */
#pragma once

#include "common/json/json.h"
#include "common/kube/transport.h"
#include "controller/bridge/bridge.h"

enum fault {
    FAULT_REFUSED,
    FAULT_LOST_REPLY,
    FAULT_CONFLICT,
    FAULT_SERVER_ERROR,
    FAULT_CRASH_BEFORE, /* the process ends, and the next one takes over */
    FAULT_CRASH_AFTER,
    FAULTS
};
extern const char *const FAULT_NAMES[FAULTS];

/* An id on a device. */
struct run {
    char id[64];
    const char *client;
    bool running;
    int executions;
    int instances; /* of a daemon: its id is forgotten at once, and a repeated start runs another */
    bool stopped;
};

#define OUTSIDE_RUNS 512
#define OUTSIDE_MESSAGES 1024
struct outside {
    unsigned steps;   /* requests and publishes so far */
    unsigned fail_at; /* the step that fails; 0: none */
    enum fault fault;

    struct run runs[OUTSIDE_RUNS];
    size_t run_count;
    unsigned answer_at; /* the step during which every device has its result; 0: none */
    bool answers;       /* devices have their result at once */
    /* "\"results\":...,\"error\":null" of a run; NULL: 42. */
    const char *(*answer_of)(const struct run *run);
    bool deaf;          /* devices neither start nor stop anything */
    const char *absent; /* the device with this identity is not connected, and works on */
    bool away;          /* the broker delivers nothing and takes nothing */
    bool slow;          /* it takes what is published, and delivers nothing */
    bool unsubscribed;  /* it has not granted the subscriptions to results yet */
    bool forbidden;     /* nor will it */
    bool died;          /* the process that was connected is no more */
    void (*meanwhile)(
        void); /* called once, after one died and before the next begins; NULL: none */
    void (*at_publish)(const char *suffix); /* called before each publish; NULL: none */
    int turns;                              /* of the one that is */

    struct {
        const char *suffix;
        const char *payload;
    } messages[OUTSIDE_MESSAGES]; /* results and creates that the broker holds */
    size_t acknowledged, delivered, message_count;
    bool
        one_by_one; /* the broker's window: none is delivered while one before it is not acknowledged */
    struct outside_copy {
        const char *name, *uid, *kind, *source, *body; /* name NULL: removed */
    } copies[OUTSIDE_MESSAGES];                        /* retained: see quarantine.h */
    size_t copy_count;
    int copies_due; /* a new process has them after so many deliveries of what was queued; 0: it has */
    bool marker_sent;       /* it comes back behind all of them */
    unsigned lose_markers;  /* so many do not */
    int64_t marker_lost_ms; /* the last one was sent then and is lost; 0: it is not */
    bool marker_overdue;    /* see bridge_marker_overdue */
    bool refused;           /* the broker was away when something was published */

    const char *published; /* the last payload, and how it was sent */
    int published_qos;
    unsigned starts;
};
extern struct outside outside;

void outside_reset(void);
/* A stage on this outside, at rest. */
void outside_set_up(void);
/* Every device that runs something has this result; one that is absent keeps it to itself. */
void outside_answer(const char *results_and_error);
/* The one with this id, wherever it runs; false: it does not. */
bool outside_answer_one(const char *id);

/* A device sends this, at least once: the broker keeps it until it is acknowledged. */
void outside_send(const char *suffix, const char *payload);

/* Every device is started anew: whatever it ran is gone, and it says so. */
void outside_restart(void);
/* The one with this identity. */
void outside_restart_one(const char *client);

/* A step that is neither request nor publish, before it is taken; < 0: it fails. */
int outside_use(struct error *err);

/* For stage_set_up. */
http_roundtrip_fn outside_roundtrip;
bool outside_between(void);
bool outside_marker_is_overdue(void);
void outside_request_marker(int64_t since_ms); /* see bridge_fence_request */
/* See bridge_publish. */
int outside_publish(const char *suffix, const char *payload, int qos, struct error *err);
