#include "common/kube/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/config_fields.h"
#include "common/kube/exec_credential.h"

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_REREAD_MS 1000

static int read_all(int fd, const char *path, struct buf *buf, struct error *err)
{
    for (;;) {
        char chunk[8192];
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return error_set(err, ERROR_INVALID, "file '%s': %s", path, strerrordesc_np(errno));
        if (n > 0 && !buf_append(buf, chunk, (size_t)n))
            return error_set(err, ERROR_INVALID, "file '%s' is larger than %zu bytes", path,
                             buf->max);
    }
}

int config_read_file(struct arena *arena, const char *path, size_t max, const char **ret,
                     size_t *ret_len, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERROR_INVALID, "file '%s': %s", path, strerrordesc_np(errno));

    struct buf buf = BUF_INIT(max);
    int r = read_all(fd, path, &buf, err);
    close(fd);
    if (r == 0) { /* bytes, which may hold a NUL */
        char *copy = arena_alloc(arena, buf.len + 1, 1);
        memcpy(copy, buf_string(&buf), buf.len);
        *ret = copy;
        *ret_len = buf.len;
    }
    buf_release(&buf);
    return r;
}

int config_check_pem(const char *subject, enum config_pem what, const char *text, size_t len,
                     struct error *err)
{
    static const struct {
        const char *begin, *end, *name;
    } MARKERS[] = {
        [CONFIG_PEM_CERTIFICATE] = { "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----",
                                     "certificate" },
        [CONFIG_PEM_KEY] = { "PRIVATE KEY-----", "-----END ", "private key" },
    };

    const char *begin = strstr(text, MARKERS[what].begin);
    if (strlen(text) != len || !strstr(text, "-----BEGIN ") || !begin ||
        !strstr(begin, MARKERS[what].end))
        return error_set(err, ERROR_INVALID, "%s is not a %s in PEM", subject, MARKERS[what].name);
    if (what == CONFIG_PEM_KEY && strstr(text, "ENCRYPTED")) /* libcurl would ask the terminal */
        return error_set(err, ERROR_INVALID,
                         "%s is a private key with a passphrase, which is not "
                         "supported",
                         subject);
    return 0;
}

bool config_is_token(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return *text != '\0';
}

int config_read_token(struct kube_config *config, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = "";
    size_t len = 0;
    int r = config_read_file(arena, config->token_file, CONFIG_MAX_TOKEN, &text, &len, err);
    if (r < 0)
        return r;

    size_t start = strspn(text, " \t\r\n");
    while (len > start && strchr(" \t\r\n", text[len - 1]))
        len--;
    char *token = xstrndup(text + start, len - start);
    if (strlen(token) != len - start || !config_is_token(token)) {
        free_secret(token);
        return error_set(err, ERROR_INVALID, "token file '%s' does not hold a token",
                         config->token_file);
    }
    free_secret(config->token);
    config->token = token;
    return 0;
}

