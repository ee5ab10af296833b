#include "common/kube/exec_credential.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/kube/config_fields.h"

#define GROUP "client.authentication.k8s.io/"
#define MAX_ARGUMENTS 256
/* A token that ends this soon is renewed before it is used. */
#define EARLY_US (10 * INT64_C(1000000))

struct exec_credential {
    char *subject;
    char *api_version;
    char *install_hint; /* NULL: none */
    char **arguments;   /* NULL-terminated; the first is the command */
    char **environment; /* likewise */
    bool may_ask;       /* standard input is passed on */
    char *certificate, *key;

    pthread_mutex_t lock; /* of the members below, and of running it */
    char *token;
    int64_t expires_us; /* 0: it does not say */
    bool is_refused;    /* the API server does not accept the token */
};

static int refuse(const struct exec_settings *settings, const char *field, const char *what,
                  struct error *err)
{
    return error_set(err, ERROR_INVALID, "%s: 'exec.%s' %s", settings->subject, field, what);
}

static int check_pem(const char *subject, const char *field, enum config_pem what, const char *pem,
                     struct error *err)
{
    struct error cause;

    if (config_check_pem("it", what, pem, strlen(pem), &cause) < 0)
        return error_set(err, ERROR_INVALID, "%s.%s: %s", subject, field, cause.message);
    return 0;
}

int exec_reply_parse(struct arena *arena, const char *text, size_t len, const char *api_version,
                     struct exec_reply *ret, struct error *err)
{
    const cJSON *json = NULL;
    struct error cause;

    *ret = (struct exec_reply){ .token = NULL };
    if (json_parse(arena, text, len, &json, &cause) < 0)
        return error_set(err, ERROR_INVALID, "its output is not JSON");
    if (!str_equal(json_string(json_get(json, "kind"), NULL), "ExecCredential"))
        return error_set(err, ERROR_INVALID, "its output is not an ExecCredential");
    if (!str_equal(json_string(json_get(json, "apiVersion"), NULL), api_version))
        return error_set(err, ERROR_INVALID, "its output is not of apiVersion %s", api_version);

    const cJSON *status = json_get(json, "status");
    const char *expires = json_string(json_get(status, "expirationTimestamp"), NULL);

    ret->token = json_string(json_get(status, "token"), NULL);
    ret->certificate = json_string(json_get(status, "clientCertificateData"), NULL);
    ret->key = json_string(json_get(status, "clientKeyData"), NULL);
    if (!ret->token && !ret->certificate)
        return error_set(err, ERROR_INVALID, "its output has neither a token nor a certificate");
    if (!ret->certificate != !ret->key)
        return error_set(err, ERROR_INVALID,
                         "its output has only one of clientCertificateData and clientKeyData");
    if (ret->token && !config_is_token(ret->token))
        return error_set(err, ERROR_INVALID, "status.token has characters that no token has");
    if (expires && !rfc3339_parse(expires, &ret->expires_us))
        return error_set(err, ERROR_INVALID, "status.expirationTimestamp is not RFC 3339");
    if (!ret->certificate)
        return 0;

    int r =
        check_pem("status", "clientCertificateData", CONFIG_PEM_CERTIFICATE, ret->certificate, err);
    return r < 0 ? r : check_pem("status", "clientKeyData", CONFIG_PEM_KEY, ret->key, err);
}

static void free_strings(char **strings)
{
    for (char **s = strings; s && *s; s++)
        free(*s);
    free(strings);
}

void exec_credential_destroy(struct exec_credential *credential)
{
    if (!credential)
        return;
    free(credential->subject);
    free(credential->api_version);
    free(credential->install_hint);
    free_strings(credential->arguments);
    free_strings(credential->environment);
    free(credential->certificate);
    free_secret(credential->key);
    free_secret(credential->token);
    pthread_mutex_destroy(&credential->lock);
    free(credential);
}
DEFINE_CLEANUP(struct exec_credential *, exec_credential_destroy)

/* A path with a slash begins at the kubeconfig; a plain name is searched for in $PATH. */
static char *resolve_command(struct arena *arena, const struct exec_settings *settings,
                             const char *command)
{
    if (command[0] == '/' || !strchr(command, '/'))
        return xstrdup(command);
    return xstrdup(arena_printf(arena, "%s/%s", settings->dir, command));
}

static int read_arguments(struct arena *arena, const struct exec_settings *settings,
                          struct exec_credential *credential, struct error *err)
{
    const char *command = json_string(json_get(settings->exec, "command"), NULL);
    const cJSON *args = json_get(settings->exec, "args");
    size_t len = 0;

    if (str_is_empty(command))
        return refuse(settings, "command", "is not set", err);
    if (json_len(args) > MAX_ARGUMENTS)
        return refuse(settings, "args", "has more than 256 values", err);

