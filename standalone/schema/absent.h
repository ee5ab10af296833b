/* Kinds of a cluster that are not here: they can be looked for, there are none, and none can be made. */
#pragma once

#include "standalone/schema/resource.h"

/*
 * Those of `kubectl get all`: what makes pods, what leads to them, and the pods. Discovery has them, since users and
 * `kubectl cluster-info` ask for them. After them those that clients ask for by themselves, which discovery has not:
 * kubectl lists the CustomResourceDefinitions before it says that it does not know a kind.
 */
size_t absent_len(bool discovered);
const struct resource *absent_at(size_t i);
/* NULL: not one of them, whether or not the kind is served. version NULL: any. */
const struct resource *absent_find(const char *group, const char *version, const char *plural);
