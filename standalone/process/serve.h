/* propeller-standalone serve: store, API, server and controller of one process. */
#pragma once

#include "standalone/process/settings.h"

/* Until a signal. rest: flags of the controller, the program's name first. 1 as controller_options_parse. */
int serve_run(struct arena *arena, const struct standalone_settings *settings, int rest_len,
              char *const *rest, struct error *err) MUST_CHECK;
