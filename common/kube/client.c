#include "common/kube/client.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/in_process.h"
#include "common/kube/kinds.h"
#include "common/kube/path.h"
#include "common/kube/reply.h"

/* Names are at most 317 bytes, three times that when encoded; selectors and continue tokens more.
 */
#define MAX_PATH (16u << 10)
#define PAGE_SIZE 500u
/* A page whose reply is too large is asked for again with so many times fewer objects. */
#define PAGE_DIVISOR 8u
/* Five million objects: a server that has more gives the same page again and again. */
#define MAX_PAGES 10000

struct kube_client {
    http_roundtrip_fn *roundtrip;
    void *ctx;
    struct transport *transport; /* NULL with create_with */
    atomic_bool is_canceled;
    bool (*may_write)(void *ctx);
    void *guard_ctx;
    struct rate_limit *limit; /* NULL: none */
    kube_observer_fn *observer;
    void *observer_ctx;
};

/* One request in the making: everything lives in the arena of the call. */
struct call {
    struct arena *arena;
    const char *subject;          /* "PATCH tasks/status 'ns/name'": begins every message */
    const struct kube_kind *kind; /* of the reply */
    bool is_secret;
    struct http_request request;
};

struct kube_client *kube_client_create_with(http_roundtrip_fn *roundtrip, void *ctx)
{
    struct kube_client *client = xcalloc(1, sizeof(*client));

    client->roundtrip = roundtrip;
    client->ctx = ctx;
    return client;
}

struct kube_client *kube_client_create(struct kube_config *config, uint32_t timeout_ms)
{
    const struct kube_in_process *api = kube_config_in_process(config);

    if (api)
        return kube_client_create_with(api->roundtrip, api->ctx);

    struct transport *transport = transport_create(config, timeout_ms);
    struct kube_client *client = kube_client_create_with(transport_roundtrip, transport);

    client->transport = transport;
    return client;
}

void kube_client_destroy(struct kube_client *client)
{
    if (!client)
        return;
    transport_destroy(client->transport);
    free(client);
}

void kube_client_cancel(struct kube_client *client)
{
    atomic_store(&client->is_canceled, true);
    if (client->limit)
        rate_limit_cancel(client->limit);
    if (client->transport)
        transport_cancel(client->transport);
}

void kube_client_close_idle(struct kube_client *client, uint32_t idle_ms)
{
    if (client->transport)
        transport_close_idle(client->transport, idle_ms);
}

void kube_client_set_guard(struct kube_client *client, bool (*may_write)(void *ctx), void *ctx)
{
    client->may_write = may_write;
    client->guard_ctx = ctx;
}

void kube_client_set_limit(struct kube_client *client, struct rate_limit *limit)
{
    client->limit = limit;
}

void kube_client_set_observer(struct kube_client *client, kube_observer_fn *observer, void *ctx)
{
    client->observer = observer;
    client->observer_ctx = ctx;
}

/* Any status is a reply. */
static int call_send(struct kube_client *client, const struct call *call, struct http_response *ret,
                     struct error *err)
{
    const struct http_request *request = &call->request;
    struct http_response response = { 0 };
    int r = client->limit ? rate_limit_wait(client->limit, err) : 0;
    if (r < 0)
        return error_wrap(err, "%s", call->subject);

    if (atomic_load(&client->is_canceled))
        return error_set(err, ERROR_CANCELED, "%s: not sent, this process ends", call->subject);
    /* After the wait, in which the Lease may have been lost. */
    if (client->may_write && !str_equal(request->method, "GET") &&
        !client->may_write(client->guard_ctx))
        return error_set(err, ERROR_CANCELED, "%s: not sent, writing is not allowed now",
                         call->subject);

    int64_t start_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    r = client->roundtrip(client->ctx, call->arena, request, &response, err);
    if (client->observer)
        client->observer(client->observer_ctx, request->method, r < 0 ? 0 : response.status,
                         clock_monotonic_ms(&CLOCK_SYSTEM) - start_ms);
    if (r < 0) {
        error_wrap(err, "%s", call->subject);
        return r;
    }
    *ret = response;
    return 0;
}

static int call_make(struct kube_client *client, const struct call *call, struct http_response *ret,
                     struct error *err)
{
    int r = call_send(client, call, ret, err);

    if (r == 0 && (ret->status < 200 || ret->status > 299))
        return reply_error(call->subject, ret, call->is_secret, err);
    return r;
}

