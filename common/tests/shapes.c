#include "common/tests/shapes.h"

static void index_colour(const cJSON *json, index_add_fn *add, void *ctx)
{
    const char *colour = json_string(json_path(json, "spec", "colour", NULL), NULL);

    if (colour)
        add(ctx, colour);
}

static void index_tags(const cJSON *json, index_add_fn *add, void *ctx)
{
    json_for_each (tag, json_path(json, "spec", "tags", NULL))
        add(ctx, json_string(tag, ""));
}

const char *version_text(struct arena *arena, int64_t version)
{
    return arena_printf(arena, "%lld", (long long)version);
}

struct kube_object *make_object(const struct shape *shape)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_object *object = NULL;
    cJSON *json = json_object(arena);
    cJSON *metadata = json_set_object(json, "metadata");

    json_set_string(metadata, "name", arena_printf(arena, "o%02d", shape->name));
    json_set_string(metadata, "namespace", shape->name % 2 ? "odd" : "even");
    json_set_string(metadata, "uid", arena_printf(arena, "u%d-%d", shape->name, shape->life));
    json_set_string(metadata, "resourceVersion", version_text(arena, shape->version));
    cJSON *spec = json_set_object(json, "spec");
    if (shape->colour < COLOURS)
        json_set_string(spec, "colour", arena_printf(arena, "c%d", shape->colour));
    cJSON *tags = json_set_array(spec, "tags");
    for (int tag = 0; tag < TAGS; tag++) {
        if (shape->tags & (1u << tag))
            json_add_string(tags, arena_printf(arena, "t%d", tag));
    }
    if (shape->tags & 1u)
        json_add_string(tags, "t0");
    ck_assert_int_eq(kube_object_create(json, &object, NULL), 0);
    return object;
}

struct kube_object *make_version(int name, int64_t version)
{
    struct shape shape = { .name = name, .version = version };

    return make_object(&shape);
}

struct kube_name name_of(int name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name ret;

    ck_assert(kube_name_set(&ret, name % 2 ? "odd" : "even", arena_printf(arena, "o%02d", name)));
    return ret;
}

struct store *make_store(void)
{
    struct store *store = store_create();

    json_init();
    store_add_index(store, "colour", index_colour);
    store_add_index(store, "tags", index_tags);
    return store;
}

bool put_version(struct store *store, int name, int64_t version)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = make_version(name, version);

    return store_put(store, object, NULL);
}

bool add_version(struct store *store, int name, int64_t version)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = make_version(name, version);

    return store_set_add(store, object, NULL);
}

void ignore_gone(void *ctx UNUSED, struct kube_object *old UNUSED)
{
}