static int in_cluster_server(struct kube_config *config, const char *host, struct error *err)
{
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    int64_t number;

    if (!str_to_int64(port ? port : "", &number) || number < 1 || number > 65535)
        return error_set(err, ERROR_INVALID, "KUBERNETES_SERVICE_PORT is not a port number");
    if (!host ||
        host[strspn(host, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.:-")])
        return error_set(err, ERROR_INVALID, "KUBERNETES_SERVICE_HOST is not a host");

    size_t size = strlen(host) + sizeof("https://[]:65535");
    config->server = xmalloc(size);
    (void)snprintf(config->server, size, strchr(host, ':') ? "https://[%s]:%d" : "https://%s:%d",
                   host, (int)number);
    return 0;
}

static int read_in_cluster(struct kube_config *config, const char *host, const char *dir,
                           struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *ca_file = arena_printf(arena, "%s/ca.crt", dir);
    const char *ns_file = arena_printf(arena, "%s/namespace", dir);
    const char *text = "";
    size_t len = 0;

    config->source = xstrdup("in-cluster");
    int r = in_cluster_server(config, host, err);
    if (r < 0)
        return r;

    r = config_read_file(arena, ca_file, CONFIG_MAX_FILE, &text, &len, err);
    if (r == 0)
        r = config_check_pem(arena_printf(arena, "file '%s'", ca_file), CONFIG_PEM_CERTIFICATE,
                             text, len, err);
    if (r < 0)
        return r;
    config->ca = xstrndup(text, len);

    if (config_read_file(arena, ns_file, CONFIG_MAX_FILE, &text, &len, NULL) == 0)
        config->ns = xstrndup(text, strcspn(text, " \t\r\n"));

    config->token_file = xstrdup(arena_printf(arena, "%s/token", dir));
    return config_read_token(config, err);
}

#define MAX_FILES 16

/* Which files to read; none: in-cluster. */
struct files {
    const char *paths[MAX_FILES];
    size_t len;
};

static int add_file(struct files *files, const char *path, bool may_lack, struct error *err)
{
    if (may_lack && access(path, F_OK) < 0)
        return 0;
    if (files->len == MAX_FILES)
        return error_set(err, ERROR_INVALID, "KUBECONFIG names more than %d files", MAX_FILES);
    files->paths[files->len++] = path;
    return 0;
}

/* A person's files may lack; of a server the first one counts. */
static int add_listed(struct arena *arena, struct files *files, const char *list, bool is_person,
                      struct error *err)
{
    int r = 0;

    for (list += strspn(list, ":"); r == 0 && *list && (is_person || !files->len);) {
        size_t len = strcspn(list, ":");

        r = add_file(files, arena_strndup(arena, list, len), is_person, err);
        list += len;
        list += strspn(list, ":");
    }
    return r;
}

static int choose_files(struct arena *arena, const struct kube_config_options *options,
                        struct files *ret, struct error *err)
{
    const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
    bool in_cluster = !str_is_empty(getenv("KUBERNETES_SERVICE_HOST"));
    const struct kube_config_person *person = options->person;

    if (options->path)
        return add_file(ret, options->path, false, err);
    if (list && list[strspn(list, ":")]) {
        int r = add_listed(arena, ret, list, person != NULL, err);
        if (r < 0 || ret->len)
            return r;
    } else if (in_cluster && !person) {
        return 0;
    } else if (!str_is_empty(home)) {
        int r = add_file(ret, arena_printf(arena, "%s/.kube/config", home), person != NULL, err);
        if (r < 0 || ret->len)
            return r;
    } else if (!person) {
        return error_set(err, ERROR_INVALID,
                         "no kubeconfig: none of KUBECONFIG, "
                         "KUBERNETES_SERVICE_HOST and HOME is set");
    }
    if (!in_cluster && !person->server)
        return error_set(err, ERROR_INVALID,
                         "no kubeconfig: no file of KUBECONFIG exists, nor ~/.kube/config "
                         "(--kubeconfig names one)");
    return 0;
}

int kube_config_load_with(const struct kube_config_options *options, struct kube_config **ret,
                          struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error unwanted;
    struct files files = { .len = 0 };

    if (!err)
        err = &unwanted;
    int r = choose_files(arena, options, &files, err);
    if (r < 0)
        return r;

    CLEANUP(kube_config_destroyp) struct kube_config *config = xcalloc(1, sizeof(*config));
    pthread_mutex_init(&config->lock, NULL);
    config->clock = options->clock ? options->clock : &CLOCK_SYSTEM;
    config->token_read_ms = clock_monotonic_ms(config->clock);

    if (files.len || (options->person && options->person->server)) {
        r = kubeconfig_read(config, files.paths, files.len, options->person, err);
        if (r < 0)
            return r;
    } else {
        const char *dir = options->service_account_dir;
        r = read_in_cluster(config, getenv("KUBERNETES_SERVICE_HOST"),
                            dir ? dir : SERVICE_ACCOUNT_DIR, err);
        if (r == 0 && options->person)
            r = kubeconfig_take_wishes(config, options->person, err);
        if (r < 0)
            return error_wrap(err, "in-cluster configuration");
    }

    if (str_is_empty(config->ns)) {
        free(config->ns);
        config->ns = xstrdup("default");
    }
    *ret = TAKE(config);
    return 0;
}

int kube_config_load(const char *path, struct kube_config **ret, struct error *err)
{
    return kube_config_load_with(&(struct kube_config_options){ .path = path }, ret, err);
}

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

int kube_config_create_as(const struct kube_config *base, const struct kube_token_source *source,
                          struct kube_config **ret, struct error *err)
{
    if (base->in_process)
        return error_set(err, ERROR_INVALID,
                         "the API of this process gives ServiceAccounts no tokens");
    if (!config_is_private(base->server))
        return error_set(err, ERROR_INVALID,
                         "the server of '%s' is not https, so that everybody on the way could "
                         "read the tokens",
                         base->source);

    struct kube_config *config = xcalloc(1, sizeof(*config));
    pthread_mutex_init(&config->lock, NULL);
    config->clock = base->clock;
    config->source = xstrdup(base->source);
    config->server = xstrdup(base->server);
    config->ns = xstrdup(base->ns);
    config->ca = copy(base->ca);
    config->tls_server_name = copy(base->tls_server_name);
    config->proxy = copy(base->proxy);
    config->insecure = base->insecure;
    config->tokens = *source;
    *ret = config;
    return 0;
}

struct kube_config *kube_config_create_in_process(const struct kube_in_process *api)
{
    struct kube_config *config = xcalloc(1, sizeof(*config));

    pthread_mutex_init(&config->lock, NULL);
    config->clock = &CLOCK_SYSTEM;
    config->source = xstrdup("in-process");
    config->server = xstrdup("in-process");
    config->ns = xstrdup("default");
    config->in_process = api;
    return config;
}

void kube_config_destroy(struct kube_config *config)
{
    if (!config)
        return;
    free(config->source);
    free(config->server);
    free(config->ns);
    free(config->ca);
    free(config->client_cert);
    free_secret(config->client_key);
    free(config->tls_server_name);
    free(config->proxy);
    free(config->token_file);
    free_secret(config->token);
    for (size_t i = 0; i < config->header_count; i++)
        free(config->headers[i]);
    free(config->headers);
    exec_credential_destroy(config->exec);
    pthread_mutex_destroy(&config->lock);
    free(config);
}

/* Called with the lock. */
static int renew_token(struct kube_config *config, struct error *err)
{
    bool refused = !config->token;
    int64_t now_ms = clock_monotonic_ms(config->clock);
    if (!refused && now_ms - config->token_read_ms < TOKEN_REREAD_MS)
        return 0;

    struct error cause;
    config->token_read_ms = now_ms;
    if (config_read_token(config, &cause) < 0 && refused)
        return error_set(err, ERROR_UNAVAILABLE, "%s", cause.message);
    return 0; /* an unreadable file is perhaps being replaced, and the last token good for a while
               */
}

int kube_config_token(struct kube_config *config, char **ret, struct error *err)
{
    if (config->tokens.get)
        return config->tokens.get(config->tokens.ctx, ret, err);

    pthread_mutex_lock(&config->lock);
    int r = config->token_file ? renew_token(config, err) : 0;
    if (r == 0)
        *ret = config->token ? xstrdup(config->token) : NULL;
    pthread_mutex_unlock(&config->lock);
    return r;
}

void kube_config_refuse_token(struct kube_config *config, const char *token)
{
    if (config->tokens.refuse) {
        config->tokens.refuse(config->tokens.ctx, token);
        return;
    }

    pthread_mutex_lock(&config->lock);
    if (config->token_file && str_equal(config->token, token)) {
        free_secret(config->token);
        config->token = NULL;
    }
    pthread_mutex_unlock(&config->lock);
}

const char *kube_config_server(const struct kube_config *config)
{
    return config->server;
}

const char *kube_config_namespace(const struct kube_config *config)
{
    return config->ns;
}

const char *kube_config_source(const struct kube_config *config)
{
    return config->source;
}

const char *kube_config_ca(const struct kube_config *config)
{
    return config->ca;
}

const char *kube_config_client_cert(const struct kube_config *config)
{
    return config->client_cert;
}

const char *kube_config_client_key(const struct kube_config *config)
{
    return config->client_key;
}

const char *kube_config_tls_server_name(const struct kube_config *config)
{
    return config->tls_server_name;
}

bool kube_config_is_local(const struct kube_config *config)
{
    return config_is_loopback(config->server);
}

const char *kube_config_proxy(const struct kube_config *config)
{
    return config->proxy;
}

bool kube_config_insecure(const struct kube_config *config)
{
    return config->insecure;
}

char *const *kube_config_headers(const struct kube_config *config, size_t *ret_len)
{
    *ret_len = config->header_count;
    return config->headers;
}

const struct kube_in_process *kube_config_in_process(const struct kube_config *config)
{
    return config->in_process;
}
