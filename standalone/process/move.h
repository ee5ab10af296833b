/* propeller-standalone export, import and backup. */
#pragma once

#include "standalone/process/settings.h"

/* Writes YAML to settings->output, and the names of omitted objects to the standard error. */
int move_export(struct arena *arena, const struct standalone_settings *settings,
                struct error *err) MUST_CHECK;
/* Through the API of the server if it runs, else into the store. Counts are printed, and on the standard
 * error what was refused; ERROR_INVALID: something was. */
int move_import(struct arena *arena, const struct standalone_settings *settings,
                struct error *err) MUST_CHECK;
int move_backup(struct arena *arena, const struct standalone_settings *settings,
                struct error *err) MUST_CHECK;
