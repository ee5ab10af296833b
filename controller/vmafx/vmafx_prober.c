#include "controller/vmafx/vmafx_prober.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/runtime/thread.h"
#include "controller/vmafx/vmafx.h"

/* Bytes of the answer, which is dropped. */
#define MAX_ANSWER (64u << 10)

struct address {
    enum vmafx_probe answer;
};

struct vmafx_prober {
    struct vmafx_prober_options options;
    struct http_client_pool *pool;
    bool is_shared;          /* all namespaces have one address */
    struct workqueue *queue; /* of addresses, by the namespace that they stand for; "": all */
    pthread_t thread;
    pthread_mutex_t lock;  /* leaf: guards addresses */
    struct map *addresses; /* by that namespace */
};

struct vmafx_prober *vmafx_prober_create(const struct vmafx_prober_options *options)
{
    struct vmafx_prober *prober = xcalloc(1, sizeof(*prober));

    prober->options = *options;
    prober->pool = http_client_pool_create();
    prober->is_shared = !strstr(options->address, "{namespace}");
    prober->queue = workqueue_create("vmafxprobe", options->clock);
    prober->addresses = map_create(free);
    pthread_mutex_init(&prober->lock, NULL);
    return prober;
}

void vmafx_prober_destroy(struct vmafx_prober *prober)
{
    if (!prober)
        return;
    map_destroy(prober->addresses);
    workqueue_destroy(prober->queue);
    http_client_pool_destroy(prober->pool);
    pthread_mutex_destroy(&prober->lock);
    free(prober);
}

static struct object_list nodes_of(const struct vmafx_prober *prober, struct arena *arena,
                                   const struct kube_name *name)
{
    return store_list(prober->options.nodes, arena, *name->ns ? name->ns : NULL);
}

static void wake_nodes(const struct vmafx_prober *prober, struct arena *arena,
                       const struct kube_name *name)
{
    struct object_list nodes = nodes_of(prober, arena, name);

    for (size_t i = 0; i < nodes.len; i++)
        workqueue_add_object(prober->options.queue, nodes.items[i]);
}

static enum vmafx_probe ask(const struct vmafx_prober *prober, struct arena *arena,
                            const struct kube_name *name)
{
    const struct vmafx_prober_options *options = &prober->options;
    const struct http_client_request get = {
        .method = "GET",
        .url = arena_printf(arena, "%s/healthz",
                            vmafx_address(arena, options->address, name->ns, NULL)),
        .max_reply = MAX_ANSWER,
        .timeout_ms = VMAFX_TIMEOUT_MS,
        .is_direct = true,
        .ca_file = options->ca_file,
        .pool = prober->pool,
    };
    struct http_client_reply reply = { 0 };
    struct error err = { 0 };
    int r = http_client_send(arena, &get, &reply, &err);

    if (r < 0)
        log_debug("probe of a VMAFX controller failed", "error", ERROR_TEXT(&err), NULL);
    return r == 0 && reply.status == 200 ? VMAFX_PROBE_FINE : VMAFX_PROBE_FAILED;
}

/* Returns whether the answer is another one than before. */
static bool note_answer(struct vmafx_prober *prober, const struct kube_name *name,
                        enum vmafx_probe answer)
{
    pthread_mutex_lock(&prober->lock);
    struct address *address = map_get(prober->addresses, name->ns);
    bool changed = address->answer != answer;
    address->answer = answer;
    pthread_mutex_unlock(&prober->lock);
    return changed;
}

/* VmafxNodes that came since it was looked for them find no address then, and ask for it. */
static void forget(struct vmafx_prober *prober, struct arena *arena, const struct kube_name *name)
{
    pthread_mutex_lock(&prober->lock);
    (void)map_remove(prober->addresses, name->ns);
    pthread_mutex_unlock(&prober->lock);
    wake_nodes(prober, arena, name);
}

static void probe(struct vmafx_prober *prober, const struct kube_name *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (!nodes_of(prober, arena, name).len) {
        forget(prober, arena, name);
        return;
    }
    bool changed = note_answer(prober, name, ask(prober, arena, name));
    workqueue_add_after(prober->queue, name, VMAFX_PROBE_MS);
    if (changed)
        wake_nodes(prober, arena, name);
}

static void *run(void *ctx)
{
    struct vmafx_prober *prober = ctx;
    struct kube_name name;

    while (workqueue_get(prober->queue, &name)) {
        probe(prober, &name);
        workqueue_done(prober->queue, &name);
    }
    return NULL;
}

int vmafx_prober_start(void *self, struct error *err)
{
    struct vmafx_prober *prober = self;

    return thread_start(&prober->thread, "vmafxprobe", run, prober, err);
}

void vmafx_prober_stop(void *self)
{
    workqueue_shutdown(((struct vmafx_prober *)self)->queue);
}

void vmafx_prober_join(void *self)
{
    thread_join(((struct vmafx_prober *)self)->thread);
}

struct workqueue *vmafx_prober_queue(struct vmafx_prober *prober)
{
    return prober->queue;
}

enum vmafx_probe vmafx_prober_state(struct vmafx_prober *prober, const char *ns)
{
    struct kube_name name = { .name = "healthz" };

    if (!prober->is_shared)
        (void)kube_name_set(&name, ns, name.name);
    pthread_mutex_lock(&prober->lock);
    const struct address *address = map_get(prober->addresses, name.ns);
    enum vmafx_probe answer = address ? address->answer : VMAFX_PROBE_UNKNOWN;
    if (!address)
        map_set(prober->addresses, name.ns, xcalloc(1, sizeof(*address)));
    pthread_mutex_unlock(&prober->lock);
    if (!address)
        workqueue_add(prober->queue, &name);
    return answer;
}