/* Makes the call; the reply is an object in an arena of the caller's, if it is wanted. */
static int call_for_object(struct kube_client *client, const struct call *call, struct arena *arena,
                           cJSON **ret, struct error *err)
{
    struct http_response response;
    int r = call_make(client, call, &response, err);

    if (r < 0 || !ret)
        return r;
    return reply_object(arena, call->subject, call->kind, &response,
                        !str_equal(call->request.method, "GET"), ret, err);
}

static void call_set_body(struct call *call, const char *content_type, const cJSON *body)
{
    call->request.content_type = content_type;
    call->request.body = json_text(call->arena, body, &call->request.body_len);
}

static void call_init(struct call *call, struct arena *arena, const char *method,
                      const struct kube_kind *kind, const char *subresource,
                      const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];

    *call = (struct call){
        .arena = arena,
        .subject = arena_printf(arena, "%s %s%s '%s'", method, kind->plural, subresource,
                                kube_name_key(name, key)),
        .kind = kind,
        .is_secret = str_equal(kind->kind, "Secret") && !*kind->group,
        .request = { .method = method },
    };
}

static int call_set_path(struct call *call, struct buf *path, bool fits, struct error *err)
{
    if (fits)
        call->request.path = arena_strdup(call->arena, buf_string(path));
    buf_release(path);
    return fits ? 0 : error_set(err, ERROR_TOO_LARGE, "%s: path is too long", call->subject);
}

/* Without this a GET without a name would be a list, and ".." another resource. */
static int check_name(const struct call *call, const struct kube_kind *kind,
                      const struct kube_name *name, struct error *err)
{
    if (!*name->name || str_equal(name->name, ".") || str_equal(name->name, ".."))
        return error_set(err, ERROR_INVALID, "%s: not a name", call->subject);
    if (kind->namespaced && !str_is_dns_label(name->ns))
        return error_set(err, ERROR_INVALID, "%s: not a namespace", call->subject);
    return 0;
}

static int call_object(struct call *call, struct arena *arena, const char *method,
                       const struct kube_kind *kind, const struct kube_name *name,
                       const char *subresource, struct error *err)
{
    call_init(call, arena, method, kind, subresource, name);
    int r = check_name(call, kind, name, err);
    if (r < 0)
        return r;

    struct buf path = BUF_INIT(MAX_PATH);
    bool fits = kube_path_object(&path, kind, name) && buf_append_string(&path, subresource);
    return call_set_path(call, &path, fits, err);
}

static int name_of(const cJSON *object, struct kube_name *ret, struct error *err)
{
    if (!kube_name_of(object, ret))
        return error_set(err, ERROR_INVALID, "name or namespace of object '%.64s' is too long",
                         json_string(json_path(object, "metadata", "name", NULL), ""));
    return 0;
}

int kube_get(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
             const struct kube_name *name, cJSON **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    struct call call = { 0 };

    int r = call_object(&call, scratch, "GET", kind, name, "", err);
    return r < 0 ? r : call_for_object(client, &call, arena, ret, err);
}

static int create(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                  const cJSON *object, bool is_dry, cJSON **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    struct kube_name name;
    struct call call = { 0 };

    int r = name_of(object, &name, err);
    if (r < 0)
        return r;
    call_init(&call, scratch, "POST", kind, "", &name);
    r = check_name(&call, kind, &name, err);
    if (r < 0)
        return r;

    struct buf path = BUF_INIT(MAX_PATH);
    bool fits = kube_path_collection(&path, kind, name.ns) &&
                (!is_dry || (kube_path_query(&path, "dryRun", "All") &&
                             kube_path_query(&path, "fieldValidation", "Strict")));
    r = call_set_path(&call, &path, fits, err);
    if (r < 0)
        return r;
    call_set_body(&call, "application/json", object);
    return call_for_object(client, &call, arena, ret, err);
}

int kube_create(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                const cJSON *object, cJSON **ret, struct error *err)
{
    return create(client, arena, kind, object, false, ret, err);
}

int kube_review(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                const cJSON *review, const cJSON **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    const struct kube_name none = { "", "" };
    struct buf path = BUF_INIT(MAX_PATH);
    struct http_response response;
    struct call call;

    call_init(&call, scratch, "POST", kind, "", &none);
    int r = call_set_path(&call, &path, kube_path_collection(&path, kind, ""), err);
    if (r < 0)
        return r;
    call_set_body(&call, "application/json", review);
    r = call_make(client, &call, &response, err);
    if (r == 0)
        r = json_parse(arena, response.body, response.body_len, ret, err);
    return r < 0 ? error_wrap(err, "%s", kind->kind) : 0;
}

