/* JSON of a test's source text. */
#pragma once

#include "common/json/json.h"

/* Fails the test if it does not parse. */
const cJSON *parse_json(struct arena *arena, const char *text);
