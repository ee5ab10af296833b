#include "controller/process/modules.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/cache/catch_up.h"
#include "controller/shared/options.h"

#define MAX_CACHES 32
#define MAX_EXTENSIONS 4

struct extension {
    const char *name;
    struct watch_loop *watches;
    const struct modules *modules;
};

struct cache {
    const struct extension *extension; /* NULL: of a module that is always on */
    const struct kube_kind *kind;
    struct informer *informer;
    const struct module_census *census; /* NULL: not counted */
    size_t *reported;                   /* its counts in the gauges */
};

struct open_module {
    const struct module *module;
    struct extension *extension; /* NULL: it is always on */
    void *self;
    struct controller *controller; /* NULL: it reconciles nothing */
    struct kube_client *client;    /* NULL: it has no name */
};

struct modules {
    struct extension extensions[MAX_EXTENSIONS];
    size_t extension_count;
    struct cache caches[MAX_CACHES];
    size_t cache_count;
    struct open_module items[MODULES_MAX]; /* those that are on, in the order of MODULES */
    size_t len;
    size_t created; /* the first ones of them */
};

static struct cache *find_cache(struct modules *modules, const struct kube_kind *kind)
{
    for (size_t i = 0; i < modules->cache_count; i++) {
        if (modules->caches[i].kind == kind)
            return &modules->caches[i];
    }
    return NULL;
}

static void take_census(struct cache *cache, const struct module_census *census)
{
    assert(!cache->census);
    cache->census = census;
    cache->reported = xcalloc(census->classes, sizeof(*cache->reported));
    store_count_classes(informer_store(cache->informer), census->class_of, census->classes);
    census->report(cache->reported);
}

static void report_counts(struct arena *arena, struct cache *cache)
{
    const struct module_census *census = cache->census;
    size_t *counts = arena_array(arena, size_t, census->classes);

    store_class_counts(informer_store(cache->informer), NULL, counts);
    if (memcmp(counts, cache->reported, census->classes * sizeof(*counts)) == 0)
        return;
    memcpy(cache->reported, counts, census->classes * sizeof(*counts));
    census->report(counts);
}

/* NULL: the module is no part of one. */
static struct extension *extension_of(struct modules *modules, const struct module *module,
                                      struct kube_config *config)
{
    struct extension *extension = modules->extensions;

    if (!module->extension)
        return NULL;
    for (; extension < modules->extensions + modules->extension_count; extension++) {
        if (str_equal(extension->name, module->extension))
            return extension;
    }
    assert(modules->extension_count < MAX_EXTENSIONS);
    modules->extension_count++;
    *extension = (struct extension){ .name = module->extension,
                                     .watches = watch_loop_create(config),
                                     .modules = modules };
    return extension;
}

static void add_cache(struct modules *modules, const struct module_cache *cache,
                      const struct str_list *namespaces, struct watch_loop *watches,
                      const struct extension *extension)
{
    struct cache *shared = find_cache(modules, cache->watch.kind);

    if (!shared) {
        assert(modules->cache_count < MAX_CACHES);
        shared = &modules->caches[modules->cache_count++];
        shared->kind = cache->watch.kind;
        shared->extension = extension;
        shared->informer = informer_create_in(extension ? extension->watches : watches,
                                              &cache->watch, namespaces->items, namespaces->len);
    }
    if (cache->add_indexes)
        cache->add_indexes(informer_store(shared->informer));
}

static int reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct open_module *item = self;

    return item->module->reconcile(item->self, rc, err);
}

/* index: in MODULES. */
static void add_module(struct modules *modules, const struct module_host *host, size_t index,
                       struct watch_loop *watches, const struct identities *identities)
{
    const struct module *module = MODULES[index];
    const struct module_cache *cache = module->caches;
    struct extension *extension = extension_of(modules, module, host->config);
    struct open_module *item = &modules->items[modules->len++];

