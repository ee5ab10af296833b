/* This module remembers of attempts what their status does not have: published, confirmed, told
 * to stop. It is lost at a restart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/api/reasons.h"
#include "controller/device/samples.h"

/*
 * One entry a Task, by uid, of its current attempt only: naming a later attempt resets it. All
 * times are monotonic milliseconds, 0: never. Any thread; one leaf mutex. Entries go with
 * attempts_remove, when the Task is gone. A Proplet that is being deleted has one, too, for
 * deleting_ms.
 */
struct attempts;

struct attempt {
    int64_t number;
    bool chosen_here; /* this process chose the Proplet, so no earlier leader can have published the
                         start */
    int64_t first_seen_ms;
    int64_t began_ms;     /* when the last publish of the start that went out, or may have, began */
    int64_t published_ms; /* the time at which the broker acknowledged the last one */
    int64_t publishes;    /* since the last sign of it, and the one that this confirmed */
    int64_t confirmed_ms; /* the last sign of it from its device */
    int64_t stop_sent_ms;
    bool ended; /* of a target: its device said its last word while the Task was deleted */
    int64_t forbidden_ms; /* since then every write of the Task was answered with 403; 0: not so */
    int64_t deleting_ms;  /* first seen with a deletionTimestamp */
    int64_t cut_ms; /* first seen past the time at which its Proplet stops it; see attempts_cut */
    enum reason cut_reason; /* why the Proplet was closed then */
    int64_t ordered_ms;     /* first seen with an order of its job to end, which stands */
    int64_t targets;        /* see attempts_targets */
    struct sample sample;   /* the last one that its device sent */
    int64_t sample_us;      /* the time of it (wall clock); 0: none that is not in the status */
};

struct attempts *attempts_create(void);
void attempts_destroy(struct attempts *attempts);

/* Makes the entry if there is none. */
struct attempt attempts_get(struct attempts *attempts, const char *uid, int64_t number,
                            int64_t now_ms);
void attempts_chosen(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms);
/* A start takes back a stop. acknowledged_ms 0: it may be out. */
void attempts_published(struct attempts *attempts, const char *uid, int64_t number,
                        int64_t began_ms, int64_t acknowledged_ms);
/* Whether the broker has acknowledged the start of the current attempt. */
bool attempts_is_published(struct attempts *attempts, const char *uid);
/* The same of this attempt, and its device gave no sign of it. */
bool attempts_is_unconfirmed(struct attempts *attempts, const char *uid, int64_t number);
void attempts_stop_sent(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms);
void attempts_ended(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms);
void attempts_deleting(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms);
/* Its job orders it to end, or does not, or not any more. */
void attempts_ordered(struct attempts *attempts, const char *uid, int64_t number, bool ordered,
                      int64_t now_ms);
/* Its Proplet is closed for this reason, and stops what runs there now; REASON_NONE: it is not, or not any more. An
 * attempt that got a stop for that stays so, with the reason that it had then. Returns the entry. */
struct attempt attempts_cut(struct attempts *attempts, const char *uid, int64_t number,
                            enum reason reason, int64_t now_ms);
/* From the device, so of any number: true if that is the current attempt and this is its first
 * sign. */
bool attempts_confirmed(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms);
/* A sample of that attempt came: true if there was none that waits to be written. */
bool attempts_sampled(struct attempts *attempts, const char *uid, int64_t number,
                      const struct sample *sample, int64_t now_us);
/* The sample that came then is in the status. */
void attempts_sample_written(struct attempts *attempts, const char *uid, int64_t sample_us);
/* A write of the Task was forbidden, or was not. */
void attempts_forbidden(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms);
void attempts_not_forbidden(struct attempts *attempts, const char *uid);
/* Returns the number of Tasks that the controller may not write, and since when the first of
 * them (0: none). */
size_t attempts_forbidden_count(struct attempts *attempts, int64_t *ret_since_ms);
/* Of a target of a broadcast, instead of the uid. */
const char *attempts_key(struct arena *arena, const char *uid, int64_t index);
/* At most this many targets have entries of their own, which go with that of the uid. */
void attempts_targets(struct attempts *attempts, const char *uid, int64_t number, int64_t count,
                      int64_t now_ms);
void attempts_remove(struct attempts *attempts, const char *uid);