    credential->arguments = xcalloc(json_len(args) + 2, sizeof(char *));
    credential->arguments[len++] = resolve_command(arena, settings, command);
    json_for_each (arg, args) {
        if (!cJSON_IsString(arg))
            return refuse(settings, "args", "must be strings", err);
        credential->arguments[len++] = xstrdup(json_string(arg, ""));
    }
    return 0;
}

/* The document that the program finds in KUBERNETES_EXEC_INFO. */
static const char *exec_info(struct arena *arena, const struct exec_settings *settings,
                             const struct exec_credential *credential)
{
    static const char *const GIVEN[] = { "certificate-authority-data", "insecure-skip-tls-verify",
                                         "tls-server-name", "proxy-url" };
    cJSON *info = json_object(arena);

    json_set_string(info, "apiVersion", credential->api_version);
    json_set_string(info, "kind", "ExecCredential");
    cJSON *spec = json_set_object(info, "spec");
    json_set_bool(spec, "interactive", credential->may_ask);
    if (settings->cluster && json_bool(json_get(settings->exec, "provideClusterInfo"), false)) {
        cJSON *cluster = json_set_object(spec, "cluster");

        json_set_string(cluster, "server", settings->server);
        for (size_t i = 0; i < ARRAY_LEN(GIVEN); i++) {
            if (json_get(settings->cluster, GIVEN[i]))
                json_set_copy(cluster, GIVEN[i], json_get(settings->cluster, GIVEN[i]));
        }
    }
    return json_text(arena, info, NULL);
}

/* Whether the variable of this entry, "NAME=value", is in the list. */
static bool is_listed(char *const *list, size_t len, const char *entry)
{
    size_t name_len = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < len; i++) {
        if (strncmp(list[i], entry, name_len) == 0)
            return true;
    }
    return false;
}

/* Ours, and what the kubeconfig adds or replaces. */
static int read_environment(struct arena *arena, const struct exec_settings *settings,
                            struct exec_credential *credential, struct error *err)
{
    const cJSON *env = json_get(settings->exec, "env");
    size_t own = 0, len = 0;

    if (json_len(env) > MAX_ARGUMENTS)
        return refuse(settings, "env", "has more than 256 values", err);
    while (environ[own])
        own++;

    char **list = xcalloc(own + json_len(env) + 2, sizeof(char *));
    credential->environment = list;
    list[len++] = xstrdup(
        arena_printf(arena, "KUBERNETES_EXEC_INFO=%s", exec_info(arena, settings, credential)));
    json_for_each (entry, env) {
        const char *name = json_string(json_get(entry, "name"), NULL);
        const char *value = json_string(json_get(entry, "value"), NULL);

        if (str_is_empty(name) || strchr(name, '=') || !value)
            return refuse(settings, "env", "must have a name and a value each", err);
        list[len++] = xstrdup(arena_printf(arena, "%s=%s", name, value));
    }
    for (size_t i = 0, set = len; i < own; i++) {
        if (!is_listed(list, set, environ[i]))
            list[len++] = xstrdup(environ[i]);
    }
    return 0;
}

static int read_mode(const struct exec_settings *settings, struct exec_credential *credential,
                     struct error *err)
{
    const char *mode = json_string(json_get(settings->exec, "interactiveMode"), NULL);
    bool is_beta = str_equal(credential->api_version, GROUP "v1beta1");
    bool is_terminal = isatty(STDIN_FILENO);

    if (!mode && !is_beta)
        return refuse(settings, "interactiveMode", "must be Never, IfAvailable or Always", err);
    if (!mode || str_equal(mode, "IfAvailable"))
        credential->may_ask = is_terminal;
    else if (str_equal(mode, "Always"))
        credential->may_ask = true;
    else if (!str_equal(mode, "Never"))
        return refuse(settings, "interactiveMode", "must be Never, IfAvailable or Always", err);
    if (credential->may_ask && !is_terminal)
        return refuse(settings, "interactiveMode",
                      "is Always, but standard input is not a terminal", err);
    return 0;
}

static int read_settings(const struct exec_settings *settings, struct exec_credential *credential,
                         struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *version = json_string(json_get(settings->exec, "apiVersion"), "");
    const char *hint = json_string(json_get(settings->exec, "installHint"), NULL);

    if (!str_equal(version, GROUP "v1") && !str_equal(version, GROUP "v1beta1"))
        return refuse(settings, "apiVersion", "must be " GROUP "v1 or " GROUP "v1beta1", err);
    credential->api_version = xstrdup(version);
    credential->subject = xstrdup(settings->subject);
    credential->install_hint = str_is_empty(hint) ? NULL : xstrdup(hint);

    int r = read_mode(settings, credential, err);
    if (r == 0)
        r = read_arguments(arena, settings, credential, err);
    return r < 0 ? r : read_environment(arena, settings, credential, err);
}

