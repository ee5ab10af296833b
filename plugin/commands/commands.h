/* The commands, one file each or a file for those that do nearly the same. */
#pragma once

#include "plugin/cli/command.h"

extern const struct command COMMAND_RUN;
extern const struct command COMMAND_WAIT;
extern const struct command COMMAND_WHY;
extern const struct command COMMAND_PLAN;
extern const struct command COMMAND_TOP;
extern const struct command COMMAND_TIMELINE;
extern const struct command COMMAND_ROUNDS;
extern const struct command COMMAND_MODEL;
extern const struct command COMMAND_LOGS;
extern const struct command COMMAND_DRAIN;
extern const struct command COMMAND_CORDON;
extern const struct command COMMAND_UNCORDON;
extern const struct command COMMAND_SUSPEND;
extern const struct command COMMAND_RESUME;
extern const struct command COMMAND_RESTART;
extern const struct command COMMAND_PENDING;
extern const struct command COMMAND_APPROVE;
extern const struct command COMMAND_REJECT;
extern const struct command COMMAND_DEVICE;
extern const struct command COMMAND_CHECK;
extern const struct command COMMAND_UI;
extern const struct command COMMAND_EXPLAIN;
extern const struct command COMMAND_CONVERT;
extern const struct command COMMAND_VERSION;
extern const struct command COMMAND_COMPLETION;
