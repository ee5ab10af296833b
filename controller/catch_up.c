#include "controller/catch_up.h"

#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/kube/kinds.h"

struct catch_up {
    struct kube_client *client;
    struct store *tasks;
    const char *const *namespaces;
    size_t namespace_count;
    struct map *missing; /* uid -> version; NULL: not listed yet */
};

struct catch_up *catch_up_create(struct kube_client *client, struct store *tasks,
                                 const char *const *namespaces, size_t len)
{
    struct catch_up *catch_up = xcalloc(1, sizeof(*catch_up));

    catch_up->client = client;
    catch_up->tasks = tasks;
    catch_up->namespaces = namespaces;
    catch_up->namespace_count = len;
    return catch_up;
}

void catch_up_destroy(struct catch_up *catch_up)
{
    if (!catch_up)
        return;

    map_destroy(catch_up->missing);
    free(catch_up);
}

static int on_item(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    const char *uid = json_string(json_path(item, "metadata", "uid", NULL), "");
    const char *version = json_string(json_path(item, "metadata", "resourceVersion", NULL), "");

    map_set(ctx, uid, xstrdup(version));
    return 0;
}

static int list_all(struct catch_up *catch_up, struct map *missing, struct error *err)
{
    size_t count = catch_up->namespace_count ? catch_up->namespace_count : 1;

    for (size_t i = 0; i < count; i++) {
        const struct kube_list_options options = {
            .ns = catch_up->namespace_count ? catch_up->namespaces[i] : NULL,
            .metadata_only = true,
        };
        int r = kube_list(catch_up->client, &KIND_TASK, &options, on_item, missing, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The map may not change while it is walked, so what was seen is dropped by building what is left.
 */
static struct map *still_missing(struct catch_up *catch_up, struct map *missing)
{
    struct map *left = map_create(free);
    const char *uid;
    void *version;

    for (size_t i = 0; map_next(missing, &i, &uid, &version);) {
        if (!store_has_seen(catch_up->tasks, uid, version))
            map_set(left, uid, xstrdup(version));
    }
    map_destroy(missing);
    return left;
}

int catch_up_ready(void *self, struct error *err)
{
    struct catch_up *catch_up = self;

    if (!catch_up->missing) {
        struct map *missing = map_create(free);
        int r = list_all(catch_up, missing, err);
        if (r == -ERROR_CANCELED) {
            map_destroy(missing);
            return r;
        }
        if (r < 0) {
            log_warn("Tasks not listed, trying again", "error", err->message, NULL);
            map_destroy(missing);
            return 0;
        }
        catch_up->missing = missing;
    }
    catch_up->missing = still_missing(catch_up, catch_up->missing);
    return map_len(catch_up->missing) == 0;
}
