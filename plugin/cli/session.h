/*
 * One run of a command: its flags, its connection to the API server, and how it ends.
 *
 * Main thread only; the connection is made when it is first needed.
 */
#pragma once

#include "common/kube/client.h"
#include "common/runtime/options.h"
#include "plugin/cli/output.h"

/* Exit statuses. */
enum {
    EXIT_DONE = 0,
    EXIT_NO = 1,      /* the answer is no: it failed, or there are findings */
    EXIT_BAD_USE = 2, /* the command line or a file that it names is wrong */
    EXIT_API = 3,     /* the API server refused or did not answer */
    EXIT_TIME_OUT = 124,
};

/* The flags of every command; the first member of the struct of each. */
struct common_flags {
    const char *kubeconfig, *context, *cluster, *user, *server, *token;
    const char *ns;
    bool all_namespaces;
    const char *as, *as_uid;
    struct str_list as_groups;
    bool insecure;
    int64_t request_timeout_ms;
    const char *output;
    bool no_headers;
};

#define COMMON(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct common_flags, member)
/* formats: those that the command has. */
#define COMMON_FLAGS COMMON_FLAGS_WITH(OUTPUT_FORMATS)
#define COMMON_FLAGS_WITH(formats)                                                                 \
    { COMMON("namespace", OPTION_STRING, ns), .letter = 'n', .value_name = "NAME",                 \
      .help = "namespace; default is that of the context" },                                       \
        { COMMON("all-namespaces", OPTION_BOOL, all_namespaces), .letter = 'A',                    \
          .help = "all namespaces, where a command lists objects" },                               \
        { COMMON("output", OPTION_CHOICE, output), .letter = 'o', .fallback = "table",             \
          .choices = (formats), .help = "format of the output" },                                  \
        { COMMON("no-headers", OPTION_BOOL, no_headers),                                           \
          .help = "tables without the first line" },                                               \
        { COMMON("kubeconfig", OPTION_STRING, kubeconfig), .value_name = "FILE",                   \
          .help = "kubeconfig; default is $KUBECONFIG, then ~/.kube/config" },                     \
        { COMMON("context", OPTION_STRING, context), .value_name = "NAME",                         \
          .help = "context of the kubeconfig" },                                                   \
        { COMMON("cluster", OPTION_STRING, cluster), .value_name = "NAME",                         \
          .help = "cluster of the kubeconfig" },                                                   \
        { COMMON("user", OPTION_STRING, user), .value_name = "NAME",                               \
          .help = "user of the kubeconfig" },                                                      \
        { COMMON("server", OPTION_STRING, server), .letter = 's', .value_name = "URL",             \
          .help = "address of the API server" },                                                   \
        { COMMON("token", OPTION_STRING, token), .secret = true, .help = "bearer token" },         \
        { COMMON("as", OPTION_STRING, as), .value_name = "USER", .help = "user to act as" },       \
        { COMMON("as-group", OPTION_STRINGS, as_groups), .value_name = "GROUP",                    \
          .help = "group to act as" },                                                             \
        { COMMON("as-uid", OPTION_STRING, as_uid), .value_name = "UID", .help = "uid to act as" }, \
        { COMMON("insecure-skip-tls-verify", OPTION_BOOL, insecure),                               \
          .help = "accept any certificate of the server" },                                        \
    {                                                                                              \
        COMMON("request-timeout", OPTION_DURATION, request_timeout_ms),                            \
            .fallback = "30s", .min = 1000, .max = 3600000, .help = "time-out of one request"      \
    }

struct command;
struct session_guard;
struct session {
    struct arena *arena; /* of the whole run */
    const struct command *command;
    const struct common_flags *flags;
    struct output output;
    struct kube_config *config; /* NULL: not connected yet */
    struct kube_client *client;
    const char *ns;              /* in effect; set by session_connect */
    bool has_asked;              /* a request was made */
    struct session_guard *guard; /* NULL: signals end the process, as always */
};

/* No request is made. ERROR_INVALID names what is wrong with the kubeconfig or the flags. */
int session_connect(struct session *session, struct error *err) MUST_CHECK;
void session_end(struct session *session);
/* The exit status of an error. */
int session_status(const struct session *session, const struct error *err);

/*
 * For commands that wait, or have something to do before they end. From now on SIGINT, SIGTERM and SIGHUP end what the
 * command does: requests fail with ERROR_CANCELED, session_sleep and follow return. So does the end of a time limit.
 * After session_connect; the second call does nothing. A thread of its own takes the signals.
 */
void session_guard(struct session *session);
/* The limit begins now and replaces an earlier one; 0: there is none. */
void session_set_limit(struct session *session, int64_t timeout_ms);
/* Returns the exit status that was asked for: 128 and the number of a signal, or EXIT_TIME_OUT; 0: none. */
int session_ended(const struct session *session);
/* A descriptor that can be read once session_ended is not 0. */
int session_ended_fd(const struct session *session);
/* Forgets the end and the limit, so that requests work again, until the next signal. A signal within the next second
 * repeats the one before it. */
void session_go_on(struct session *session);
/* Waits for ms, or until the end. Returns as session_ended. */
int session_sleep(struct session *session, int64_t ms);