    item->module = module;
    item->extension = extension;
    for (; cache && cache->watch.kind; cache++)
        add_cache(modules, cache, &host->settings->namespaces, watches, extension);
    if (module->census)
        take_census(find_cache(modules, module->kind), module->census);
    if (module->name)
        item->client = identities_client(identities, module->name);
    if (!module->reconcile)
        return;

    const struct controller_options options = { .name = module->name,
                                                .self = item,
                                                .reconcile = reconcile,
                                                .workers = host->settings->workers_of[index] };
    item->controller = controller_create(&options, item->client,
                                         identities_events(identities, module->name), host->clock);
}

struct modules *modules_create(const struct module_host *host, struct watch_loop *watches,
                               const struct identities *identities)
{
    struct modules *modules = xcalloc(1, sizeof(*modules));

    for (size_t i = 0; MODULES[i]; i++) {
        if (host->settings->is_on[i])
            add_module(modules, host, i, watches, identities);
    }
    return modules;
}

static int start_extension(void *self, struct error *err)
{
    return watch_loop_start(((const struct extension *)self)->watches, err);
}

static void join_extension(void *self)
{
    watch_loop_stop(((const struct extension *)self)->watches);
}

static int check_extension(void *ctx, char *why, size_t size)
{
    const struct extension *extension = ctx;
    const struct modules *modules = extension->modules;

    if (watch_loop_problem(extension->watches, why, size))
        return HEALTH_REMARK;
    for (size_t i = 0; i < modules->cache_count; i++) {
        if (modules->caches[i].extension == extension &&
            !informer_synced(modules->caches[i].informer)) {
            (void)snprintf(why, size, "first list not complete");
            return HEALTH_REMARK;
        }
    }
    return 1;
}

void modules_add_extensions(struct module_host *host)
{
    for (size_t i = 0; i < host->modules->extension_count; i++) {
        struct extension *extension = &host->modules->extensions[i];
        const struct runnable watches = { .name = extension->name,
                                          .group = RUN_CACHES,
                                          .self = extension,
                                          .start = start_extension,
                                          .join = join_extension };

        manager_add(host->manager, &watches);
        health_add_check(host->health, extension->name, check_extension, extension);
    }
}

void module_host_catch_up(struct module_host *host, const struct kube_kind *kind)
{
    const struct str_list *namespaces = &host->settings->namespaces;
    struct store *store = informer_store(module_host_informer(host, kind));
    const struct runnable catch_up = {
        .name = arena_printf(host->arena, "catch-up-%s", kind->plural),
        .group = RUN_CATCH_UP,
        .self = arena_own(host->arena,
                          catch_up_create(host->client, kind, store, namespaces->items,
                                          namespaces->len, host->clock),
                          catch_up_destroy),
        .ready = catch_up_ready,
    };

    manager_add(host->manager, &catch_up);
}

static void report_served(const struct open_module *item)
{
    char why[256];

    metric_set(item->module->served,
               check_extension(item->extension, why, sizeof(why)) == 1 ? 1 : 0, NULL);
}

void modules_report(struct modules *modules)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    for (size_t i = 0; i < modules->cache_count; i++) {
        if (modules->caches[i].census)
            report_counts(arena, &modules->caches[i]);
    }
    for (size_t i = 0; i < modules->len; i++) {
        if (modules->items[i].module->served)
            report_served(&modules->items[i]);
    }
}

/* NULL: no module reconciles this kind. */
static struct controller *find_controller(const struct modules *modules,
                                          const struct kube_kind *kind)
{
    for (size_t i = 0; i < modules->len; i++) {
        if (modules->items[i].module->kind == kind)
            return modules->items[i].controller;
    }
    return NULL;
}

static void watch_sources(struct modules *modules, const struct open_module *item)
{
    const struct module_source *source = item->module->sources;

    for (; source && source->kind; source++) {
        const struct controller_source watched = { .informer =
                                                       find_cache(modules, source->kind)->informer,
                                                   .map = source->map,
                                                   .self = item->self };

        controller_watch(source->wakes ? find_controller(modules, source->wakes) : item->controller,
                         &watched);
    }
}

