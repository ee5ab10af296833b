/* JSON and YAML for tests: a text that does not parse fails the test. */
#pragma once

#include "common/json/json.h"

const cJSON *parsed(struct arena *arena, const char *text);
/* path: from the top of the repository, where tests are started */
const cJSON *parsed_yaml_file(struct arena *arena, const char *path);
