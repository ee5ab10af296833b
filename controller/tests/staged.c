#include "controller/tests/staged.h"

#include "common/tests/suite.h"

struct informer *staged_cache(struct watch_loop *loop, const struct kube_kind *kind)
{
    struct informer *informer = NULL;

    for (size_t i = 0; MODULES[i]; i++) {
        const struct module_cache *cache = MODULES[i]->caches;

        for (; cache && cache->watch.kind; cache++) {
            if (cache->watch.kind != kind)
                continue;
            if (!informer)
                informer = informer_create(loop, &cache->watch);
            if (cache->add_indexes)
                cache->add_indexes(informer_store(informer));
        }
    }
    ck_assert_msg(informer, "no module keeps a %s", kind->kind);
    return informer;
}

static const struct staged *find(const struct staged *staged, size_t len,
                                 const struct kube_kind *kind)
{
    static const struct staged NOBODY = { .kind = NULL };

    for (size_t i = 0; kind && i < len; i++) {
        if (staged[i].kind == kind)
            return &staged[i];
    }
    return &NOBODY;
}

void staged_changed(const struct staged *staged, size_t len, const struct kube_kind *kind,
                    struct kube_object *old, struct kube_object *current)
{
    for (size_t i = 0; MODULES[i]; i++) {
        const struct staged *module = find(staged, len, MODULES[i]->kind);
        const struct module_source *source = MODULES[i]->sources;

        for (; module->self && source->kind; source++) {
            struct workqueue *queue =
                source->wakes ? find(staged, len, source->wakes)->queue : module->queue;
            if (source->kind == kind && queue)
                source->map(module->self, old, current, queue);
        }
    }
}
