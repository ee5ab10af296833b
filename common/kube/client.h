/*
 * A client sends requests to the Kubernetes API: one function for each verb, with typed errors.
 *
 * Ownership. Replies are trees in the arena of the caller, who may change them.
 * Threads. Any number of threads may use a client; each call blocks its thread until the reply, the
 * time-out or kube_client_cancel. Settings (kube_client_set_*) are made before the first request.
 */
#pragma once

#include "common/kube/object.h"
#include "common/kube/rate_limit.h"
#include "common/kube/transport.h"

struct kube_client;

/* config is borrowed and must outlive the client. timeout_ms limits each request, but for an API in this process. */
struct kube_client *kube_client_create(struct kube_config *config, uint32_t timeout_ms);
struct kube_client *kube_client_create_with(http_roundtrip_fn *roundtrip,
                                            void *ctx); /* roundtrip answers all requests */
void kube_client_destroy(struct kube_client *client);
void kube_client_cancel(
    struct kube_client *client); /* any thread; see transport_cancel; cancels the limit, too */
void kube_client_close_idle(struct kube_client *client,
                            uint32_t idle_ms); /* as transport_close_idle */

/* may_write is asked before every request but GET. If it returns false, nothing is sent and the
 * call fails with ERROR_CANCELED. */
void kube_client_set_guard(struct kube_client *client, bool (*may_write)(void *ctx), void *ctx);
/* Every request waits for a slot of the limit, which is borrowed. NULL: no limit. */
void kube_client_set_limit(struct kube_client *client, struct rate_limit *limit);
/* Called after every request, on the thread that made it; must not block. status 0: no reply. */
typedef void kube_observer_fn(void *ctx, const char *method, int status, int64_t duration_ms);
void kube_client_set_observer(struct kube_client *client, kube_observer_fn *observer, void *ctx);

enum kube_subresource { KUBE_MAIN, KUBE_STATUS };
enum kube_patch_type { KUBE_PATCH_JSON, KUBE_PATCH_MERGE };

/*
 * Errors. Status codes become errors by the table in status.h. retry_after_ms is set if the server
 * named a time. A reply that cannot be read is ERROR_INTERNAL. A message is "<METHOD> <resource>
 * '<ns>/<name>': <message of the server>"; for a Secret it has the status only.
 *
 * The reply is a tree in arena. Members at the paths of kind->texts are kept as text. It has a
 * metadata.name; the reply to a write has no metadata.managedFields. ret is written only on
 * success, and may be NULL if the caller needs no reply; arena may be NULL then.
 */
int kube_get(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
             const struct kube_name *name, cJSON **ret, struct error *err) MUST_CHECK;
/* Name and namespace are taken from object. */
int kube_create(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                const cJSON *object, cJSON **ret, struct error *err) MUST_CHECK;
/* Asks a question that is not stored, such as a SelfSubjectAccessReview; *ret is the review with its answer. */
int kube_review(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                const cJSON *review, const cJSON **ret, struct error *err) MUST_CHECK;
/* As kube_create, but the API server only defaults and validates the object (dryRun=All), and refuses fields that it does
 * not know. */
int kube_create_dry(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                    const cJSON *object, cJSON **ret, struct error *err) MUST_CHECK;
int kube_update(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                const cJSON *object, cJSON **ret, struct error *err) MUST_CHECK;
int kube_patch(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
               const struct kube_name *name, enum kube_subresource subresource,
               enum kube_patch_type type, const cJSON *patch, cJSON **ret,
               struct error *err) MUST_CHECK;
/* Deletes with propagation Background. uid and resource_version are preconditions; NULL: none. */
int kube_delete(struct kube_client *client, const struct kube_kind *kind,
                const struct kube_name *name, const char *uid, const char *resource_version,
                struct error *err) MUST_CHECK;
/* The same for a pod, which gets grace_s seconds to end. */
int kube_delete_pod(struct kube_client *client, const struct kube_name *name, const char *uid,
                    unsigned grace_s, struct error *err) MUST_CHECK;
/* Asks for the eviction of the pod with this uid, as its disruption budgets allow. 0: the API server answered, and
 * *ret_status is the HTTP status; *ret_retry_after_ms 0: it named no time. < 0: no answer came, or nothing was sent. */
int kube_evict(struct kube_client *client, const struct kube_name *name, const char *uid,
               int *ret_status, uint32_t *ret_retry_after_ms, struct error *err) MUST_CHECK;

/*
 * Lists in pages of 500 objects, or fewer where the reply is too large, and calls item for each one,
 * on this thread. Items are parsed one at a time and borrowed for the call. An item that cannot be read is omitted with a warning.
 * metadata_only asks for PartialObjectMetadata. ERROR_GONE: the pages took too long, so the caller
 * starts again.
 */
typedef int kube_item_fn(void *ctx, const cJSON *item,
                         struct error *err); /* < 0 ends the list with that error */
struct kube_list_options {
    const char *ns; /* NULL or "": all namespaces */
    const char *label_selector;
    const char *field_selector;
    bool metadata_only;
};
int kube_list(struct kube_client *client, const struct kube_kind *kind,
              const struct kube_list_options *options, kube_item_fn *item, void *ctx,
              struct error *err) MUST_CHECK;

/*
 * Requests a token of a ServiceAccount (TokenRequest, authentication.k8s.io/v1) for the API server.
 * The server may shorten its life to *ret_lifetime_s seconds. The caller wipes the token and frees
 * it. No message quotes it.
 */
int kube_request_token(struct kube_client *client, const struct kube_name *account,
                       uint32_t lifetime_s, char **ret, uint32_t *ret_lifetime_s,
                       struct error *err) MUST_CHECK;

/* Gets any path ("/version") as text, in the arena; ret may be NULL. Fails unless the status is 200. */
int kube_get_text(struct kube_client *client, struct arena *arena, const char *path,
                  const char **ret, struct error *err) MUST_CHECK;
