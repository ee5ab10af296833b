#include "controller/federated/model_source.h"

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/net/http_client.h"

#define SCHEMES "'model://sha256:<digest>', 'configmap://', 's3://' or 'https://'"
#define FRAGMENT "#sha256:"

/* A reference in its parts. */
struct parts {
    const char *scheme; /* with "://" */
    const char *rest;   /* without the digest */
    const char *digest; /* NULL: none */
};

static const char *const SCHEME_NAMES[] = { "configmap://", "s3://", "https://" };

static bool is_digest(const char *text)
{
    return strlen(text) == SHA256_HEX_LEN - 1 &&
           strspn(text, "0123456789abcdef") == SHA256_HEX_LEN - 1;
}

static int split(struct arena *arena, const char *reference, struct parts *ret, struct error *err)
{
    const char *fragment = strchr(reference, '#');
    const char *scheme = NULL;

    for (size_t i = 0; i < ARRAY_LEN(SCHEME_NAMES); i++) {
        if (str_has_prefix(reference, SCHEME_NAMES[i]))
            scheme = SCHEME_NAMES[i];
    }
    if (!scheme)
        return error_set(err, ERROR_INVALID, "modelRef must begin with " SCHEMES);
    if (fragment &&
        (!str_has_prefix(fragment, FRAGMENT) || !is_digest(fragment + strlen(FRAGMENT))))
        return error_set(err, ERROR_INVALID,
                         "modelRef must end in '" FRAGMENT "' and 64 hexadecimal digits, or have "
                         "no '#'");
    if (!fragment && str_equal(scheme, "https://"))
        return error_set(err, ERROR_INVALID,
                         "modelRef of https must end in '" FRAGMENT "' and the digest");

    const char *rest = reference + strlen(scheme);
    size_t len = fragment ? (size_t)(fragment - rest) : strlen(rest);
    if (!len)
        return error_set(err, ERROR_INVALID, "modelRef names nothing");
    *ret = (struct parts){
        .scheme = scheme,
        .rest = arena_strndup(arena, rest, len),
        .digest = fragment ? fragment + strlen(FRAGMENT) : NULL,
    };
    return 0;
}

/* "name", "name/key" or "namespace/name/key". */
static int split_configmap(struct arena *arena, const char *ns, const char *rest,
                           struct kube_name *ret_name, const char **ret_key, struct error *err)
{
    char *first = arena_strdup(arena, rest);
    char *second = strchr(first, '/');
    char *third = second ? strchr(second + 1, '/') : NULL;

    if (second)
        *second++ = '\0';
    if (third)
        *third++ = '\0';
    if (third && !str_equal(first, ns))
        return error_set(err, ERROR_INVALID,
                         "ConfigMap of modelRef must be in the namespace of the job");
    *ret_key = third ? third : second;
    if (!kube_name_set(ret_name, ns, third ? second : first) ||
        !str_is_dns_subdomain(ret_name->name) || (*ret_key && strchr(*ret_key, '/')))
        return error_set(err, ERROR_INVALID,
                         "modelRef must be 'configmap://<name>' or 'configmap://<name>/<key>'");
    return 0;
}

/* The value of the key, or the only one there is. */
static int find_value(struct arena *arena, const cJSON *object, const char *key, const char **ret,
                      size_t *ret_len, struct error *err)
{
    const cJSON *data = json_get(object, "data"), *binary = json_get(object, "binaryData");
    const cJSON *text = json_get(data, key ? key : ""), *base64 = json_get(binary, key ? key : "");

    if (!key && json_len(data) + json_len(binary) == 1) {
        text = json_first(data);
        base64 = json_first(binary);
    }
    if (!text && !base64)
        return error_set(err, ERROR_INVALID, "ConfigMap of modelRef has %s",
                         key ? "not this key" : "not one key alone: name it");

    const char *value = json_string(text ? text : base64, "");
    *ret_len = strlen(value);
    *ret = text ? value : base64_decode(arena, value, *ret_len, ret_len);
    return *ret ? 0 : error_set(err, ERROR_INVALID, "ConfigMap of modelRef is not base64");
}

