/* JSON as YAML that readers of YAML 1.1 (kubectl) and 1.2 (common/json/yaml.h) take for the same. */
#pragma once

#include "common/base/buf.h"
#include "common/json/json.h"

/*
 * Appends item in block style, with a newline at the end and members in the order of their keys as
 * bytes compare: equal objects are equal texts. A string that any reader could take for something
 * else ("on", "1e3", "~", "2001-01-01") is quoted; one of several plain lines is a literal block;
 * characters that do not print are escaped. Numbers keep their digits. No "---" is written, and no
 * line begins with one. At most JSON_MAX_DEPTH levels. False: the buffer's limit is reached.
 */
bool yaml_write(struct buf *buf, const cJSON *item) MUST_CHECK;
