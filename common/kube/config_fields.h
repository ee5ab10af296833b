/* Inside of kube_config, for config.c and kubeconfig.c alone. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/kube/config.h"

#define CONFIG_MAX_FILE (1u << 20)
#define CONFIG_MAX_TOKEN (64u << 10)

/* Strings are owned; NULL: not given. */
struct kube_config {
    char *source;
    char *server;
    char *ns;
    char *ca;
    char *client_cert;
    char *client_key;
    char *tls_server_name;
    char *proxy;
    bool insecure;
    char **headers; /* of every request */
    size_t header_count;
    struct exec_credential *exec;             /* owned; NULL: there is none */
    const struct kube_in_process *in_process; /* NULL: there is a server */
    char *token_file;
    struct kube_token_source tokens; /* get NULL: token and token_file count */
    const struct clock *clock;

    pthread_mutex_t lock; /* of the members below */
    char *token;
    int64_t token_read_ms;
};

/* Fills config from kubeconfigs; of several the first that has an entry wins. person: as in kube_config_options. */
int kubeconfig_read(struct kube_config *config, const char *const *paths, size_t len,
                    const struct kube_config_person *person, struct error *err) MUST_CHECK;

/* Replaces what a pod says by what its person wants: there are no entries that could be named. */
int kubeconfig_take_wishes(struct kube_config *config, const struct kube_config_person *person,
                           struct error *err) MUST_CHECK;

/* A whole file; the message names it. */
int config_read_file(struct arena *arena, const char *path, size_t max, const char **ret,
                     size_t *ret_len, struct error *err) MUST_CHECK;
enum config_pem { CONFIG_PEM_CERTIFICATE, CONFIG_PEM_KEY };
/* subject names the text in messages: "file '/x/ca.crt'". */
int config_check_pem(const char *subject, enum config_pem what, const char *text, size_t len,
                     struct error *err) MUST_CHECK;
/* Reads config->token_file into config->token. Not locked: the caller's business. */
int config_read_token(struct kube_config *config, struct error *err) MUST_CHECK;
bool config_is_token(const char *text);
bool config_is_loopback(const char *server); /* its URL names this machine */
/* Returns whether the bytes that go to this server are safe from other readers. */
bool config_is_private(const char *server);