static int read_configmap(const struct model_source *source, struct arena *arena, const char *ns,
                          const char *rest, const char **ret, size_t *ret_len, struct error *err)
{
    cJSON *object = NULL;
    struct kube_name name;
    const char *key = NULL;
    int r = split_configmap(arena, ns, rest, &name, &key, err);

    if (r == 0)
        r = kube_get(source->client, arena, &KIND_CONFIGMAP, &name, &object, err);
    if (r < 0)
        return r;
    return find_value(arena, object, key, ret, ret_len, err);
}

static int read_s3(const struct model_source *source, struct arena *arena, const char *rest,
                   const char **ret, size_t *ret_len, struct error *err)
{
    const char *slash = strchr(rest, '/');

    if (!slash || !slash[1])
        return error_set(err, ERROR_INVALID, "modelRef must be 's3://<bucket>/<key>'");
    return model_store_s3_read(source->store, arena,
                               arena_strndup(arena, rest, (size_t)(slash - rest)), slash + 1, ret,
                               ret_len, err);
}

/* What can be different when tried again. */
static enum error_code code_of(int status)
{
    if (status == 404 || status == 410)
        return ERROR_NOT_FOUND;
    if (status == 401 || status == 403)
        return ERROR_FORBIDDEN;
    return status == 408 || status == 429 || status >= 500 ? ERROR_UNAVAILABLE : ERROR_INVALID;
}

static int read_https(const struct model_source *source, struct arena *arena, const char *rest,
                      const char **ret, size_t *ret_len, struct error *err)
{
    const struct http_client_request request = {
        .method = "GET",
        .url = arena_printf(arena, "https://%s", rest),
        .max_reply = model_store_max_bytes(source->store),
        .timeout_ms = MODEL_SOURCE_TIMEOUT_MS,
        .redirects = MODEL_SOURCE_MAX_REDIRECTS,
        .only_https = true,
        .ca_file = source->ca_file,
    };
    struct http_client_reply reply;
    int r = http_client_send(arena, &request, &reply, err);

    if (r < 0)
        return r;
    if (reply.status != 200)
        return error_set(err, code_of(reply.status), "server of modelRef answers with status %d",
                         reply.status);
    *ret = reply.body;
    *ret_len = reply.len;
    return 0;
}

static int read_parts(const struct model_source *source, struct arena *arena, const char *ns,
                      const struct parts *parts, const char **ret, size_t *ret_len,
                      struct error *err)
{
    if (str_equal(parts->scheme, "configmap://"))
        return read_configmap(source, arena, ns, parts->rest, ret, ret_len, err);
    if (str_equal(parts->scheme, "s3://"))
        return read_s3(source, arena, parts->rest, ret, ret_len, err);
    return read_https(source, arena, parts->rest, ret, ret_len, err);
}

static int read_bytes(const struct model_source *source, struct arena *arena, const char *ns,
                      const char *reference, const char **ret, size_t *ret_len, struct error *err)
{
    char hex[SHA256_HEX_LEN];
    struct parts parts;

    if (str_has_prefix(reference, "model://"))
        return model_store_find(source->store, arena, ns, reference, ret, ret_len, err);

    int r = split(arena, reference, &parts, err);
    if (r == 0)
        r = read_parts(source, arena, ns, &parts, ret, ret_len, err);
    if (r < 0)
        return r;
    if (parts.digest && !str_equal(sha256_hex(*ret, *ret_len, hex), parts.digest))
        /* its digest would tell of what may be nobody's business */
        return error_set(err, ERROR_INVALID, "modelRef has the digest '%s', its content another",
                         parts.digest);
    return 0;
}

int model_source_read(const struct model_source *source, struct arena *arena, const char *ns,
                      const char *reference, struct fl_model *ret, struct error *err)
{
    const char *bytes = NULL;
    size_t len = 0;
    int r = read_bytes(source, arena, ns, reference, &bytes, &len, err);

    if (r < 0)
        return r;

    struct fl_model model;
    r = fl_model_parse(arena, bytes, len, &model, err);
    if (r < 0)
        return error_wrap(err, "modelRef");
    if (model.bytes_len > model_store_max_bytes(source->store))
        return error_set(err, ERROR_TOO_LARGE, "model has %zu bytes, the %s store takes %zu",
                         model.bytes_len, source->store->type->name,
                         model_store_max_bytes(source->store));
    *ret = model;
    return 0;
}
