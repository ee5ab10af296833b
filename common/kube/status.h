/* This module translates a refusal of the API server, an HTTP status and a Status object, to an
 * error. */
#pragma once

#include "common/json/json.h"

/*
 * 400, 422 INVALID; 403 FORBIDDEN; 404 NOT_FOUND; 409 EXISTS (reason AlreadyExists) or
 * CONFLICT; 410 GONE; 413 TOO_LARGE (also a 500 that says "request is too large"); 401, 429,
 * 503 UNAVAILABLE (without credentials nothing is executed, and others may come: that is no last
 * word on the request); 504 TIMEOUT, but GONE if the server does not know the resourceVersion yet; other 5xx
 * and whatever is left INTERNAL. The message is the server's, or "HTTP <code>". retry_after_ms
 * comes from details.retryAfterSeconds. Returns -code.
 *
 * The message may repeat what was sent: a value that is refused, or the words of an admission webhook, of a policy or
 * of a proxy. That part is marked as quoted (error.h), so that it is in no log. Not quoted are the API server's own
 * words about names, rights, quotas and versions, and the name of a webhook.
 */
int kube_status_error(struct error *err, int http_status, const cJSON *status);

/* The same of a reply's body, which may also be plain text or nothing. */
int kube_status_error_text(struct error *err, int http_status, const char *body, size_t len);
