/* What a training Task's device sends: read, checked, stored, and told to whoever asked. Between the
 * mailbox and the plan of the Task, which sees results only. */
#pragma once

#include "common/runtime/mailbox.h"
#include "controller/shared/reconcilers.h"
#include "controller/task/plan/task_plan.h"

/*
 * An update comes up to three ways: by HTTP to the coordinator, on an update topic, and inside the
 * results message, which the device sends in every case. The first valid one counts; the others are
 * counted as "duplicate". One that came by HTTP or on a topic and is of no use is refused
 * ("invalid_update") and changes nothing, because the results message is still to come; only a
 * microcontroller sends nothing but the one on its topic, so its Task fails by that. What is of no use in a results message fails
 * the Task: that participant is out, the round goes on.
 *
 * Small ones are stored in the Task's status. Larger ones go into the model store first, and the
 * status says where they are.
 */
#define TRAINING_MAX_INLINE ((size_t)64 << 10) /* of status.results as JSON */

#define REASON_INVALID_UPDATE "InvalidUpdate"
#define REASON_UPDATE_TOO_LARGE "UpdateTooLarge"

/* mail: MAIL_UPDATE. */
void training_observe_mail(struct arena *arena, const struct mail *mail,
                           const struct observed_proplet *proplet, struct observed_result *ret);

/* Of the results of a training Task: message.results becomes what the status is to hold, or
 * message.error why the update is of no use, or verdict why it is refused. Others stay as they are.
 * json: the Task's tree. < 0: the model to hold it against could not be read, for now.
 * TRAINING_LATER: all updates of this Task that came by HTTP are still in the queue of the coordinator;
 * the first that leaves it wakes the Task, and its results message is not looked at before. */
#define TRAINING_LATER 1
int training_observe(struct shared *shared, struct reconcile *rc, const cJSON *json,
                     struct task_observed *observed, struct error *err) MUST_CHECK;

/* Before the status is written: the blob that it names. Doing it twice is harmless. */
int training_store(struct shared *shared, struct reconcile *rc, const cJSON *json,
                   const struct task_observed *observed, const struct task_plan *plan,
                   struct error *err) MUST_CHECK;

/* After it was written. */
void training_answer(struct shared *shared, const struct task_observed *observed,
                     const struct task_plan *plan);
