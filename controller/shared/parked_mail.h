/* Mail of an object that alone is not written does not hold up the mail of others. */
#pragma once

#include "controller/shared/reconcilers.h"

/*
 * Nothing is acknowledged to the broker while mail waits, and the broker sends no more than its
 * window: one status that the API server answers with an error for ever would stop the results of
 * the whole fleet. An object that is passed over (passed_over.h) therefore keeps its mail here, where
 * it is tried on with a growing delay, and what came with it is acknowledged. An API server that
 * takes nothing parks nothing: then the broker keeps everything.
 */

/* A status was written, of whatever object. */
void mail_note_written(struct shared *shared);
/* The turn of an object that gets mail ended with r, and will be tried again if that is an error. */
void mail_note_turn(struct shared *shared, const struct kube_object *object, int r,
                    const struct error *err);
/* Brings the gauge up to date: how old the oldest mail is that is not written. From time to time. */
void mail_tell_oldest(struct shared *shared);
