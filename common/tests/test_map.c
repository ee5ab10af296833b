#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/tests/suite.h"

static int released;

static void count_release(void *value)
{
    (void)value;
    released++;
}

static const char *key_of(struct arena *arena, int i)
{
    return arena_printf(arena, "key-%d", i);
}

TEST(a_value_set_is_got_until_it_is_replaced)
{
    struct map *map = map_create(NULL);
    int one;
    int two;

    ck_assert_ptr_null(map_get(map, "a"));
    map_set(map, "a", &one);
    ck_assert_ptr_eq(map_get(map, "a"), &one);
    map_set(map, "a", &two);
    ck_assert_ptr_eq(map_get(map, "a"), &two);
    ck_assert_uint_eq(map_len(map), 1);
    ck_assert_ptr_null(map_get(map, "b"));
    ck_assert_ptr_null(map_get(map, "A"));
    map_destroy(map);
}

TEST(the_key_is_copied)
{
    struct map *map = map_create(NULL);
    char key[] = "first";
    int value;

    map_set(map, key, &value);
    key[0] = 'F';
    ck_assert_ptr_eq(map_get(map, "first"), &value);
    ck_assert_ptr_null(map_get(map, "First"));
    map_destroy(map);
}

TEST(release_is_called_for_what_is_replaced_removed_or_left)
{
    struct map *map = map_create(count_release);
    int one;
    int two;

    released = 0;
    map_set(map, "a", &one);
    map_set(map, "a", &one);
    ck_assert_int_eq(released, 0); /* the same value again is still there */
    map_set(map, "a", &two);
    ck_assert_int_eq(released, 1);
    map_set(map, "b", &one);
    ck_assert(map_remove(map, "b"));
    ck_assert_int_eq(released, 2);
    ck_assert(!map_remove(map, "b"));
    map_set(map, "c", &one);
    ck_assert_ptr_eq(map_take(map, "c"), &one);
    ck_assert_ptr_null(map_take(map, "c"));
    ck_assert_int_eq(released, 2);
    map_destroy(map);
    ck_assert_int_eq(released, 3);
}

TEST(an_empty_map_has_nothing_to_take_or_walk)
{
    struct map *map = map_create(NULL);
    size_t position = 0;

    ck_assert_ptr_null(map_take(map, "a"));
    ck_assert(!map_next(map, &position, NULL, NULL));
    ck_assert_uint_eq(map_len(map), 0);
    map_destroy(map);
    map_destroy(NULL);
}

TEST(no_key_is_lost_when_others_are_removed_in_between)
{
    enum { KEYS = 5000 };
    struct arena *arena = arena_create();
    struct map *map = map_create(NULL);
    static int values[KEYS];

    for (int i = 0; i < KEYS; i++)
        map_set(map, key_of(arena, i), &values[i]);
    for (int i = 0; i < KEYS; i += 3)
        ck_assert_ptr_eq(map_take(map, key_of(arena, i)), &values[i]);
    for (int i = 0; i < KEYS; i++)
        ck_assert_ptr_eq(map_get(map, key_of(arena, i)), i % 3 ? &values[i] : NULL);
    ck_assert_uint_eq(map_len(map), KEYS - (KEYS + 2) / 3);
    map_destroy(map);
    arena_destroy(arena);
}

TEST(a_walk_sees_each_pair_once)
{
    enum { KEYS = 100 };
    struct arena *arena = arena_create();
    struct map *map = map_create(NULL);
    int seen[KEYS] = { 0 };
    size_t position = 0;
    const char *key;
    void *value;

    for (int i = 0; i < KEYS; i++)
        map_set(map, key_of(arena, i), &seen[i]);
    while (map_next(map, &position, &key, &value)) {
        int *count = value;

        ck_assert_str_eq(key, key_of(arena, (int)(count - seen)));
        (*count)++;
    }
    for (int i = 0; i < KEYS; i++)
        ck_assert_int_eq(seen[i], 1);
    map_destroy(map);
    arena_destroy(arena);
}

/* Lengths around the eight-byte words of the hash. */
TEST(keys_that_are_prefixes_of_each_other_differ)
{
    static const char LONG[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct map *map = map_create(NULL);
    char lengths[sizeof(LONG)];

    for (size_t len = 0; len < sizeof(LONG); len++) {
        char *key = xstrndup(LONG, len);

        map_set(map, key, &lengths[len]);
        free(key);
    }
    for (size_t len = 0; len < sizeof(LONG); len++) {
        char *key = xstrndup(LONG, len);

        ck_assert_ptr_eq(map_get(map, key), &lengths[len]);
        free(key);
    }
    ck_assert_uint_eq(map_len(map), sizeof(LONG));
    map_destroy(map);
}
