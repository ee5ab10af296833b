#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/net/http_client.h"
#include "controller/blobs/model_store.h"
#include "controller/blobs/s3.h"

/* Names of objects in one reply of a list: 1000, as S3 gives them, and as many pages as one owner could
 * have. */
#define MAX_LIST_REPLY ((size_t)4 << 20)
#define MAX_PAGES 1000
#define MAX_ERROR_REPLY ((size_t)64 << 10)
#define DEFAULT_TIMEOUT_MS 60000
#define DIGEST_PREFIX "sha256-"

struct s3 {
    struct model_store store;
    struct arena *arena; /* of the options */
    struct model_s3_options options;
};

static int read_credentials(const struct s3 *self, struct arena *arena,
                            struct http_client_signature *ret, struct error *err)
{
    struct model_s3_options options = self->options;
    const char *file = options.credentials_file;

    if (file) {
        options.session_token = NULL; /* the next ones may have none */
        int r = model_s3_credentials_read(arena, file, &options, err);
        if (r < 0)
            return error_set(err, ERROR_UNAVAILABLE, "%s", arena_strdup(arena, err->message));
    }
    *ret = (struct http_client_signature){
        .region = options.region,
        .service = "s3",
        .access_key = options.access_key,
        .secret_key = options.secret_key,
        .session_token = options.session_token,
    };
    return 0;
}

static int s3_request(struct s3 *self, struct arena *arena, const char *method, const char *key,
                      const char *query, struct http_client_request request,
                      struct http_client_reply *ret, struct error *err)
{
    bool writes = !str_equal(method, "GET");
    struct http_client_signature signature;

    if (writes && self->options.may_write && !self->options.may_write(self->options.ctx))
        return error_set(err, ERROR_CANCELED, "not the leader any more");
    int r = read_credentials(self, arena, &signature, err);
    if (r < 0)
        return r;
    request.method = method;
    request.url = arena_printf(arena, "%s/%s%s%s%s%s", self->options.endpoint, self->options.bucket,
                               *key ? "/" : "", s3_encode(arena, key, true), query ? "?" : "",
                               query ? query : "");
    request.ca_file = self->options.ca_file;
    request.timeout_ms = self->options.timeout_ms;
    request.signature = &signature;

    r = http_client_send(arena, &request, ret, err);
    if (r < 0 || ret->status / 100 == 2)
        return r;
    return s3_error(arena, method, ret->status, ret->body, err);
}

static const char *folder_of(struct arena *arena, const struct model_scope *scope)
{
    return arena_printf(arena, MODEL_S3_PREFIX "%s/%s/", scope->owner.ns, scope->uid);
}

static int write_key(struct s3 *self, const char *key, const char *bytes, size_t len,
                     struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct http_client_request request = {
        .body = bytes,
        .body_len = len,
        .max_reply = MAX_ERROR_REPLY,
    };
    struct http_client_reply reply;

    return s3_request(self, arena, "PUT", key, NULL, request, &reply, err);
}

static int put(struct model_store *store, const struct model_scope *scope, const char *digest,
               const char *bytes, size_t len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *key = arena_printf(arena, "%s" DIGEST_PREFIX "%s", folder_of(arena, scope), digest);

    return write_key((struct s3 *)store, key, bytes, len, err);
}

static int read_key(struct s3 *self, struct arena *arena, const char *key, const char **ret,
                    size_t *ret_len, struct error *err)
{
    const struct http_client_request request = { .max_reply = MODEL_S3_MAX };
    struct http_client_reply reply;
    int r = s3_request(self, arena, "GET", key, NULL, request, &reply, err);

    if (r < 0)
        return r;
    *ret = reply.body;
    *ret_len = reply.len;
    return 0;
}

