#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/kube/config_fields.h"
#include "common/kube/exec_credential.h"

struct document {
    const cJSON *json;
    const char *dir; /* of its file */
};

struct loader {
    struct arena *arena;
    struct kube_config *config;
    const struct kube_config_person *person; /* NULL: a server */
    const struct document *documents;
    size_t len;
    const char *dir;     /* relative paths start here: the folder of the file with the entry */
    const char *cluster; /* "cluster 'x'", "user 'x'": for messages */
    const char *user;
};

/* Acting as somebody else, or as nobody, because a field was ignored would be worse than not
 * starting. */
static const struct {
    const char *name;
    bool for_a_person; /* a person may have it */
} REFUSED_USER_FIELDS[] = {
    { "exec", true }, { "auth-provider", false }, { "username", false }, { "password", false },
    { "as", true },   { "as-uid", true },         { "as-groups", true }, { "as-user-extra", false },
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

/* A wish of the command line, if there is one, in place of the value of the file. */
static void replace(char **value, const char *wish)
{
    if (!wish)
        return;
    free(*value);
    *value = xstrdup(wish);
}

static int check_trust(const struct loader *loader, struct error *err)
{
    struct kube_config *config = loader->config;

    if (loader->person && loader->person->insecure) {
        config->insecure = true;
        free(config->ca);
        config->ca = NULL;
    }
    if (config->insecure && config->ca)
        return error_set(err, ERROR_INVALID,
                         "%s: 'certificate-authority' and 'insecure-skip-tls-verify' exclude each "
                         "other",
                         loader->cluster);
    return 0;
}

static int read_cluster(const struct loader *loader, const cJSON *cluster, struct error *err)
{
    static const char *const SERVER_SCHEMES[] = { "https://", "http://" };
    static const char *const PROXY_SCHEMES[] = { "http://", "https://", "socks5://" };
    struct kube_config *config = loader->config;
    const char *subject = loader->cluster;

    int r = copy_string(subject, cluster, "server", &config->server, err);
    if (r == 0 && loader->person)
        replace(&config->server, loader->person->server);
    if (r == 0 &&
        !(config->server && is_url(config->server, SERVER_SCHEMES, ARRAY_LEN(SERVER_SCHEMES))))
        r = error_set(err, ERROR_INVALID, "%s: 'server' must be http(s)://host[:port][/path]",
                      subject);
    if (r == 0)
        r = copy_pem(loader, subject, cluster, "certificate-authority", CONFIG_PEM_CERTIFICATE,
                     &config->ca, err);
    if (r == 0)
        r = get_bool(subject, cluster, "insecure-skip-tls-verify", &config->insecure, err);
    if (r == 0)
        r = check_trust(loader, err);
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

static int set_token(const struct loader *loader, const char *token, const char *field,
                     struct error *err)
{
    struct kube_config *config = loader->config;

    if (!config_is_token(token))
        return error_set(err, ERROR_INVALID,
                         "%s: %s has blanks or other characters that no token has", loader->user,
                         field);
    free_secret(config->token);
    free(config->token_file);
    config->token = xstrdup(token);
    config->token_file = NULL;
    return 0;
}

static int read_token(const struct loader *loader, const cJSON *user, struct error *err)
{
    struct kube_config *config = loader->config;
    const char *file = NULL, *token = NULL;
    int r = get_string(loader->user, user, "tokenFile", &file, err);
    if (r < 0)
        return r;

    if (file) { /* it wins over token, as with kubectl */
        config->token_file = xstrdup(resolve(loader, file));
        r = config_read_token(config, err);
        return r < 0 ? error_wrap(err, "%s: 'tokenFile'", loader->user) : 0;
    }

    r = get_string(loader->user, user, "token", &token, err);
    return r == 0 && token ? set_token(loader, token, "'token'", err) : r;
}

static int read_user(const struct loader *loader, const cJSON *user, struct error *err)
{
    struct kube_config *config = loader->config;

    for (size_t i = 0; i < ARRAY_LEN(REFUSED_USER_FIELDS); i++) {
        if (is_given(json_get(user, REFUSED_USER_FIELDS[i].name)) &&
            !(loader->person && REFUSED_USER_FIELDS[i].for_a_person))
            return error_set(err, ERROR_INVALID, "%s: '%s' is not supported", loader->user,
                             REFUSED_USER_FIELDS[i].name);
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
    if (r == 0 && loader->person && loader->person->token)
        return set_token(loader, loader->person->token, "--token", err);
    return r == 0 ? read_token(loader, user, err) : r;
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

/* Whether the list of a document has an entry of that name; *ret is its member `body`. */
static int look_up(const cJSON *json, const char *list, const char *body, const char *name,
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
        return 1;
    }
    return 0;
}

/* The member `body` of the first entry with that name. Relative paths start at its file from now on. */
static int find_entry(struct loader *loader, const char *list, const char *body, const char *name,
                      const cJSON **ret, struct error *err)
{
    for (size_t i = 0; i < loader->len; i++) {
        int r = look_up(loader->documents[i].json, list, body, name, ret, err);

        loader->dir = loader->documents[i].dir;
        if (r != 0)
            return r < 0 ? r : 0;
    }
    return error_set(err, ERROR_INVALID, "no %s '%s' in '%s'", body, name, list);
}

/* The name of the context in use; NULL: none is, and a person has named the server. */
static int find_context(const struct loader *loader, const char **ret, struct error *err)
{
    *ret = loader->person ? loader->person->context : NULL;
    for (size_t i = 0; i < loader->len && !*ret; i++) {
        int r = get_string("top level", loader->documents[i].json, "current-context", ret, err);
        if (r < 0)
            return r;
    }
    if (!*ret && !(loader->person && (loader->person->server || loader->person->cluster)))
        return error_set(err, ERROR_INVALID, "'current-context' is not set");
    return 0;
}

/* The parts of a context that the command line names. */
static void take_wishes(const struct loader *loader, const char **cluster, const char **user)
{
    const struct kube_config_person *person = loader->person;

    *cluster = person->cluster ? person->cluster : *cluster;
    *user = person->user ? person->user : *user;
    replace(&loader->config->ns, person->ns);
}

/* The context in use, checked; the names of its cluster and user (NULL: nobody). */
static int read_context(struct loader *loader, const char **ret_cluster, const char **ret_user,
                        struct error *err)
{
    const cJSON *context = NULL;
    const char *name = NULL;

    int r = find_context(loader, &name, err);
    if (r == 0 && name)
        r = find_entry(loader, "contexts", "context", name, &context, err);
    if (r < 0)
        return r;

    const char *subject = arena_printf(loader->arena, "context '%s'", name ? name : "");
    r = get_string(subject, context, "cluster", ret_cluster, err);
    if (r == 0)
        r = get_string(subject, context, "user", ret_user, err);
    if (r == 0)
        r = copy_string(subject, context, "namespace", &loader->config->ns, err);
    if (r < 0)
        return r;

    if (loader->person)
        take_wishes(loader, ret_cluster, ret_user);
    if (!*ret_cluster && !(loader->person && loader->person->server))
        return error_set(err, ERROR_INVALID, "%s: 'cluster' is not set", subject);
    if (loader->config->ns && !str_is_dns_label(loader->config->ns))
        return error_set(err, ERROR_INVALID, "%s: 'namespace' is not a namespace's name", subject);
    return 0;
}

static int add_header(struct kube_config *config, const char *name, const char *value,
                      struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (!value[strspn(value, " ")]) /* libcurl would send no header, and the person act as itself */
        return error_set(err, ERROR_INVALID, "%s: the name to act as is empty", name);
    for (const char *c = value; *c; c++) {
        if (*c < ' ' || *c > '~')
            return error_set(err, ERROR_INVALID, "%s: only printable ASCII may be sent", name);
    }
    config->headers = xrealloc(config->headers, (config->header_count + 1) * sizeof(char *));
    config->headers[config->header_count++] = xstrdup(arena_printf(arena, "%s: %s", name, value));
    return 0;
}

static int add_groups(const struct loader *loader, const cJSON *groups, struct error *err)
{
    const struct kube_config_person *person = loader->person;
    int r = 0;

    for (size_t i = 0; r == 0 && i < person->as_group_count; i++)
        r = add_header(loader->config, "Impersonate-Group", person->as_groups[i], err);
    if (person->as_group_count)
        return r;
    json_for_each (group, groups) {
        if (r == 0)
            r = add_header(loader->config, "Impersonate-Group", json_string(group, ""), err);
    }
    return r;
}

/* The identity that the user takes: as the command line says, else as the file says. */
static int read_impersonation(const struct loader *loader, const cJSON *user, struct error *err)
{
    const struct kube_config_person *person = loader->person;
    const cJSON *groups = json_get(user, "as-groups");
    const char *as = person->as, *uid = person->as_uid;

    int r = as ? 0 : get_string(loader->user, user, "as", &as, err);
    if (r == 0 && !uid)
        r = get_string(loader->user, user, "as-uid", &uid, err);
    if (r < 0)
        return r;
    if (!as)
        return uid || person->as_group_count || is_given(groups)
                   ? error_set(err, ERROR_INVALID,
                               "%s: groups or a uid without a user to act as (--as)", loader->user)
                   : 0;

    r = add_header(loader->config, "Impersonate-User", as, err);
    if (r == 0 && uid)
        r = add_header(loader->config, "Impersonate-Uid", uid, err);
    return r == 0 ? add_groups(loader, groups, err) : r;
}

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static int run_exec(const struct loader *loader, const cJSON *cluster, const cJSON *user,
                    struct error *err)
{
    struct kube_config *config = loader->config;
    const struct exec_settings settings = { .subject = loader->user,
                                            .exec = json_get(user, "exec"),
                                            .dir = loader->dir,
                                            .cluster = cluster,
                                            .server = config->server };

    if (!is_given(settings.exec) || config->token || config->token_file)
        return 0;
    if (!config_is_private(config->server))
        return error_set(err, ERROR_INVALID,
                         "%s: 'exec', but the 'server' of %s is not https, so that everybody on "
                         "the way could read its token",
                         loader->user, loader->cluster);

    int r = exec_credential_create(&settings, &config->exec, err);
    if (r < 0)
        return r;
    config->tokens = exec_credential_tokens(config->exec);
    if (exec_credential_certificate(config->exec)) {
        free(config->client_cert);
        free(config->client_key);
        config->client_cert = copy(exec_credential_certificate(config->exec));
        config->client_key = copy(exec_credential_key(config->exec));
    }
    return 0;
}

static int read_documents(struct loader *loader, struct error *err)
{
    const char *cluster_name = NULL, *user_name = NULL;
    const cJSON *cluster = NULL, *user = NULL;

    int r = read_context(loader, &cluster_name, &user_name, err);
    if (r == 0 && cluster_name)
        r = find_entry(loader, "clusters", "cluster", cluster_name, &cluster, err);
    if (r < 0)
        return r;

    loader->cluster = arena_printf(loader->arena, "cluster '%s'", cluster_name ? cluster_name : "");
    loader->user = arena_printf(loader->arena, "user '%s'", user_name ? user_name : "");
    r = read_cluster(loader, cluster, err);
    if (r == 0 && user_name)
        r = find_entry(loader, "users", "user", user_name, &user, err);
    if (r == 0)
        r = read_user(loader, user, err);
    if (r == 0)
        r = check_secrecy(loader, err);
    if (r == 0 && loader->person)
        r = run_exec(loader, cluster, user, err);
    if (r == 0 && loader->person)
        r = read_impersonation(loader, user, err);
    return r;
}

static int read_file(struct arena *arena, const char *path, struct document *ret, struct error *err)
{
    const char *text = NULL, *slash = strrchr(path, '/');
    size_t len = 0;

    int r = config_read_file(arena, path, CONFIG_MAX_FILE, &text, &len, err);
    if (r < 0)
        return error_wrap(err, "kubeconfig");
    ret->dir = slash ? arena_strndup(arena, path, (size_t)(slash - path)) : ".";
    if (!text[strspn(text, " \t\r\n")]) { /* as `touch` makes it: for kubectl it says nothing */
        ret->json = json_object(arena);
        return 0;
    }
    r = yaml_parse(arena, text, len, &ret->json, err);
    if (r < 0) {
        error_wrap(err, "not YAML");
        return error_wrap(err, "kubeconfig '%s'", path);
    }
    return 0;
}

int kubeconfig_read(struct kube_config *config, const char *const *paths, size_t len,
                    const struct kube_config_person *person, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct document *documents = arena_array(arena, struct document, len + 1);
    const char *source = len ? paths[0] : "";
    struct loader loader = { .arena = arena,
                             .config = config,
                             .person = person,
                             .documents = documents,
                             .len = len,
                             .dir = "." };

    for (size_t i = 1; i < len; i++)
        source = arena_printf(arena, "%s:%s", source, paths[i]);
    config->source = xstrdup(source);
    for (size_t i = 0; i < len; i++) {
        int r = read_file(arena, paths[i], &documents[i], err);
        if (r < 0)
            return r;
    }

    int r = read_documents(&loader, err);
    return r < 0 ? error_wrap(err, "kubeconfig '%s'", source) : 0;
}

int kubeconfig_take_wishes(struct kube_config *config, const struct kube_config_person *person,
                           struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct loader loader = {
        .arena = arena,
        .config = config,
        .person = person,
        .cluster = config->source,
        .user = config->source,
    };

    if (person->context || person->cluster || person->user)
        return error_set(err, ERROR_INVALID,
                         "--context, --cluster and --user: there is no kubeconfig, and the "
                         "ServiceAccount of the pod is used");
    replace(&config->ns, person->ns);
    if (person->ns && !str_is_dns_label(person->ns))
        return error_set(err, ERROR_INVALID, "--namespace is not a namespace's name");
    int r = check_trust(&loader, err);
    if (r == 0 && person->token)
        r = set_token(&loader, person->token, "--token", err);
    return r == 0 ? read_impersonation(&loader, NULL, err) : r;
}
