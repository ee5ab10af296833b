#include <string.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/kube/config_fields.h"

struct loader {
    struct arena *arena;
    struct kube_config *config;
    const char *dir;     /* relative paths start here */
    const char *cluster; /* "cluster 'x'", "user 'x'": for messages */
    const char *user;
};

/* Acting as somebody else, or as nobody, because a field was ignored would be worse than not
 * starting. */
static const char *const REFUSED_USER_FIELDS[] = {
    "exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra",
};

static bool is_given(const cJSON *item)
{
    if (!item || cJSON_IsNull(item))
        return false;
    if (cJSON_IsString(item))
        return !str_is_empty(json_string(item, NULL));
    return (!cJSON_IsArray(item) && !cJSON_IsObject(item)) || json_len(item) > 0;
}

/* *ret is NULL where the field is absent or empty. */
static int get_string(const char *subject, const cJSON *object, const char *key, const char **ret,
                      struct error *err)
{
    const cJSON *item = json_get(object, key);
    const char *value = json_string(item, NULL);

    if (is_given(item) && !value)
        return error_set(err, ERROR_INVALID, "%s: '%s' must be a string", subject, key);
    *ret = str_is_empty(value) ? NULL : value;
    return 0;
}

static int copy_string(const char *subject, const cJSON *object, const char *key, char **ret,
                       struct error *err)
{
    const char *value = NULL;
    int r = get_string(subject, object, key, &value, err);
    if (r == 0 && value)
        *ret = xstrdup(value);
    return r;
}

static const char *resolve(const struct loader *loader, const char *path)
{
    return path[0] == '/' ? path : arena_printf(loader->arena, "%s/%s", loader->dir, path);
}

static int decode_data(struct arena *arena, const char *subject, const char *key, const char *data,
                       const char **ret, size_t *ret_len, struct error *err)
{
    size_t len = 0;
    char *compact = arena_strdup(arena, data);

    for (const char *c = data; *c; c++) { /* as Go, which ignores the line breaks of MIME */
        if (*c != '\n' && *c != '\r')
            compact[len++] = *c;
    }
    *ret = base64_decode(arena, compact, len, ret_len);
    if (!*ret)
        return error_set(err, ERROR_INVALID, "%s: '%s' is not base64", subject, key);
    return 0;
}

/* "<key>-data", or else the file that "<key>" names. */
static int copy_pem(const struct loader *loader, const char *subject, const cJSON *object,
                    const char *key, enum config_pem what, char **ret, struct error *err)
{
    const char *data_key = arena_printf(loader->arena, "%s-data", key);
    const char *data = NULL, *path = NULL, *pem = NULL;
    size_t len = 0;

    int r = get_string(subject, object, data_key, &data, err);
    if (r == 0)
        r = get_string(subject, object, key, &path, err);
    if (r < 0)
        return r;

    if (data) {
        r = decode_data(loader->arena, subject, data_key, data, &pem, &len, err);
        subject = arena_printf(loader->arena, "%s: '%s'", subject, data_key);
    } else if (path) {
        path = resolve(loader, path);
        r = config_read_file(loader->arena, path, CONFIG_MAX_FILE, &pem, &len, err);
        if (r < 0)
            return error_wrap(err, "%s: '%s'", subject, key);
        subject = arena_printf(loader->arena, "%s: '%s': file '%s'", subject, key, path);
    } else {
        return 0;
    }

    if (r == 0)
        r = config_check_pem(subject, what, pem, len, err);
    if (r == 0)
        *ret = xstrndup(pem, len);
    return r;
}

static int get_bool(const char *subject, const cJSON *object, const char *key, bool *ret,
                    struct error *err)
{
    const cJSON *item = json_get(object, key);

    if (is_given(item) && !cJSON_IsBool(item))
        return error_set(err, ERROR_INVALID, "%s: '%s' must be true or false", subject, key);
    *ret = json_bool(item, false);
    return 0;
}

/* scheme://host[:port][/path], and nothing that could hide a password or split a request. */
static bool is_url(const char *url, const char *const *schemes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!str_has_prefix(url, schemes[i]))
            continue;
        const char *rest = url + strlen(schemes[i]);
        for (const char *c = rest; *c; c++) {
            if (*c <= ' ' || *c > '~' || strchr("@?#\\\"<>", *c))
                return false;
        }
        return *rest && *rest != '/' && *rest != ':';
    }
    return false;
}