static int get(struct model_store *store, struct arena *arena, const struct model_scope *scope,
               const char *digest, const char **ret, size_t *ret_len, struct error *err)
{
    const char *key = arena_printf(arena, "%s" DIGEST_PREFIX "%s", folder_of(arena, scope), digest);

    return read_key((struct s3 *)store, arena, key, ret, ret_len, err);
}

/* Told of every object below a prefix; < 0 ends the list with that error, 1 without one. */
typedef int key_fn(void *ctx, const char *key, struct error *err);

/* *ret_last: the last key of the page; NULL: there is no other page. */
static int list_page(struct s3 *self, struct arena *arena, const char *prefix, const char *after,
                     key_fn *function, void *ctx, const char **ret_last, struct error *err)
{
    const char *query =
        arena_printf(arena, "list-type=2&prefix=%s%s%s", s3_encode(arena, prefix, false),
                     after ? "&start-after=" : "", after ? s3_encode(arena, after, false) : "");
    const struct http_client_request request = { .max_reply = MAX_LIST_REPLY };
    struct http_client_reply reply;
    const char *last = NULL;
    int r = s3_request(self, arena, "GET", "", query, request, &reply, err);

    if (r < 0)
        return r;

    const char *at = reply.body;
    for (const char *key; r == 0 && (key = s3_element(arena, &at, "Key"));) {
        last = key;
        if (str_has_prefix(key, prefix)) /* whatever a server thinks of prefixes */
            r = function(ctx, key, err);
    }
    at = reply.body;
    bool more = str_equal(s3_element(arena, &at, "IsTruncated"), "true");
    *ret_last = r == 0 && more ? last : NULL;
    return r < 0 ? r : 0;
}

static int list(struct s3 *self, const char *prefix, key_fn *function, void *ctx, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *after = NULL;

    for (int page = 0; page < MAX_PAGES; page++) {
        int r = list_page(self, arena, prefix, after, function, ctx, &after, err);

        if (r < 0 || !after)
            return r;
    }
    return error_set(err, ERROR_INTERNAL, "list of bucket '%s' does not end", self->options.bucket);
}

struct search {
    struct arena *arena;
    const char *suffix;
    const char *found;
};

static int look_at(void *ctx, const char *key, struct error *err UNUSED)
{
    struct search *search = ctx;

    if (!str_has_suffix(key, search->suffix))
        return 0;
    search->found = arena_strdup(search->arena, key);
    return 1;
}

static int find(struct model_store *store, struct arena *arena, const char *ns, const char *digest,
                const char **ret, size_t *ret_len, struct error *err)
{
    struct s3 *self = (struct s3 *)store;
    struct search search = {
        .arena = arena,
        .suffix = arena_printf(arena, "/" DIGEST_PREFIX "%s", digest),
    };
    int r = list(self, arena_printf(arena, MODEL_S3_PREFIX "%s/", ns), look_at, &search, err);

    if (r < 0)
        return r;
    if (!search.found)
        return error_set(err, ERROR_NOT_FOUND, "bucket '%s' has none of namespace '%s'",
                         self->options.bucket, ns);
    return read_key(self, arena, search.found, ret, ret_len, err);
}

struct garbage {
    struct s3 *self;
    const char *const *keep;
    size_t keep_len;
    size_t prefix_len;
};

static int delete_unless_kept(void *ctx, const char *key, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct garbage *garbage = ctx;
    const char *name = key + garbage->prefix_len;
    const struct http_client_request request = { .max_reply = MAX_ERROR_REPLY };
    struct http_client_reply reply;

    if (str_has_prefix(name, DIGEST_PREFIX) &&
        model_is_kept(name + strlen(DIGEST_PREFIX), garbage->keep, garbage->keep_len))
        return 0;

    int r = s3_request(garbage->self, arena, "DELETE", key, NULL, request, &reply, err);
    return r == -ERROR_NOT_FOUND ? 0 : r;
}

