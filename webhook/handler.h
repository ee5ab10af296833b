/* The webhook's side of HTTP: which request is a review, and what the answer is. */
#pragma once

#include "common/net/http_server.h"
#include "webhook/admission.h"

/* ctx: struct admission_settings. Unknown paths are 404, other methods than POST 405, other content
 * types than JSON 415, what is no review 400. Server threads; does no I/O that waits. */
http_handler_fn admission_handle;
