#include "controller/blobs/gone_scopes.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"

struct gone {
    struct gone *next;
    struct kube_name name;
    char *uid;
};

struct gone_scopes {
    struct model_store *store;
    const struct kube_kind *kind;
    pthread_mutex_t lock; /* leaf: guards what follows */
    struct gone *first;
    size_t len;
};

static void gone_free(struct gone *gone)
{
    free(gone->uid);
    free(gone);
}

struct gone_scopes *gone_scopes_create(struct model_store *store, const struct kube_kind *kind)
{
    if (store->type->is_owned)
        return NULL;

    struct gone_scopes *gone = xcalloc(1, sizeof(*gone));
    gone->store = store;
    gone->kind = kind;
    pthread_mutex_init(&gone->lock, NULL);
    return gone;
}

void gone_scopes_destroy(struct gone_scopes *gone)
{
    if (!gone)
        return;
    while (gone->first) {
        struct gone *next = gone->first->next;
        gone_free(gone->first);
        gone->first = next;
    }
    pthread_mutex_destroy(&gone->lock);
    free(gone);
}

static void add(struct gone_scopes *scopes, struct gone *gone)
{
    bool fits;

    pthread_mutex_lock(&scopes->lock);
    fits = scopes->len < GONE_SCOPES_MAX;
    if (fits) {
        gone->next = scopes->first;
        scopes->first = gone;
        scopes->len++;
    }
    pthread_mutex_unlock(&scopes->lock);
    if (fits)
        return;
    log_warn("too many deletions at once, its models stay in the model store", "uid", gone->uid,
             NULL);
    gone_free(gone);
}

/* NULL: none. */
static struct gone *take(struct gone_scopes *scopes, const struct kube_name *name)
{
    pthread_mutex_lock(&scopes->lock);
    struct gone **at = &scopes->first;
    while (*at && !kube_name_equal(&(*at)->name, name))
        at = &(*at)->next;
    struct gone *found = *at;
    if (found) {
        *at = found->next;
        scopes->len--;
    }
    pthread_mutex_unlock(&scopes->lock);
    return found;
}

int gone_scopes_forget(struct gone_scopes *gone, const struct kube_name *name, struct error *err)
{
    struct gone *scope;

    while (gone && (scope = take(gone, name))) {
        const struct model_scope left = { .kind = gone->kind,
                                          .owner = scope->name,
                                          .uid = scope->uid };
        int r = model_store_forget(gone->store, &left, err);
        if (r < 0) {
            log_warn("the models of a deleted object were not removed, trying again later", "name",
                     name->name, "uid", scope->uid, "error", ERROR_TEXT(err), NULL);
            add(gone, scope);
            return r;
        }
        gone_free(scope);
    }
    return 0;
}

void gone_scopes_note(struct gone_scopes *scopes, const struct kube_object *old,
                      const struct kube_object *current)
{
    if (!old || !scopes || (current && str_equal(current->uid, old->uid)))
        return;

    struct gone *gone = xcalloc(1, sizeof(*gone));
    gone->name = kube_object_name(old);
    gone->uid = xstrdup(old->uid);
    add(scopes, gone);
}
