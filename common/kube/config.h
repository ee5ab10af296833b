/* The address of the API server and our identity: from a kubeconfig or from inside a pod. */
#pragma once

#include <stdbool.h>

#include "common/base/compiler.h"
#include "common/base/error.h"

/*
 * PEM is held in memory whatever the source, so that a bad file is reported at start, with its
 * name, and never later. A token file is read again at most once a second, as bound tokens rotate
 * within the hour; while it cannot be read, the last token goes on being used.
 */
struct kube_config;
struct clock;

/*
 * path: a kubeconfig, or NULL: $KUBECONFIG's first file if set, else in-cluster when
 * KUBERNETES_SERVICE_HOST is set, else ~/.kube/config. Understands certificate-authority(-data),
 * client-certificate/-key(-data), token, tokenFile, insecure-skip-tls-verify, tls-server-name,
 * proxy-url, context namespace. exec and auth-provider plug-ins, passwords and impersonation are
 * refused by name, and so are credentials that would leave the machine without TLS. ERROR_INVALID
 * messages name the file and the field, never the content of a secret.
 */
int kube_config_load(const char *path, struct kube_config **ret, struct error *err) MUST_CHECK;

/*
 * A person at a command line, as kubectl serves one. All files of $KUBECONFIG count, else ~/.kube/config; the first
 * file that has a context, cluster or user of a name wins, and files that do not exist are skipped. Only if there is
 * no file at all, in-cluster counts. exec plug-ins run (exec_credential.h), and other identities may be taken
 * (impersonation). The members replace what the files say; NULL, false and 0: nothing.
 */
struct kube_config_person {
    const char *context, *cluster, *user; /* names of entries */
    const char *server;
    const char *token;
    const char *ns;
    const char *as, *as_uid;
    const char *const *as_groups;
    size_t as_group_count;
    bool insecure; /* insecure-skip-tls-verify; authorities of the files do not count then */
};
struct kube_config_options {
    const char *path;                        /* as above */
    const char *service_account_dir;         /* NULL: where the kubelet mounts it */
    const struct clock *clock;               /* NULL: the system's; must outlive the config */
    const struct kube_config_person *person; /* NULL: for a server */
};
int kube_config_load_with(const struct kube_config_options *options, struct kube_config **ret,
                          struct error *err) MUST_CHECK;
/* Clients and watch loops call this API (borrowed) in place of a server: no connection, no credentials, no clock. */
struct kube_in_process;
struct kube_config *kube_config_create_in_process(const struct kube_in_process *api);
void kube_config_destroy(struct kube_config *config);
DEFINE_CLEANUP(struct kube_config *, kube_config_destroy)

/* "https://198.51.100.1:6443"; "in-process" without one */
const char *kube_config_server(const struct kube_config *config);
bool kube_config_is_local(const struct kube_config *config); /* that is this machine */
const char *
kube_config_namespace(const struct kube_config *config); /* of the context or pod; "default" */
const char *
kube_config_source(const struct kube_config *config); /* for messages: the file, or "in-cluster" */

/* For transport.c and watch_loop.c. PEM text or NULL. */
const char *kube_config_ca(const struct kube_config *config);
const char *kube_config_client_cert(const struct kube_config *config);
const char *kube_config_client_key(const struct kube_config *config);
const char *kube_config_tls_server_name(const struct kube_config *config);
const char *kube_config_proxy(const struct kube_config *config);
bool kube_config_insecure(const struct kube_config *config);
/* Header lines of every request ("Impersonate-User: eve"), *ret_len of them. */
char *const *kube_config_headers(const struct kube_config *config, size_t *ret_len);
/* NULL: there is a server. */
const struct kube_in_process *kube_config_in_process(const struct kube_config *config);
/* The bearer token of now, copied (NULL: none); any thread. The caller frees it. */
int kube_config_token(struct kube_config *config, char **ret, struct error *err) MUST_CHECK;
/* The API server did not accept this one: the next kube_config_token reads the file, whatever the
 * time. */
void kube_config_refuse_token(struct kube_config *config, const char *token);

/* Where bearer tokens come from if not from the configuration itself; functions are called on any
 * thread, by kube_config_token and kube_config_refuse_token, and may block for a request. */
struct kube_token_source {
    void *ctx;
    int (*get)(void *ctx, char **ret, struct error *err);
    void (*refuse)(void *ctx, const char *token);
};
/*
 * Another identity at the API server of base: its address, authorities and proxy, none of its
 * credentials. The memory of the source must outlive it. ERROR_INVALID: tokens would leave the
 * machine without TLS, or there is no server.
 */
int kube_config_create_as(const struct kube_config *base, const struct kube_token_source *source,
                          struct kube_config **ret, struct error *err) MUST_CHECK;
