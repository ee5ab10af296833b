/* Text of a model or an update as doubles. Inside of federated/. */
#pragma once

#include "common/json/numbers.h"

/* At most FL_MAX_PARAMETERS. ERROR_INVALID: the message says what the text holds or must hold. */
int fl_numbers_read(struct arena *arena, const char *text, size_t len, struct json_numbers *ret,
                    struct error *err) MUST_CHECK;
