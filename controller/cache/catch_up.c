#include "controller/cache/catch_up.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/map.h"

struct catch_up {
    struct kube_client *client;
    const struct kube_kind *kind;
    struct store *store;
    const char *const *namespaces;
    size_t namespace_count;
    const struct clock *clock;
    int64_t refused_ms; /* monotonic: since when a namespace may not be listed; 0: all may */
    bool is_done;
    struct map *missing; /* uid -> struct wanted; NULL: not listed yet, or done */
    size_t position;     /* in missing; what is before it was seen */
};

/* An object that the API server has. */
struct wanted {
    const char *ns; /* of the list that told it, borrowed; NULL: of all */
    char version[];
};

/* Where the items of a list go. */
struct listing {
    struct map *missing;
    const char *ns;
};

struct catch_up *catch_up_create(struct kube_client *client, const struct kube_kind *kind,
                                 struct store *store, const char *const *namespaces, size_t len,
                                 const struct clock *clock)
{
    struct catch_up *catch_up = xcalloc(1, sizeof(*catch_up));

    catch_up->client = client;
    catch_up->kind = kind;
    catch_up->store = store;
    catch_up->namespaces = namespaces;
    catch_up->namespace_count = len;
    catch_up->clock = clock;
    return catch_up;
}

void catch_up_destroy(void *self)
{
    struct catch_up *catch_up = self;

    if (!catch_up)
        return;

    map_destroy(catch_up->missing);
    free(catch_up);
}

static int on_item(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    const struct listing *listing = ctx;
    const char *uid = json_string(json_path(item, "metadata", "uid", NULL), "");
    const char *version = json_string(json_path(item, "metadata", "resourceVersion", NULL), "");
    size_t size = strlen(version) + 1;
    struct wanted *wanted = xmalloc(sizeof(*wanted) + size);

    wanted->ns = listing->ns;
    memcpy(wanted->version, version, size);
    map_set(listing->missing, uid, wanted);
    return 0;
}

static int list_namespace(struct catch_up *catch_up, const char *ns, struct map *missing,
                          struct error *err)
{
    struct listing listing = { .missing = missing, .ns = ns };
    const struct kube_list_options options = { .ns = ns, .metadata_only = true };
    int r = kube_list(catch_up->client, catch_up->kind, &options, on_item, &listing, err);

    return r < 0 && ns ? error_wrap(err, "namespace '%s'", ns) : r;
}

/* The neighbours of a namespace that may not be listed wait for a while only. */
static bool is_patient(struct catch_up *catch_up)
{
    int64_t now_ms = clock_monotonic_ms(catch_up->clock);

    if (!catch_up->refused_ms)
        catch_up->refused_ms = now_ms;
    return now_ms - catch_up->refused_ms < CATCH_UP_PATIENCE_MS;
}

static int list_all(struct catch_up *catch_up, struct map *missing, struct error *err)
{
    struct error refusal = { 0 };
    size_t refused = 0;

    if (!catch_up->namespace_count)
        return list_namespace(catch_up, NULL, missing, err);

    for (size_t i = 0; i < catch_up->namespace_count; i++) {
        int r = list_namespace(catch_up, catch_up->namespaces[i], missing, err);
        if (r < 0 && r != -ERROR_FORBIDDEN)
            return r;
        if (r < 0) {
            refused++;
            refusal = *err;
        }
    }
    if (!refused) {
        catch_up->refused_ms = 0;
        return 0;
    }
    if (refused == catch_up->namespace_count || is_patient(catch_up)) {
        *err = refusal;
        return -ERROR_FORBIDDEN;
    }
    log_warn("going on without a namespace that may not be listed", "kind", catch_up->kind->kind,
             "error", ERROR_TEXT(&refusal), NULL);
    return 0;
}

/* What was seen stays seen, so the walk goes on where it met the first that was not. */
static bool all_seen(struct catch_up *catch_up)
{
    size_t next = catch_up->position;
    const char *uid;
    void *value;

    while (map_next(catch_up->missing, &next, &uid, &value)) {
        const struct wanted *wanted = value;
        if (!store_has_seen(catch_up->store, wanted->ns, uid, wanted->version))
            return false;
        catch_up->position = next;
    }
    return true;
}

int catch_up_ready(void *self, struct error *err)
{
    struct catch_up *catch_up = self;

    if (!catch_up->is_done && !catch_up->missing) {
        struct map *missing = map_create(free);
        int r = list_all(catch_up, missing, err);
        if (r == -ERROR_CANCELED) {
            map_destroy(missing);
            return r;
        }
        if (r < 0) {
            log_warn("objects not listed, trying again", "kind", catch_up->kind->kind, "error",
                     ERROR_TEXT(err), NULL);
            map_destroy(missing);
            return 0;
        }
        catch_up->missing = missing;
    }
    if (!catch_up->is_done && all_seen(catch_up)) {
        catch_up->is_done = true;
        map_destroy(TAKE(catch_up->missing));
    }
    return catch_up->is_done;
}
