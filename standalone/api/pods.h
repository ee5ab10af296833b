/* Kinds whose objects would make pods. Here is nothing that runs pods: they can be looked for, there are
 * none, and none can be made. */
#pragma once

#include "standalone/api/call.h"

/* Whether the route is one of them: pods, deployments and statefulsets, jobs. They are in no
 * discovery. */
bool pods_is_route(const struct route *route);
bool pods_is_kind(const char *group, const char *plural);
/* Lists are empty, watches silent (bookmarks apart); what would make one is refused with 403 and the
 * reason. */
int call_pods(struct api_call *call);
