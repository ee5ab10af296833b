/* The verbs of the Kubernetes API, with typed errors. */
#pragma once

#include "common/kube/object.h"
#include "common/kube/rate_limit.h"
#include "common/kube/transport.h"

struct kube_client;

/* config must outlive the client. Any number of threads. */
struct kube_client *kube_client_create(struct kube_config *config, uint32_t timeout_ms);
struct kube_client *kube_client_create_with(http_roundtrip_fn *roundtrip,
                                            void *ctx); /* the seam for tests */
void kube_client_destroy(struct kube_client *client);
void kube_client_cancel(
    struct kube_client *client); /* see transport_cancel; cancels its limit, too */
void kube_client_close_idle(struct kube_client *client,
                            uint32_t idle_ms); /* as transport_close_idle */

/* Asked before every write (POST, PUT, PATCH, DELETE); false: ERROR_CANCELED, nothing is sent. Set
 * before use. */
void kube_client_set_guard(struct kube_client *client, bool (*may_write)(void *ctx), void *ctx);
/* Every request waits for a slot of it; borrowed. Set before use. NULL: no limit. */
void kube_client_set_limit(struct kube_client *client, struct rate_limit *limit);
/* Told of every request on the thread that made it; status 0: no reply. Set before use. */
typedef void kube_observer_fn(void *ctx, const char *method, int status, int64_t duration_ms);
void kube_client_set_observer(struct kube_client *client, kube_observer_fn *observer, void *ctx);

enum kube_subresource { KUBE_MAIN, KUBE_STATUS };
enum kube_patch_type { KUBE_PATCH_JSON, KUBE_PATCH_MERGE };

/*
 * Status codes become errors as status.h says. retry_after_ms is set if the server named a time. A
 * reply that does not parse is INTERNAL. Messages are "<METHOD> <resource> '<ns>/<name>': <the
 * server's message>"; of a Secret that was refused, only the status. ret may be NULL where the
 * reply is not wanted.
 *
 * The reply is a tree in the arena of the caller, who owns it and may change it; members of the kind's texts are kept
 * as text in it. It has a metadata.name; that of a write has no metadata.managedFields.
 */
int kube_get(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
             const struct kube_name *name, cJSON **ret, struct error *err) MUST_CHECK;
/* The namespace is taken from metadata.namespace. */
int kube_create(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                const cJSON *object, cJSON **ret, struct error *err) MUST_CHECK;
int kube_update(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                const cJSON *object, cJSON **ret, struct error *err) MUST_CHECK;
int kube_patch(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
               const struct kube_name *name, enum kube_subresource subresource,
               enum kube_patch_type type, const cJSON *patch, cJSON **ret,
               struct error *err) MUST_CHECK;
/* uid and resource_version are preconditions (NULL: none of that sort); propagation Background. */
int kube_delete(struct kube_client *client, const struct kube_kind *kind,
                const struct kube_name *name, const char *uid, const char *resource_version,
                struct error *err) MUST_CHECK;

/*
 * Pages of 500 until the end. Items are borrowed, and parsed one at a time; one that cannot be kept
 * (see watch.h) is left out with a warning. metadata_only asks for PartialObjectMetadata. A server
 * that was not asked again soon enough ends the list with ERROR_GONE: the caller starts over.
 */
typedef int kube_item_fn(void *ctx, const cJSON *item,
                         struct error *err); /* < 0 ends the list with that error */
struct kube_list_options {
    const char *ns; /* NULL or "": all */
    const char *label_selector;
    const char *field_selector;
    bool metadata_only;
};
int kube_list(struct kube_client *client, const struct kube_kind *kind,
              const struct kube_list_options *options, kube_item_fn *item, void *ctx,
              struct error *err) MUST_CHECK;

/*
 * A token of a ServiceAccount (TokenRequest, authentication.k8s.io/v1) for the API server itself.
 * The server may give it a shorter life than was asked for; *ret_lifetime_s is what it gave. The
 * caller wipes and frees the token; no message quotes it.
 */
int kube_request_token(struct kube_client *client, const struct kube_name *account,
                       uint32_t lifetime_s, char **ret, uint32_t *ret_lifetime_s,
                       struct error *err) MUST_CHECK;

/* GET of any path that answers 200 (e.g. "/readyz"); the body is dropped. */
int kube_probe(struct kube_client *client, const char *path, struct error *err) MUST_CHECK;