static int gc(struct model_store *store, const struct model_scope *scope, const char *const *keep,
              size_t keep_len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct s3 *self = (struct s3 *)store;
    const char *folder = folder_of(arena, scope);
    struct garbage garbage = {
        .self = self, .keep = keep, .keep_len = keep_len, .prefix_len = strlen(folder)
    };

    return list(self, folder, delete_unless_kept, &garbage, err);
}

static void destroy(struct model_store *store)
{
    struct s3 *self = (struct s3 *)store;

    arena_destroy(self->arena);
    free(self);
}

static const struct model_store_type S3 = {
    .name = "s3",
    .max_bytes = MODEL_S3_MAX,
    .put = put,
    .get = get,
    .find = find,
    .gc = gc,
    .destroy = destroy,
};

static void copy_options(struct s3 *self, const struct model_s3_options *options)
{
    size_t len = strlen(options->endpoint);

    while (len && options->endpoint[len - 1] == '/')
        len--;
    self->options = (struct model_s3_options){
        .endpoint = arena_strndup(self->arena, options->endpoint, len),
        .region = arena_strdup(self->arena,
                               str_is_empty(options->region) ? "us-east-1" : options->region),
        .bucket = arena_strdup(self->arena, options->bucket),
        .access_key = arena_strdup(self->arena, options->access_key),
        .secret_key = arena_strdup(self->arena, options->secret_key),
        .session_token = arena_strdup(self->arena, options->session_token),
        .credentials_file = arena_strdup(self->arena, options->credentials_file),
        .ca_file = arena_strdup(self->arena, options->ca_file),
        .timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS,
        .may_write = options->may_write,
        .ctx = options->ctx,
    };
}

int model_store_s3_create(const struct model_s3_options *options, struct model_store **ret,
                          struct error *err)
{
    int r = s3_options_check(options, err);
    if (r < 0)
        return r;

    struct s3 *self = xcalloc(1, sizeof(*self));
    self->store.type = &S3;
    self->arena = arena_create();
    copy_options(self, options);
    *ret = &self->store;
    return 0;
}

/* Servers, and those on the way to them, may take "a/../b" for "b": whatever is refused below would
 * be read after all. */
static bool is_plain_key(const char *key)
{
    for (const char *end = key; *end; key = end + 1) {
        end = key + strcspn(key, "/");
        size_t len = (size_t)(end - key);
        if (!len || (len <= 2 && strspn(key, ".") >= len))
            return false;
    }
    return true;
}

int model_store_s3_read(struct model_store *store, struct arena *arena, const char *bucket,
                        const char *key, const char **ret, size_t *ret_len, struct error *err)
{
    struct s3 *self = (struct s3 *)store;

    if (store->type != &S3)
        return error_set(err, ERROR_INVALID, "s3:// needs --model-store s3");
    if (!str_equal(bucket, self->options.bucket))
        return error_set(err, ERROR_INVALID, "bucket '%s' is not the one of --s3-bucket", bucket);
    if (!is_plain_key(key))
        return error_set(err, ERROR_INVALID,
                         "key of s3:// may have no empty part and none that is '.' or '..'");
    if (str_has_prefix(key, MODEL_S3_PREFIX))
        return error_set(err, ERROR_INVALID,
                         "keys below '" MODEL_S3_PREFIX "' are named by model:// only");
    return read_key(self, arena, key, ret, ret_len, err);
}

const char *model_store_s3_bucket(const struct model_store *store)
{
    return store->type == &S3 ? ((const struct s3 *)(const void *)store)->options.bucket : NULL;
}

int model_store_s3_write(struct model_store *store, const char *key, const char *bytes, size_t len,
                         struct error *err)
{
    if (!is_plain_key(key) || str_has_prefix(key, MODEL_S3_PREFIX))
        return error_set(err, ERROR_INVALID,
                         "key may have no empty part, no '.' or '..', and not begin "
                         "with '" MODEL_S3_PREFIX "'");
    return write_key((struct s3 *)store, key, bytes, len, err);
}
