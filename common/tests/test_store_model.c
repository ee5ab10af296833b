#include <pthread.h>
#include <stdatomic.h>

#include "common/base/str.h"
#include "common/tests/power.h"
#include "common/tests/shapes.h"

/* The store against a naive model of it, through random operations. */
struct model {
    struct shape objects[NAMES]; /* version 0: not there */
    bool in_set[NAMES];
    bool split;      /* a part for each of the two namespaces */
    int64_t seen[2]; /* of each part; the first one's if there is one */
    int lives[NAMES];
};

static const char *const PARTS[] = { "even", "odd" };

static int part_of(const struct model *model, int name)
{
    return model->split ? name % 2 : 0;
}

static uint64_t random_state;

static unsigned pick(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % below;
}

static void check_list(const struct object_list *list, const struct model *model,
                       bool (*wanted)(const struct shape *, int), int argument)
{
    size_t expected = 0;

    /* name order: the namespace "even" before "odd", then by number */
    for (int half = 0; half < 2; half++) {
        for (int name = half; name < NAMES; name += 2) {
            const struct shape *shape = &model->objects[name];
            if (!shape->version || !wanted(shape, argument))
                continue;
            ck_assert_uint_lt(expected, list->len);
            struct kube_name key = name_of(name);
            int64_t version = -1;
            const struct kube_name found = kube_object_name(list->items[expected]);
            ck_assert(kube_name_equal(&found, &key));
            ck_assert(str_to_int64(list->items[expected]->resource_version, &version));
            ck_assert_int_eq(version, shape->version);
            expected++;
        }
    }
    ck_assert_uint_eq(list->len, expected);
}

static bool is_any(const struct shape *shape, int argument)
{
    (void)shape;
    return argument >= 0;
}

static bool is_in_half(const struct shape *shape, int half)
{
    return shape->name % 2 == half;
}

static bool has_colour(const struct shape *shape, int colour)
{
    return shape->colour == colour;
}

static bool has_tag(const struct shape *shape, int tag)
{
    return shape->tags & (1u << tag);
}

static void check_store(struct store *store, const struct model *model)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    struct object_list list = store_list(store, arena, NULL);
    check_list(&list, model, is_any, 0);
    ck_assert_uint_eq(store_count(store, NULL, NULL), list.len);
    for (int half = 0; half < 2; half++) {
        list = store_list(store, arena, half ? "odd" : "even");
        check_list(&list, model, is_in_half, half);
    }
    for (int colour = 0; colour < COLOURS; colour++) {
        const char *value = arena_printf(arena, "c%d", colour);
        list = store_find(store, arena, "colour", value);
        check_list(&list, model, has_colour, colour);
        ck_assert_uint_eq(store_count(store, "colour", value), list.len);
    }
    for (int tag = 0; tag < TAGS; tag++) {
        const char *value = arena_printf(arena, "t%d", tag);
        list = store_find(store, arena, "tags", value);
        check_list(&list, model, has_tag, tag);
    }
    for (int name = 0; name < NAMES; name++) {
        const struct shape *shape = &model->objects[name];
        struct kube_name found;
        for (int life = 0; life <= model->lives[name]; life++)
            ck_assert_int_eq(
                store_name_of_uid(store, arena_printf(arena, "u%d-%d", name, life), &found),
                shape->version && shape->life == life);
    }
}

/* A version near the seen one, so that all outcomes are common. */
static struct shape random_shape(struct model *model)
{
    struct shape shape = { .name = (int)pick(NAMES), .colour = (int)pick(COLOURS + 1) };

    if (pick(4) == 0)
        model->lives[shape.name]++;
    int64_t seen = model->seen[part_of(model, shape.name)];
    shape.version = seen > 20 ? seen - 20 + pick(40) : 1 + pick(40);
    shape.tags = pick(1u << TAGS);
    shape.life = model->lives[shape.name];
    return shape;
}

static bool model_put(struct model *model, const struct shape *shape, bool of_set)
{
    struct shape *present = &model->objects[shape->name];
    bool wanted = present->version
                      ? shape->version > present->version
                      : of_set || shape->version > model->seen[part_of(model, shape->name)];

    if (wanted)
        *present = *shape;
    if (of_set)
        model->in_set[shape->name] = true;
    return wanted;
}

static void random_put(struct store *store, struct model *model, bool of_set)
{
    struct shape shape = random_shape(model);
    CLEANUP(kube_object_unrefp) struct kube_object *object = make_object(&shape);
    CLEANUP(kube_object_unrefp) struct kube_object *old = NULL;
    int64_t old_version = model->objects[shape.name].version;
    bool put = of_set ? store_set_add(store, object, &old) : store_put(store, object, &old);

    ck_assert_int_eq(put, model_put(model, &shape, of_set));
    ck_assert_int_eq(old != NULL, put && old_version);
}

