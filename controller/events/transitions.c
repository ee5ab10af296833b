#include "controller/events/transitions.h"

#define EVENT(name, type, reason, note) const struct event name = { type, reason, note }

EVENT(TASK_EVENT_SCHEDULED, EVENT_NORMAL, "Scheduled", "a Proplet was chosen");
EVENT(TASK_EVENT_STARTED, EVENT_NORMAL, "Started", "the start went out to the Proplet");
EVENT(TASK_EVENT_COMPLETED, EVENT_NORMAL, "Completed", "the result is in status.results");
EVENT(TASK_EVENT_FAILED, EVENT_WARNING, "Failed", "status.reason and status.error say why");
EVENT(TASK_EVENT_INTERRUPTED, EVENT_NORMAL, "Interrupted", "status.reason says why");
EVENT(TASK_EVENT_SKIPPED, EVENT_NORMAL, "Skipped", "the condition Completed says why");
EVENT(TASK_EVENT_RUN_SKIPPED, EVENT_NORMAL, "Skipped",
      "a run of the schedule was left out, or several were missed");
EVENT(TASK_EVENT_RETRYING, EVENT_WARNING, "Retrying",
      "an attempt failed, the condition Failed says why; the next is due at status.nextRetry");
EVENT(TASK_EVENT_RESTARTED, EVENT_NORMAL, "Restarted", "the restart annotation has a new value");

EVENT(PROPLET_EVENT_ONLINE, EVENT_NORMAL, "Online", "its device is alive, or its pods are ready");
EVENT(PROPLET_EVENT_OFFLINE, EVENT_WARNING, "Offline", "the condition Ready says why");
EVENT(PROPLET_EVENT_DUPLICATE, EVENT_WARNING, "DuplicateClientId",
      "an older Proplet has the same domainId, channelId and clientId");

EVENT(JOB_EVENT_STARTED, EVENT_NORMAL, "Started", "its Tasks are made and may run");
EVENT(JOB_EVENT_COMPLETED, EVENT_NORMAL, "Completed", "the condition Complete says more");
EVENT(JOB_EVENT_FAILED, EVENT_WARNING, "Failed", "the condition Failed says why");

EVENT(FEDERATED_EVENT_STARTED, EVENT_NORMAL, "Started", "its first round may begin");
EVENT(FEDERATED_EVENT_AGGREGATED, EVENT_NORMAL, "Aggregated", "a round is complete");
EVENT(FEDERATED_EVENT_COMPLETED, EVENT_NORMAL, "Completed", "all rounds are complete");
EVENT(FEDERATED_EVENT_FAILED, EVENT_WARNING, "Failed", "the condition Failed says why");

EVENT(ROUND_EVENT_STARTED, EVENT_NORMAL, "Started", "the participants are given their Tasks");
EVENT(ROUND_EVENT_AGGREGATED, EVENT_NORMAL, "Aggregated", "enough updates become one model");
EVENT(ROUND_EVENT_COMPLETED, EVENT_NORMAL, "Completed", "the model is stored");
EVENT(ROUND_EVENT_FAILED, EVENT_WARNING, "Failed", "the condition Failed says why");