int kube_create_dry(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                    const cJSON *object, cJSON **ret, struct error *err)
{
    return create(client, arena, kind, object, true, ret, err);
}

int kube_update(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                const cJSON *object, cJSON **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    struct kube_name name;
    struct call call = { 0 };

    int r = name_of(object, &name, err);
    if (r == 0)
        r = call_object(&call, scratch, "PUT", kind, &name, "", err);
    if (r < 0)
        return r;
    call_set_body(&call, "application/json", object);
    return call_for_object(client, &call, arena, ret, err);
}

int kube_patch(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
               const struct kube_name *name, enum kube_subresource subresource,
               enum kube_patch_type type, const cJSON *patch, cJSON **ret, struct error *err)
{
    static const char *const CONTENT_TYPES[] = {
        [KUBE_PATCH_JSON] = "application/json-patch+json",
        [KUBE_PATCH_MERGE] = "application/merge-patch+json",
    };
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    struct call call = { 0 };

    int r = call_object(&call, scratch, "PATCH", kind, name,
                        subresource == KUBE_STATUS ? "/status" : "", err);
    if (r < 0)
        return r;
    call_set_body(&call, CONTENT_TYPES[type], patch);
    return call_for_object(client, &call, arena, ret, err);
}

static void set_precondition(cJSON *options, const char *uid, const char *resource_version)
{
    if (!uid && !resource_version)
        return;
    cJSON *preconditions = json_set_object(options, "preconditions");
    json_set_string(preconditions, "uid", uid);
    json_set_string(preconditions, "resourceVersion", resource_version);
}

static cJSON *delete_options(struct arena *arena)
{
    cJSON *options = json_object(arena);

    json_set_string(options, "kind", "DeleteOptions");
    json_set_string(options, "apiVersion", "v1");
    return options;
}

/* grace_s < 0: that of the object. */
static int delete_object(struct kube_client *client, const struct kube_kind *kind,
                         const struct kube_name *name, const char *uid,
                         const char *resource_version, int grace_s, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    struct call call = { 0 };

    int r = call_object(&call, scratch, "DELETE", kind, name, "", err);
    if (r < 0)
        return r;

    cJSON *options = delete_options(scratch);
    json_set_string(options, "propagationPolicy", "Background");
    if (grace_s >= 0)
        json_set_int(options, "gracePeriodSeconds", grace_s);
    set_precondition(options, uid, resource_version);
    call_set_body(&call, "application/json", options);
    return call_for_object(client, &call, NULL, NULL, err);
}

int kube_delete(struct kube_client *client, const struct kube_kind *kind,
                const struct kube_name *name, const char *uid, const char *resource_version,
                struct error *err)
{
    return delete_object(client, kind, name, uid, resource_version, -1, err);
}

int kube_delete_pod(struct kube_client *client, const struct kube_name *name, const char *uid,
                    unsigned grace_s, struct error *err)
{
    return delete_object(client, &KIND_POD, name, uid, NULL, (int)grace_s, err);
}

int kube_evict(struct kube_client *client, const struct kube_name *name, const char *uid,
               int *ret_status, uint32_t *ret_retry_after_ms, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    struct call call = { 0 };
    struct http_response response;
    struct error refusal;

    int r = call_object(&call, scratch, "POST", &KIND_POD, name, "/eviction", err);
    if (r < 0)
        return r;

    cJSON *eviction = json_object(scratch), *metadata, *options;
    json_set_string(eviction, "apiVersion", "policy/v1");
    json_set_string(eviction, "kind", "Eviction");
    metadata = json_set_object(eviction, "metadata");
    json_set_string(metadata, "name", name->name);
    json_set_string(metadata, "namespace", name->ns);
    options = json_set_object(eviction, "deleteOptions");
    set_precondition(options, uid, NULL);
    call_set_body(&call, "application/json", eviction);
    r = call_send(client, &call, &response, err);
    if (r < 0)
        return r;
    *ret_status = response.status;
    *ret_retry_after_ms = response.retry_after_ms;
    if (response.status > 299) {
        r = reply_error(call.subject, &response, false, &refusal);
        *ret_retry_after_ms = refusal.retry_after_ms;
        log_debug("eviction refused", "error", error_code_name((enum error_code) - r), NULL);
    }
    return 0;
}

static cJSON *token_request(struct arena *arena, uint32_t lifetime_s)
{
    cJSON *request = json_object(arena);

    json_set_string(request, "apiVersion", "authentication.k8s.io/v1");
    json_set_string(request, "kind", "TokenRequest");
    json_set_int(json_set_object(request, "spec"), "expirationSeconds", lifetime_s);
    return request;
}

