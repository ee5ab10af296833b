/* JSON and YAML for tests: a text that does not parse fails the test. */
#pragma once

#include "common/json/json.h"

const cJSON *parsed(struct arena *arena, const char *text);
/* The links backwards of all that is in it, too: cJSON appends by them. */
void expect_json_linked(const cJSON *container);
/* path: from the top of the repository, where tests are started */
const cJSON *parsed_yaml_file(struct arena *arena, const char *path);
