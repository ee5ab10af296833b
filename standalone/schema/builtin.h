/* The kinds of Kubernetes that are served, for this folder only. */
#pragma once

#include "standalone/schema/resource.h"

/* The functions and switches of each kind, by group and plural; the rest is in kinds.yaml. */
extern const struct resource BUILTIN_RESOURCES[];
extern const size_t BUILTIN_RESOURCES_LEN;