static int read_cluster(const struct loader *loader, const cJSON *cluster, struct error *err)
{
    static const char *const SERVER_SCHEMES[] = { "https://", "http://" };
    static const char *const PROXY_SCHEMES[] = { "http://", "https://", "socks5://" };
    struct kube_config *config = loader->config;
    const char *subject = loader->cluster;

    int r = copy_string(subject, cluster, "server", &config->server, err);
    if (r == 0 &&
        !(config->server && is_url(config->server, SERVER_SCHEMES, ARRAY_LEN(SERVER_SCHEMES))))
        r = error_set(err, ERROR_INVALID, "%s: 'server' must be http(s)://host[:port][/path]",
                      subject);
    if (r == 0)
        r = copy_pem(loader, subject, cluster, "certificate-authority", CONFIG_PEM_CERTIFICATE,
                     &config->ca, err);
    if (r == 0)
        r = get_bool(subject, cluster, "insecure-skip-tls-verify", &config->insecure, err);
    if (r == 0 && config->insecure && config->ca)
        r = error_set(err, ERROR_INVALID,
                      "%s: 'certificate-authority' and 'insecure-skip-tls-verify' exclude each "
                      "other",
                      subject);
    if (r == 0)
        r = copy_string(subject, cluster, "tls-server-name", &config->tls_server_name, err);
    if (r == 0)
        r = copy_string(subject, cluster, "proxy-url", &config->proxy, err);
    if (r == 0 && config->proxy && !is_url(config->proxy, PROXY_SCHEMES, ARRAY_LEN(PROXY_SCHEMES)))
        r = error_set(err, ERROR_INVALID,
                      "%s: 'proxy-url' must be http(s):// or socks5://host[:port], without a "
                      "password",
                      subject);
    return r;
}

static int read_token(const struct loader *loader, const cJSON *user, struct error *err)
{
    struct kube_config *config = loader->config;
    const char *file = NULL;
    int r = get_string(loader->user, user, "tokenFile", &file, err);
    if (r < 0)
        return r;

    if (file) { /* it wins over token, as with kubectl */
        config->token_file = xstrdup(resolve(loader, file));
        r = config_read_token(config, err);
        return r < 0 ? error_wrap(err, "%s: 'tokenFile'", loader->user) : 0;
    }

    r = copy_string(loader->user, user, "token", &config->token, err);
    if (r == 0 && config->token && !config_is_token(config->token))
        r = error_set(err, ERROR_INVALID,
                      "%s: 'token' has blanks or other characters that no "
                      "token has",
                      loader->user);
    return r;
}

static int read_user(const struct loader *loader, const cJSON *user, struct error *err)
{
    struct kube_config *config = loader->config;

    for (size_t i = 0; i < ARRAY_LEN(REFUSED_USER_FIELDS); i++) {
        if (is_given(json_get(user, REFUSED_USER_FIELDS[i])))
            return error_set(err, ERROR_INVALID, "%s: '%s' is not supported", loader->user,
                             REFUSED_USER_FIELDS[i]);
    }

    int r = copy_pem(loader, loader->user, user, "client-certificate", CONFIG_PEM_CERTIFICATE,
                     &config->client_cert, err);
    if (r == 0)
        r = copy_pem(loader, loader->user, user, "client-key", CONFIG_PEM_KEY, &config->client_key,
                     err);
    if (r == 0 && !config->client_cert != !config->client_key)
        r = error_set(err, ERROR_INVALID, "%s: '%s' without '%s'", loader->user,
                      config->client_cert ? "client-certificate" : "client-key",
                      config->client_cert ? "client-key" : "client-certificate");
    if (r == 0)
        r = read_token(loader, user, err);
    return r;
}

bool config_is_loopback(const char *server)
{
    static const char *const HOSTS[] = { "localhost", "127.0.0.1", "[::1]" };
    const char *host = strstr(server, "://") + 3;

    for (size_t i = 0; i < ARRAY_LEN(HOSTS); i++) {
        if (str_has_prefix(host, HOSTS[i]) && strchr(":/", host[strlen(HOSTS[i])]))
            return true; /* strchr finds the end, too */
    }
    return false;
}