static void random_remove(struct store *store, struct model *model)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct shape shape = random_shape(model);
    struct kube_name key = name_of(shape.name);
    struct shape *present = &model->objects[shape.name];
    CLEANUP(kube_object_unrefp)
    struct kube_object *old = store_remove(store, &key, version_text(arena, shape.version));

    ck_assert_int_eq(old != NULL, present->version && present->version <= shape.version);
    int64_t *seen = &model->seen[part_of(model, shape.name)];
    if (shape.version > *seen)
        *seen = shape.version;
    if (old) {
        present->version = 0;
        model->in_set[shape.name] = false;
    }
}

static void advance(struct store *store, struct model *model, bool sweep)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int part = model->split ? (int)pick(2) : 0;
    int64_t seen = model->seen[part] + pick(15);
    const char *version = version_text(arena, seen);

    model->seen[part] = seen;
    if (!sweep) {
        store_seen(store, PARTS[part], version);
        return;
    }
    store_set_sweep(store, PARTS[part], version, ignore_gone, NULL);
    for (int name = 0; name < NAMES; name++) {
        if (part_of(model, name) == part && !model->in_set[name] &&
            model->objects[name].version <= seen)
            model->objects[name].version = 0;
    }
}

static void begin_set(struct store *store, struct model *model)
{
    int part = model->split ? (int)pick(2) : 0;

    store_set_begin(store, PARTS[part]);
    for (int name = 0; name < NAMES; name++) {
        if (part_of(model, name) == part)
            model->in_set[name] = false;
    }
}

TEST_TIMES(the_store_and_its_indexes_agree_with_a_naive_model, power_count(4, 16, 100))
{
    struct store *store = make_store();
    struct model model = { .split = _i % 2 };

    random_state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
    if (model.split)
        store_split(store, PARTS, ARRAY_LEN(PARTS));
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++)
        store_seen(store, PARTS[i], "0");
    for (int step = 0; step < 200; step++) {
        switch (pick(12)) {
        case 0:
            advance(store, &model, false);
            break;
        case 1:
            random_remove(store, &model);
            break;
        case 2:
            begin_set(store, &model);
            break;
        case 3:
            advance(store, &model, true);
            break;
        default:
            random_put(store, &model, pick(3) == 0);
        }
        check_store(store, &model);
    }
    store_destroy(store);
}

/* --- threads --- */

#define WRITES ((int)power_count(500, 1500, 5000))

static atomic_bool writer_done;
static atomic_llong newest; /* what writers may use next */

static void *read_all(void *ctx)
{
    struct store *store = ctx;
    int64_t last[NAMES] = { 0 };

    while (!atomic_load(&writer_done)) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct object_list list = store_find(store, arena, "colour", "c0");
        for (size_t i = 0; i < list.len; i++) {
            int64_t version = 0, name = 0;
            ck_assert(str_to_int64(list.items[i]->resource_version, &version));
            ck_assert(str_to_int64(list.items[i]->name + 2, &name));
            name += INT64_C(10) * (list.items[i]->name[1] - '0');
            ck_assert_int_ge(version, last[name]); /* not even across a deletion */
            last[name] = version;
            ck_assert_ptr_nonnull(kube_object_json(arena, list.items[i]));
        }
        store_list(store, arena, "odd");
        store_count(store, "tags", "t0");
        store_has_seen(store, NULL, "u1-0", "5");
    }
    return NULL;
}

/* A worker that tells of its own writes, the newest or an old one. */
static void *observe(void *ctx)
{
    struct store *store = ctx;

    for (int i = 0; i < WRITES; i++) {
        long long version = atomic_fetch_add(&newest, 1) + 1;
        put_version(store, i % NAMES, i % 3 ? version : version / 2);
    }
    return NULL;
}

/* The watch loop: changes in order, deletions, now and then a list. */
static void *watch(void *ctx)
{
    struct store *store = ctx;

    for (int i = 0; i < WRITES; i++) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        long long number = atomic_fetch_add(&newest, 1) + 1;
        const char *version = version_text(arena, number);
        struct kube_name key = name_of(i % NAMES);
        if (i % 500 == 0) {
            store_set_begin(store, NULL);
            for (int name = 0; name < NAMES; name += 2)
                add_version(store, name, number);
            store_set_sweep(store, NULL, version, ignore_gone, NULL);
        } else if (i % 5 == 0) {
            kube_object_unref(store_remove(store, &key, version));
        } else {
            put_version(store, i % NAMES, number);
        }
        store_seen(store, NULL, version);
    }
    return NULL;
}

TEST(threads_see_versions_go_forward_only)
{
    struct store *store = make_store();
    pthread_t readers[2], writers[2];

    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_all, store), 0);
    ck_assert_int_eq(pthread_create(&writers[0], NULL, observe, store), 0);
    ck_assert_int_eq(pthread_create(&writers[1], NULL, watch, store), 0);
    for (size_t i = 0; i < ARRAY_LEN(writers); i++)
        pthread_join(writers[i], NULL);
    atomic_store(&writer_done, true);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        pthread_join(readers[i], NULL);
    store_destroy(store);
}
