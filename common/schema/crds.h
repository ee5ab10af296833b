/* The manifests of crds/, which are part of the program. */
#pragma once

#include "common/schema/embedded.h"

extern const struct embedded CRDS[];
extern const size_t CRDS_LEN;
