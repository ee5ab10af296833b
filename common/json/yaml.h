/* YAML 1.2 core as JSON, through libyaml: kubeconfigs, and manifests in tests. */
#pragma once

#include "common/json/json.h"

/*
 * One document. At most 16 MiB, 100 levels; aliases, duplicate keys, keys that are no scalars and
 * unknown tags are refused. Keys are strings, whatever they look like; numbers keep their digits,
 * and one that JSON_MAX_NUMBER does not allow is a string.
 */
int yaml_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err) MUST_CHECK;
/* All documents of a stream as one JSON array; empty ones are left out. */
int yaml_parse_all(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                   struct error *err) MUST_CHECK;
