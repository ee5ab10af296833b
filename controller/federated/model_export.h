/* This module copies the newest kept model of a FederatedJob to an address of its user. */
#pragma once

#include "controller/blobs/model_store.h"
#include "controller/federated/federatedjob_plan.h"

/*
 * The copies are "<uri>/round-<N>" and then "<uri>/latest", so that what is called latest is whole. They
 * are the user's: nothing here removes them. Only the bucket of the model store is written, and there
 * only exports/<namespace of the job>/, whatever the webhook has let through.
 *
 * The object remembers when a failed copy may be tried again: after 10 s, then twice as long, up to
 * 5 min. In memory only, since a new leader may try at once. Any thread; one leaf lock.
 */
struct model_exports;
struct model_exports *model_exports_create(const struct clock *clock);
void model_exports_destroy(struct model_exports *exports); /* NULL is fine */
/* The job with this uid is gone. */
void model_exports_forget(struct model_exports *exports, const char *uid);

/* Copies status.lastCheckpoint of the job, or says why not. May block on the store. Strings are in the
 * arena. */
struct observed_export model_export(struct model_exports *exports, struct model_store *store,
                                    struct arena *arena, const struct model_scope *scope,
                                    const struct federatedjob *job);
