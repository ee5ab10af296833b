/* Names of objects as users write them, and reading them from the API server. Main thread only. */
#pragma once

#include "plugin/cli/session.h"

/* Sets of kinds, for what a command takes. */
enum {
    TAKES_TASK = 1,
    TAKES_PROPLET = 2,
    TAKES_JOB = 4,
    TAKES_FEDERATED = 8,
    TAKES_ROUND = 16,
    TAKES_ALL = 31,
};

struct object_ref {
    const struct kube_kind *kind;
    unsigned takes; /* the one of TAKES_ that it is */
    struct kube_name name;
};

/*
 * "task/add", or "add" where the command takes one kind. A kind may be written in singular, in plural or short, as for
 * kubectl. The namespace is the session's. ERROR_INVALID names the kinds that the command takes.
 */
int object_ref_parse(const struct session *session, unsigned takes, const char *text,
                     struct object_ref *ret, struct error *err) MUST_CHECK;
/* Connects, and reads the only argument of a command. */
int object_ref_only(struct session *session, unsigned takes, const struct str_list *arguments,
                    struct object_ref *ret, struct error *err) MUST_CHECK;
/* "task/add", in the arena. */
const char *object_ref_text(struct arena *arena, const struct object_ref *ref);
/* Row i of the kinds, for completion: its name in plural; NULL: there are no more. */
const char *object_kind_name(size_t i);

int object_get(struct session *session, const struct object_ref *ref, const cJSON **ret,
               struct error *err) MUST_CHECK;
/* object_ref_only and object_get. */
int object_open(struct session *session, unsigned takes, const struct str_list *arguments,
                struct object_ref *ret_ref, const cJSON **ret, struct error *err) MUST_CHECK;

/* All objects of the kind in the namespace (NULL: all), in an array of the session's arena, in the order of the server.
 * selector: labels; NULL: none. */
int object_list(struct session *session, const struct kube_kind *kind, const char *ns,
                const char *selector, const cJSON **ret, struct error *err) MUST_CHECK;
/* Calls take(ctx, object) for each of them, one at a time: nothing of them is kept. */
int object_each(struct session *session, const struct kube_kind *kind, const char *ns,
                kube_item_fn *take, void *ctx, struct error *err) MUST_CHECK;
/* Returns the namespace of the flags; NULL with --all-namespaces. */
const char *object_list_scope(const struct session *session);

/*
 * The results of a command on objects. A table is a line for each as it happens, "task/add suspended"; -o name is their
 * names. The other formats are a document with the rows "objects", {"object","namespace","result"}, which results_end
 * prints.
 */
struct results {
    struct session *session;
    cJSON *document, *rows;
};
struct results results_begin(struct session *session, const char *kind);
void results_add(const struct results *results, const struct object_ref *ref, const char *result);
void results_end(const struct results *results);

/* Merges a patch into the object. */
int object_merge(struct session *session, const struct object_ref *ref, const cJSON *patch,
                 struct error *err) MUST_CHECK;
/* The same for one field of its spec: true or false. */
int object_set_spec_bool(struct session *session, const struct object_ref *ref, const char *field,
                         bool value, struct error *err) MUST_CHECK;
