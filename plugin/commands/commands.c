/* The table of the commands. */
#include "plugin/commands/commands.h"
#include "common/base/compiler.h"

const struct command *const COMMANDS[] = {
    &COMMAND_RUN,        &COMMAND_WAIT,     &COMMAND_WHY,     &COMMAND_PLAN,    &COMMAND_TOP,
    &COMMAND_TIMELINE,   &COMMAND_LOGS,     &COMMAND_ROUNDS,  &COMMAND_MODEL,   &COMMAND_DRAIN,
    &COMMAND_CORDON,     &COMMAND_UNCORDON, &COMMAND_SUSPEND, &COMMAND_RESUME,  &COMMAND_RESTART,
    &COMMAND_CHECK,      &COMMAND_UI,       &COMMAND_EXPLAIN, &COMMAND_CONVERT, &COMMAND_VERSION,
    &COMMAND_COMPLETION,
};
const size_t COMMAND_COUNT = ARRAY_LEN(COMMANDS);