int modules_open(struct module_host *host, struct error *err)
{
    struct modules *modules = host->modules;

    for (; modules->created < modules->len; modules->created++) {
        struct open_module *item = &modules->items[modules->created];
        int r = item->module->create ? item->module->create(host, &item->self, err) : 0;
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < modules->len; i++)
        watch_sources(modules, &modules->items[i]);
    return 0;
}

void modules_destroy(struct modules *modules)
{
    if (!modules)
        return;
    for (size_t i = 0; i < modules->len; i++)
        controller_destroy(modules->items[i].controller);
    while (modules->created) {
        const struct open_module *item = &modules->items[--modules->created];
        if (item->module->destroy)
            item->module->destroy(item->self);
    }
    for (size_t i = 0; i < modules->extension_count; i++)
        watch_loop_destroy(modules->extensions[i].watches);
    for (size_t i = 0; i < modules->cache_count; i++) {
        informer_destroy(modules->caches[i].informer);
        free(modules->caches[i].reported);
    }
    free(modules);
}

bool modules_all_caches(const struct modules *modules, bool (*is)(struct informer *informer))
{
    for (size_t i = 0; i < modules->cache_count; i++) {
        if (!modules->caches[i].extension && !is(modules->caches[i].informer))
            return false;
    }
    return true;
}

int modules_start(struct modules *modules, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < modules->len; i++) {
        if (modules->items[i].module->started_leading)
            modules->items[i].module->started_leading(modules->items[i].self);
    }
    for (size_t i = 0; i < modules->len && r == 0; i++) {
        if (modules->items[i].controller)
            r = controller_start(modules->items[i].controller, err);
    }
    return r;
}

static void each_controller(struct modules *modules, void (*function)(struct controller *))
{
    for (size_t i = 0; i < modules->len; i++) {
        if (modules->items[i].controller)
            function(modules->items[i].controller);
    }
}

void modules_stop(struct modules *modules)
{
    each_controller(modules, controller_stop);
}

void modules_join(struct modules *modules)
{
    each_controller(modules, controller_join);
}

static void last_turn(void *controller, const struct kube_name *name)
{
    controller_turn(controller, name);
}

void modules_hand_over(struct modules *modules)
{
    for (size_t i = 0; i < modules->len; i++) {
        const struct open_module *item = &modules->items[i];

        if (item->module->stopping)
            item->module->stopping(item->self, last_turn, item->controller);
    }
}

/* --- what modules ask the host for ------------------------------------------------------------ */

struct informer *module_host_informer(const struct module_host *host, const struct kube_kind *kind)
{
    const struct cache *cache = find_cache(host->modules, kind);

    assert(cache);
    return cache->informer;
}

struct workqueue *module_host_queue(const struct module_host *host, const struct kube_kind *kind)
{
    return controller_queue(find_controller(host->modules, kind));
}

static const struct open_module *find_module(const struct module_host *host,
                                             const struct module *module)
{
    const struct open_module *item = host->modules->items;

    while (item->module != module)
        item++;
    return item;
}

struct workqueue *module_host_own_queue(const struct module_host *host, const struct module *module)
{
    return controller_queue(find_module(host, module)->controller);
}

struct kube_client *module_host_client(const struct module_host *host, const struct module *module)
{
    return find_module(host, module)->client;
}

const void *module_host_flags(const struct module_host *host, const struct module *module)
{
    for (size_t i = 0; MODULES[i]; i++) {
        if (MODULES[i] == module)
            return host->settings->flags_of[i];
    }
    return NULL;
}

void *module_host_self(const struct module_host *host, const struct module *module)
{
    return find_module(host, module)->self;
}

bool module_host_is_leader(void *ctx)
{
    const struct module_host *host = ctx;

    return !host->elector || elector_is_leader(host->elector);
}

bool module_host_may_act(void *ctx)
{
    const struct module_host *host = ctx;

    return !host->elector || elector_may_act(host->elector);
}

bool module_host_leads(void *ctx)
{
    return module_host_is_leader(ctx) && module_host_may_act(ctx);
}
