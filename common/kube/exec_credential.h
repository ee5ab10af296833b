/*
 * An exec credential runs the program that a kubeconfig names for its user and gives what that
 * prints to the API server (client.authentication.k8s.io/v1 and v1beta1, KEP-541).
 *
 * Only a program that a person starts does this. Such a program may ask questions, which no one
 * answers at a server, and the identity of a server must not depend on it.
 */
#pragma once

#include "common/json/json.h"
#include "common/kube/config.h"

/* The settings of the kubeconfig; borrowed for the call of exec_credential_create. */
struct exec_settings {
    const char *subject;  /* "user 'u'": for messages */
    const cJSON *exec;    /* the member "exec" of the user */
    const char *dir;      /* a relative command with a slash begins here */
    const cJSON *cluster; /* for provideClusterInfo; NULL: it is not given */
    const char *server;   /* its address */
};

/*
 * Runs the program once. Its standard error is ours; its standard input too if it may ask
 * (interactiveMode) and that is a terminal. It has no time-out, since a person may have to log in.
 * Its output is at most EXEC_MAX_OUTPUT. ERROR_INVALID names the field of the kubeconfig, or what
 * the program did; no message quotes the output.
 */
#define EXEC_MAX_OUTPUT (1u << 20)
struct exec_credential;
int exec_credential_create(const struct exec_settings *settings, struct exec_credential **ret,
                           struct error *err) MUST_CHECK;
void exec_credential_destroy(struct exec_credential *credential);

/* The certificate and the key that the first run gave, in PEM; NULL: none. */
const char *exec_credential_certificate(const struct exec_credential *credential);
const char *exec_credential_key(const struct exec_credential *credential);
/* Runs the program again when its token has expired or was refused. Any thread. ctx: the credential. */
struct kube_token_source exec_credential_tokens(struct exec_credential *credential);

/* The output of such a program. Strings are in the arena; NULL: not there. */
struct exec_reply {
    const char *token;
    const char *certificate, *key;
    int64_t expires_us; /* wall clock; 0: never */
};
/* Reads the output of a program that was asked with this apiVersion. Pure. */
int exec_reply_parse(struct arena *arena, const char *text, size_t len, const char *api_version,
                     struct exec_reply *ret, struct error *err) MUST_CHECK;