static int fail(const struct exec_credential *credential, const char *what, struct error *err)
{
    return error_set(err, ERROR_INVALID, "%s: command '%s' of 'exec': %s%s%s", credential->subject,
                     credential->arguments[0], what, credential->install_hint ? ": " : "",
                     credential->install_hint ? credential->install_hint : "");
}

static int start(const struct exec_credential *credential, int output, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;

    /* Ctrl-C and a closed pipe end it, whatever this process does with signals */
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!credential->may_ask)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    int r = posix_spawnp(ret, credential->arguments[0], &actions, &attributes,
                         credential->arguments, credential->environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return r;
}

/* false: there was more than the buffer takes, or it cannot be read. */
static bool read_output(int fd, struct buf *buf)
{
    for (;;) {
        char chunk[4096];
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n > 0 && !buf_append(buf, chunk, (size_t)n))
            return false;
        if (n == 0 || (n < 0 && errno != EINTR))
            return n == 0;
    }
}

static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* With the lock, or before any other thread knows it. */
static int run(struct exec_credential *credential, struct arena *arena, struct exec_reply *ret,
               struct error *err)
{
    struct buf output = BUF_INIT(EXEC_MAX_OUTPUT);
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail(credential, strerrordesc_np(errno), err);
    int problem = start(credential, ends[1], &pid);
    (void)close(ends[1]);
    bool is_whole = !problem && read_output(ends[0], &output);
    (void)close(ends[0]); /* a program that prints more ends at that */
    int status = problem ? 0 : wait_for(pid);

    int r = 0;
    struct error cause;
    if (problem)
        r = fail(credential, strerrordesc_np(problem), err);
    else if (!is_whole)
        r = fail(credential, "it printed more than 1 MiB", err);
    else if (!WIFEXITED(status))
        r = fail(credential, "it was ended by a signal", err);
    else if (WEXITSTATUS(status))
        r = fail(credential, arena_printf(arena, "it ended with status %d", WEXITSTATUS(status)),
                 err);
    else if (exec_reply_parse(arena, buf_string(&output), output.len, credential->api_version, ret,
                              &cause) < 0)
        r = fail(credential, cause.message, err);
    if (output.data)
        explicit_bzero(output.data, output.len);
    buf_release(&output);
    return r;
}

static void take_token(struct exec_credential *credential, const struct exec_reply *reply)
{
    free_secret(credential->token);
    credential->token = reply->token ? xstrdup(reply->token) : NULL;
    credential->expires_us = reply->expires_us;
    credential->is_refused = false;
}

int exec_credential_create(const struct exec_settings *settings, struct exec_credential **ret,
                           struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(exec_credential_destroyp)
    struct exec_credential *credential = xcalloc(1, sizeof(*credential));
    struct exec_reply reply = { .token = NULL };

    pthread_mutex_init(&credential->lock, NULL);
    int r = read_settings(settings, credential, err);
    if (r == 0)
        r = run(credential, arena, &reply, err);
    if (r < 0)
        return r;

    take_token(credential, &reply);
    credential->certificate = reply.certificate ? xstrdup(reply.certificate) : NULL;
    credential->key = reply.key ? xstrdup(reply.key) : NULL;
    *ret = TAKE(credential);
    return 0;
}

const char *exec_credential_certificate(const struct exec_credential *credential)
{
    return credential->certificate;
}

const char *exec_credential_key(const struct exec_credential *credential)
{
    return credential->key;
}

static bool is_due(const struct exec_credential *credential)
{
    return credential->is_refused ||
           (credential->expires_us &&
            clock_wall_us(&CLOCK_SYSTEM) >= credential->expires_us - EARLY_US);
}

static int get_token(void *ctx, char **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct exec_credential *credential = ctx;
    struct exec_reply reply = { .token = NULL };
    int r = 0;

    pthread_mutex_lock(&credential->lock);
    if (is_due(credential)) {
        r = run(credential, arena, &reply, err);
        if (r == 0)
            take_token(credential, &reply);
    }
    if (r == 0)
        *ret = credential->token ? xstrdup(credential->token) : NULL;
    pthread_mutex_unlock(&credential->lock);
    return r;
}

static void refuse_token(void *ctx, const char *token)
{
    struct exec_credential *credential = ctx;

    pthread_mutex_lock(&credential->lock);
    if (credential->token && str_equal(credential->token, token))
        credential->is_refused = true;
    pthread_mutex_unlock(&credential->lock);
}

struct kube_token_source exec_credential_tokens(struct exec_credential *credential)
{
    return (struct kube_token_source){ credential, get_token, refuse_token };
}
