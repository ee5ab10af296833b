/* CreateOptions, UpdateOptions, PatchOptions, DeleteOptions and ListOptions: refused as there. */
#pragma once

#include "standalone/api/call.h"
#include "standalone/api/delete_plan.h"

/* kind: "CreateOptions", "UpdateOptions". What follows returns 0, or -1 after a refusal. */
int options_check_write(struct api_call *call, const char *kind);
int options_check_patch(struct api_call *call, bool apply);
/* resourceVersion, resourceVersionMatch and what goes with them; watch: of a watch. */
int options_check_list(struct api_call *call, bool watch);
/* Of the body if there is one, else of the query. */
int options_read_delete(struct api_call *call, struct delete_options *ret);
