#include "controller/machine/machine_discovery.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/kube/discovery.h"

struct kept {
    char *text;
    int64_t until_ms;
};

struct machine_discovery {
    const struct clock *clock;
    pthread_mutex_t lock; /* leaf: guards the map */
    struct map *map;      /* struct kept by apiVersion */
};

static void kept_free(void *value)
{
    struct kept *kept = value;

    free(kept->text);
    free(kept);
}

struct machine_discovery *machine_discovery_create(const struct clock *clock)
{
    struct machine_discovery *discovery = xcalloc(1, sizeof(*discovery));

    discovery->clock = clock;
    discovery->map = map_create(kept_free);
    pthread_mutex_init(&discovery->lock, NULL);
    return discovery;
}

void machine_discovery_destroy(struct machine_discovery *discovery)
{
    if (!discovery)
        return;
    map_destroy(discovery->map);
    pthread_mutex_destroy(&discovery->lock);
    free(discovery);
}

/* Otherwise a spec could name any path. */
static bool is_group_version(const char *text)
{
    const char *slash = strchr(text, '/');

    if (!slash || slash == text || !isalnum((unsigned char)slash[1]) || strchr(slash + 1, '/') ||
        !isalnum((unsigned char)*text))
        return false;
    for (const char *c = text; *c; c++) {
        if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-' && *c != '/')
            return false;
    }
    return true;
}

/* NULL: none is kept. */
static const char *look(struct machine_discovery *discovery, struct arena *arena,
                        const char *api_version)
{
    pthread_mutex_lock(&discovery->lock);
    const struct kept *kept = map_get(discovery->map, api_version);
    const char *text = kept && clock_monotonic_ms(discovery->clock) < kept->until_ms
                           ? arena_strdup(arena, kept->text)
                           : NULL;
    pthread_mutex_unlock(&discovery->lock);
    return text;
}

static void keep(struct machine_discovery *discovery, const char *api_version, const char *text)
{
    if (strlen(text) > MACHINE_DISCOVERY_MAX_TEXT)
        return;

    struct kept *kept = xcalloc(1, sizeof(*kept));
    kept->text = xstrdup(text);
    kept->until_ms = clock_monotonic_ms(discovery->clock) + MACHINE_DISCOVERY_KEPT_MS;
    pthread_mutex_lock(&discovery->lock);
    if (map_len(discovery->map) >= MACHINE_DISCOVERY_MAX) {
        map_destroy(discovery->map);
        discovery->map = map_create(kept_free);
    }
    map_set(discovery->map, api_version, kept);
    pthread_mutex_unlock(&discovery->lock);
}

static bool find(struct arena *arena, const char *text, const char *kind,
                 struct discovery_answer *ret)
{
    const cJSON *list;
    struct error err;

    return text && json_parse(arena, text, strlen(text), &list, &err) == 0 &&
           discovery_find(list, kind, ret);
}

static const struct kube_kind *make_kind(struct arena *arena, const char *api_version,
                                         const char *kind, const struct discovery_answer *answer)
{
    const char *slash = strchr(api_version, '/');
    struct kube_kind *ret = arena_new(arena, struct kube_kind);

    *ret = (struct kube_kind){
        .group = arena_strndup(arena, api_version, (size_t)(slash - api_version)),
        .version = arena_strdup(arena, slash + 1),
        .kind = arena_strdup(arena, kind),
        .plural = answer->plural,
        .namespaced = true,
    };
    return ret;
}

int machine_discovery_kind(struct machine_discovery *discovery, struct kube_client *client,
                           struct arena *arena, const char *api_version, const char *kind,
                           const struct kube_kind **ret, struct error *err)
{
    struct discovery_answer answer;
    const char *text;

    *ret = NULL;
    if (!is_group_version(api_version))
        return 0;
    if (!find(arena, look(discovery, arena, api_version), kind, &answer)) {
        int r =
            kube_get_text(client, arena, arena_printf(arena, "/apis/%s", api_version), &text, err);
        if (r == -ERROR_NOT_FOUND)
            return 0;
        if (r < 0)
            return r;
        keep(discovery, api_version, text);
        if (!find(arena, text, kind, &answer))
            return 0;
    }
    if (answer.namespaced && !strpbrk(answer.plural, "/?%#"))
        *ret = make_kind(arena, api_version, kind, &answer);
    return 0;
}
