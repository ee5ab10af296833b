#include "controller/process/debug_page.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"
#include "controller/shared/reconcilers.h"

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

int debug_proplets_page(void *ctx, struct arena *arena, const char *query, const char **ret_body)
{
    struct shared *shared = ctx;
    struct kube_name name;
    char key[FLEET_KEY_LEN];
    char text[RFC3339_LEN];

    *ret_body = "no such Proplet; ask for /debug/proplets?namespace=NAMESPACE&name=NAME\n";
    if (!kube_name_set(&name, query_value(arena, query, "namespace"),
                       query_value(arena, query, "name")))
        return 404;

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(shared->proplets), &name);
    if (!object || !proplet_identity_of(kube_object_json(arena, object), key))
        return 404;

    struct fleet_device device;
    fleet_get(shared->fleet, arena, key, &device);
    struct placement_count tasks = placements_count(shared->placements, name.ns, name.name);

    cJSON *page = json_object(arena);
    json_set_bool(page, "alive", device.alive);
    json_set_string(page, "lastSeen",
                    device.last_seen_us ? rfc3339_format_micro(device.last_seen_us, text) : NULL);
    cJSON *history = json_set_array(page, "aliveHistory");
    for (size_t i = 0; i < device.history_len; i++)
        json_add_string(history, rfc3339_format_micro(device.history_us[i], text));
    json_set_int(page, "taskCount", tasks.total);
    json_set_int(page, "activeTaskCount", tasks.active);
    *ret_body = json_text(arena, page, NULL);
    return 200;
}
