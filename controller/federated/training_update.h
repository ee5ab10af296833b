/* The hooks of TrainingRounds for their Tasks: updates are read, checked and stored between the mailbox
 * and the plan of the Task, which sees results only, and their senders are answered. */
#pragma once

#include "controller/federated/federated.h"

/*
 * An update comes in up to three ways: by HTTP to the coordinator, on an update topic, and inside
 * the results message, which the device always sends. The first valid one counts; the others are
 * counted as "duplicate". An update that came by HTTP or on a topic and is of no use is refused
 * ("invalid_update") and changes nothing, because the results message is still to come; only a
 * microcontroller sends nothing but the one on its topic, so its Task fails by that. A results
 * message without a usable update fails the Task: that participant is out, the round goes on.
 *
 * Small ones are stored in the Task's status. Larger ones go into the model store first, and the
 * status says where they are.
 */
#define TRAINING_MAX_INLINE ((size_t)64 << 10) /* of status.results as JSON */

/*
 * self: struct traininground_deps. Of the results of a Task, message.results becomes what the status is to hold, or
 * message.error why the update is of no use, or verdict why it is refused. Others stay as they are. It
 * is later while all updates that came by HTTP are in the queue of the coordinator: the first that
 * leaves it wakes the Task, and the results message is not looked at before. Before the status is
 * written, the blob that it names is stored; then the senders are answered.
 */
extern const struct task_owner TRAININGROUND_OWNER;