int kube_request_token(struct kube_client *client, const struct kube_name *account,
                       uint32_t lifetime_s, char **ret, uint32_t *ret_lifetime_s, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct call call = { 0 };
    struct http_response response;
    const cJSON *reply = NULL;

    int r = call_object(&call, arena, "POST", &KIND_SERVICE_ACCOUNT, account, "/token", err);
    if (r < 0)
        return r;
    call.is_secret = true;
    call_set_body(&call, "application/json", token_request(arena, lifetime_s));
    r = call_make(client, &call, &response, err);
    if (r < 0)
        return r;

    if (json_parse(arena, response.body, response.body_len, &reply, NULL) < 0)
        return error_set(err, ERROR_INTERNAL, "%s: the reply is not JSON", call.subject);
    const char *token = json_string(json_path(reply, "status", "token", NULL), NULL);
    int64_t seconds = json_int(json_path(reply, "spec", "expirationSeconds", NULL), 0);
    if (str_is_empty(token) || seconds < 1 || seconds > UINT32_MAX)
        return error_set(err, ERROR_INTERNAL, "%s: the reply holds no token, or no lifetime",
                         call.subject);

    *ret = xstrdup(token);
    *ret_lifetime_s = (uint32_t)seconds;
    /* what the arena frees is not wiped */
    explicit_bzero((void *)(uintptr_t)token, strlen(token));
    explicit_bzero((void *)(uintptr_t)response.body, response.body_len);
    return 0;
}

int kube_get_text(struct kube_client *client, struct arena *arena, const char *path,
                  const char **ret, struct error *err)
{
    struct call call = {
        .arena = arena,
        .subject = arena_printf(arena, "GET %s", path),
        .request = { .method = "GET", .path = path, .accept = "*/*" },
    };
    struct http_response response;

    int r = call_make(client, &call, &response, err);
    if (r == 0 && response.status != 200)
        r = error_set(err, ERROR_INTERNAL, "%s: HTTP %d", call.subject, response.status);
    if (r == 0 && ret)
        *ret = response.body;
    return r;
}

/* The path of one page of at most so many objects; continue_token NULL: the first. */
static int call_page(struct call *call, struct arena *arena, const struct kube_kind *kind,
                     const struct kube_list_options *options, unsigned limit,
                     const char *continue_token, struct error *err)
{
    *call = (struct call){
        .arena = arena,
        .subject = str_is_empty(options->ns)
                       ? arena_printf(arena, "GET %s", kind->plural)
                       : arena_printf(arena, "GET %s in '%s'", kind->plural, options->ns),
        .request = { .method = "GET",
                     .accept = options->metadata_only ? "application/json;as="
                                                        "PartialObjectMetadataList;g=meta.k8s.io;"
                                                        "v=v1"
                                                      : NULL },
    };

    struct buf path = BUF_INIT(MAX_PATH);
    bool fits = kube_path_collection(&path, kind, options->ns) &&
                kube_path_query(&path, "limit", arena_printf(arena, "%u", limit));
    if (!str_is_empty(options->label_selector))
        fits = fits && kube_path_query(&path, "labelSelector", options->label_selector);
    if (!str_is_empty(options->field_selector))
        fits = fits && kube_path_query(&path, "fieldSelector", options->field_selector);
    if (continue_token)
        fits = fits && kube_path_query(&path, "continue", continue_token);
    return call_set_path(call, &path, fits, err);
}

int kube_list(struct kube_client *client, const struct kube_kind *kind,
              const struct kube_list_options *options, kube_item_fn *item, void *ctx,
              struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *token = NULL;
    unsigned limit = PAGE_SIZE;

    for (unsigned pages = 0; pages < MAX_PAGES; pages++) {
        CLEANUP(arena_destroyp) struct arena *page_arena = arena_create();
        struct call call = { 0 };
        struct http_response response;
        const char *next = NULL;

        int r = call_page(&call, page_arena, kind, options, limit, token, err);
        if (r == 0)
            r = call_make(client, &call, &response, err);
        if (r == -ERROR_TOO_LARGE && limit > 1) {
            limit = limit > PAGE_DIVISOR ? limit / PAGE_DIVISOR : 1;
            continue;
        }
        if (r == 0)
            r = reply_items(page_arena, call.subject, &response, item, ctx, &next, err);
        if (r < 0 || !next)
            return r;
        token = arena_strdup(arena, next);
    }
    return error_set(err, ERROR_INTERNAL, "GET %s: the list does not end", kind->plural);
}