bool config_is_private(const char *server)
{
    return str_has_prefix(server, "https://") || config_is_loopback(server);
}

static int check_secrecy(const struct loader *loader, struct error *err)
{
    const struct kube_config *config = loader->config;

    if (config->token && !config_is_private(config->server))
        return error_set(err, ERROR_INVALID,
                         "%s: a token, but the 'server' of %s is not https, so that everybody on "
                         "the way could read it",
                         loader->user, loader->cluster);
    return 0;
}

/* The member `body` of the entry with that name in a list of named entries. */
static int find_entry(const cJSON *json, const char *list, const char *body, const char *name,
                      const cJSON **ret, struct error *err)
{
    const cJSON *entries = json_get(json, list);

    if (is_given(entries) && !cJSON_IsArray(entries))
        return error_set(err, ERROR_INVALID, "'%s' must be a list", list);
    json_for_each (entry, entries) {
        if (!str_equal(json_string(json_get(entry, "name"), NULL), name))
            continue;
        *ret = json_get(entry, body);
        if (is_given(*ret) && !cJSON_IsObject(*ret))
            return error_set(err, ERROR_INVALID, "'%s' of %s '%s' must be an object", body, body,
                             name);
        return 0;
    }
    return error_set(err, ERROR_INVALID, "no %s '%s' in '%s'", body, name, list);
}

/* The context in use, checked; the names of its cluster and user (NULL: nobody). */
static int read_context(struct loader *loader, const cJSON *json, const char **ret_cluster,
                        const char **ret_user, struct error *err)
{
    const char *name = NULL;
    const cJSON *context = NULL;

    int r = get_string("top level", json, "current-context", &name, err);
    if (r < 0)
        return r;
    if (!name)
        return error_set(err, ERROR_INVALID, "'current-context' is not set");
    r = find_entry(json, "contexts", "context", name, &context, err);
    if (r < 0)
        return r;

    const char *subject = arena_printf(loader->arena, "context '%s'", name);
    r = get_string(subject, context, "cluster", ret_cluster, err);
    if (r == 0)
        r = get_string(subject, context, "user", ret_user, err);
    if (r == 0)
        r = copy_string(subject, context, "namespace", &loader->config->ns, err);
    if (r < 0)
        return r;
    if (!*ret_cluster)
        return error_set(err, ERROR_INVALID, "%s: 'cluster' is not set", subject);
    if (loader->config->ns && !str_is_dns_label(loader->config->ns))
        return error_set(err, ERROR_INVALID, "%s: 'namespace' is not a namespace's name", subject);
    return 0;
}

static int read_document(struct loader *loader, const cJSON *json, struct error *err)
{
    const char *cluster_name = NULL, *user_name = NULL;
    const cJSON *cluster = NULL, *user = NULL;

    int r = read_context(loader, json, &cluster_name, &user_name, err);
    if (r < 0)
        return r;
    r = find_entry(json, "clusters", "cluster", cluster_name, &cluster, err);
    if (r == 0 && user_name)
        r = find_entry(json, "users", "user", user_name, &user, err);
    if (r < 0)
        return r;

    loader->cluster = arena_printf(loader->arena, "cluster '%s'", cluster_name);
    loader->user = arena_printf(loader->arena, "user '%s'", user_name ? user_name : "");
    r = read_cluster(loader, cluster, err);
    if (r == 0)
        r = read_user(loader, user, err);
    if (r == 0)
        r = check_secrecy(loader, err);
    return r;
}

int kubeconfig_read(struct kube_config *config, const char *path, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = NULL, *slash = strrchr(path, '/');
    const cJSON *json = NULL;
    size_t len = 0;

    config->source = xstrdup(path);
    int r = config_read_file(arena, path, CONFIG_MAX_FILE, &text, &len, err);
    if (r < 0)
        return error_wrap(err, "kubeconfig");

    struct loader loader = {
        .arena = arena,
        .config = config,
        .dir = slash ? arena_strndup(arena, path, (size_t)(slash - path) + 1) : ".",
    };
    r = yaml_parse(arena, text, len, &json, err);
    if (r < 0)
        error_wrap(err, "not YAML");
    else
        r = read_document(&loader, json, err);
    return r < 0 ? error_wrap(err, "kubeconfig '%s'", path) : 0;
}
