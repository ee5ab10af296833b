/* propeller-standalone serve: store, API, server and controller of one process. */
#pragma once

#include "standalone/process/settings.h"

/* First of the two. rest: flags of the controller, the program's name first. As controller_options_parse: 1 after
 * --help; an error is one of the command line. */
int serve_parse(const struct standalone_settings *settings, int rest_len, char *const *rest,
                struct error *err) MUST_CHECK;
/* Until a signal. */
int serve_run(struct arena *arena, const struct standalone_settings *settings,
              struct error *err) MUST_CHECK;
