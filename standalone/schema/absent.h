/* Kinds of a cluster that are not here: they can be listed, there are none, and none can be created. */
#pragma once

#include "standalone/schema/resource.h"

/*
 * The kinds of `kubectl get all`, and CustomResourceDefinitions, which kubectl lists before it says that it does not
 * know a kind. kinds.yaml has the same kinds for discovery. NULL: the kind is none of them, whether or not it is
 * served. version NULL: any.
 */
const struct resource *absent_find(const char *group, const char *version, const char *plural);
