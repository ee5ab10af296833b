/* Requests for kinds of a cluster that are not here (schema/absent.h). */
#pragma once

#include "standalone/api/call.h"

bool pods_is_request(const struct api_call *call);
bool pods_is_kind(const char *group, const char *plural);
/* Lists are empty, watches silent (bookmarks apart); what would make one is refused with 403 and the
 * reason. */
int call_pods(struct api_call *call);
