/* YAML 1.2 core as JSON, through libyaml: kubeconfigs, and manifests in tests. */
#pragma once

#include "common/json/json.h"

/* One document. At most 16 MiB, 100 levels; aliases and duplicate keys are refused. */
int yaml_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err) MUST_CHECK;
/* All documents of a stream as one JSON array; empty ones are left out. */
int yaml_parse_all(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                   struct error *err) MUST_CHECK;
