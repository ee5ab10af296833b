#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"
#include "controller/proplet/proplet.h"

/* The value of key in "a=b&c=d"; names of Kubernetes need no decoding. */
static const char *query_value(struct arena *arena, const char *query, const char *key)
{
    size_t key_len = strlen(key);

    for (const char *part = query; *part; part += strcspn(part, "&"), part += *part == '&') {
        if (!strncmp(part, key, key_len) && part[key_len] == '=') {
            const char *value = part + key_len + 1;
            return arena_strndup(arena, value, strcspn(value, "&"));
        }
    }
    return "";
}

/* What is known of one device. */
static void add_device(const struct proplet_deps *deps, struct arena *arena, const char *key,
                       cJSON *to)
{
    char text[RFC3339_LEN];
    struct fleet_device device;

    fleet_get(deps->fleet, arena, key, &device);
    json_set_bool(to, "alive", device.alive);
    json_set_string(to, "lastSeen",
                    device.last_seen_us ? rfc3339_format_micro(device.last_seen_us, text) : NULL);
    cJSON *history = json_set_array(to, "aliveHistory");
    for (size_t i = 0; i < device.history_len; i++)
        json_add_string(history, rfc3339_format_micro(device.history_us[i], text));
}

static void add_time(cJSON *to, const char *member, int64_t us)
{
    char text[RFC3339_LEN];

    if (us)
        json_set_string(to, member, rfc3339_format_micro(us, text));
}

/* The kept state, which is newer than the status. */
static void add_availability(const struct availability *is, cJSON *root)
{
    if (is->state == AVAILABILITY_UNSET)
        return;

    cJSON *to = json_set_object(root, "availability");
    json_set_string(to, "state", AVAILABILITY_STATE_NAMES[is->state]);
    json_set_string(to, "reason", reason_text(is->reason));
    if (is->in_window.set)
        json_set_bool(to, "inWindow", is->in_window.value);
    add_time(to, "since", is->since_us);
    add_time(to, "stopAt", availability_is_open(is) ? 0 : is->stop_us);
    add_time(to, "nextTransition", is->next_us);
}

struct page {
    const struct proplet_deps *deps;
    struct arena *arena;
    cJSON *root;
    bool indexed;
};

static void add_identity(void *ctx, const char *client_id, const char *identity)
{
    const struct page *page = ctx;

    if (!page->indexed) {
        add_device(page->deps, page->arena, identity, page->root);
        return;
    }
    const cJSON *devices = json_get(page->root, "devices");
    cJSON *device =
        json_add_object(devices ? (cJSON *)devices : json_set_array(page->root, "devices"));
    json_set_string(device, "clientId", client_id);
    add_device(page->deps, page->arena, identity, device);
}

int proplet_debug_page(void *ctx, struct arena *arena, const char *query, const char **ret_body)
{
    const struct proplet_deps *deps = ctx;
    struct kube_name name;
    char key[FLEET_KEY_LEN];

    *ret_body = "no such Proplet; ask for /debug/proplets?namespace=NAMESPACE&name=NAME\n";
    if (!kube_name_set(&name, query_value(arena, query, "namespace"),
                       query_value(arena, query, "name")))
        return 404;

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->proplets), &name);
    const cJSON *json = object ? kube_object_json(arena, object) : NULL;
    if (!json || !proplet_identity_of(json, NULL, key))
        return 404;

    struct placement_count tasks = placements_count(deps->placements, name.ns, name.name);
    struct page page = { .deps = deps,
                         .arena = arena,
                         .root = json_object(arena),
                         .indexed = json_bool(
                             json_path(json, "spec", "k8s", "indexedClientIds", NULL), false) };

    proplet_identities(json, add_identity, &page);
    const struct availability kept = availabilities_get(deps->availabilities, object->uid);
    const struct availability is = availability_reported(
        &kept, timeline_now_us(deps->timeline, NULL), clock_boot_ms(deps->clock));
    add_availability(&is, page.root);
    json_set_int(page.root, "taskCount", tasks.total);
    json_set_int(page.root, "activeTaskCount", tasks.active);
    *ret_body = json_text(arena, page.root, NULL);
    return 200;
}
