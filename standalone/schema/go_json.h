/* JSON that is the value of a field: what encoding/json thinks of it, which takes more than json_parse does. */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

/* Whether json.Unmarshal makes a map[string]interface{} of it. ERROR_INVALID, in its words, which may name one
 * character or one number of the text. */
int go_json_check_map(const char *text, size_t len, struct error *err) MUST_CHECK;
