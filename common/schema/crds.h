/* The manifests of crds/, which are part of the program. */
#pragma once

#include "common/json/json.h"
#include "common/schema/embedded.h"

extern const struct embedded CRDS[];
extern const size_t CRDS_LEN;

/* Reads the manifest of the kind with this plural; ERROR_NOT_FOUND: there is none. In the arena. */
int crd_parse(struct arena *arena, const char *plural, const cJSON **ret,
              struct error *err) MUST_CHECK;
