/* This module reads answers of the API server: errors, objects and items. For client.c only. */
#pragma once

#include "common/kube/client.h"

/* subject begins every message: "GET tasks 'ns/name'". */

/* For a status that is not 2xx; see client.h. hide: a message that may repeat what was sent
 * (status.h) is replaced by the HTTP status, for a Secret must not be in an object's status either. */
int reply_error(const char *subject, const struct http_response *response, bool hide,
                struct error *err) MUST_CHECK;
/* is_write: the tree has no metadata.managedFields, which may be half of a reply. */
int reply_object(struct arena *arena, const char *subject, const struct kube_kind *kind,
                 const struct http_response *response, bool is_write, cJSON **ret,
                 struct error *err) MUST_CHECK;
/* One page of a list; *ret_continue: the token of the next one, or NULL. */
int reply_items(struct arena *arena, const char *subject, const struct http_response *response,
                kube_item_fn *item, void *ctx, const char **ret_continue,
                struct error *err) MUST_CHECK;
