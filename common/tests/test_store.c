#include "common/base/str.h"
#include "common/tests/shapes.h"

/* "" when it is not there. */
static const char *held(struct store *store, int name)
{
    static char version[32];
    struct kube_name key = name_of(name);
    CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(store, &key);

    ck_assert(str_copy(version, sizeof(version), object ? object->resource_version : ""));
    return version;
}

TEST(an_object_is_replaced_only_by_a_newer_one)
{
    struct store *store = make_store();
    struct kube_object *first = make_version(1, 9);
    struct kube_object *second = make_version(1, 10);
    struct kube_object *old = NULL;

    ck_assert(store_put(store, first, &old));
    ck_assert_ptr_null(old);
    ck_assert(!store_put(store, first, &old));
    ck_assert_ptr_null(old);
    ck_assert(store_put(store, second, &old)); /* 10 is more than 9 only as a number */
    ck_assert_ptr_eq(old, first);
    ck_assert(!store_put(store, first, NULL));
    ck_assert_str_eq(held(store, 1), "10");
    ck_assert_uint_eq(store_count(store, NULL, NULL), 1);

    kube_object_unref(old);
    kube_object_unref(first);
    kube_object_unref(second);
    store_destroy(store);
}

TEST(what_a_reader_holds_stays_when_the_store_goes_on)
{
    struct store *store = make_store();
    struct kube_name key = name_of(1);

    put_version(store, 1, 5);
    struct kube_object *object = store_get(store, &key);
    struct arena *arena = arena_create();
    struct object_list list = store_list(store, arena, NULL);
    put_version(store, 1, 6);
    kube_object_unref(store_remove(store, &key, "7"));
    store_destroy(store);

    ck_assert_str_eq(object->resource_version, "5");
    ck_assert_str_eq(list.items[0]->resource_version, "5");
    kube_object_unref(object);
    arena_destroy(arena);
}

TEST(a_deleted_object_does_not_come_back_through_a_late_put)
{
    struct store *store = make_store();
    struct kube_name key = name_of(1);

    put_version(store, 1, 5);
    kube_object_unref(store_remove(store, &key, "8"));
    ck_assert(!put_version(store, 1, 5));
    ck_assert(!put_version(store, 1, 7));
    ck_assert(!put_version(store, 1, 8));
    ck_assert(put_version(store, 1, 9)); /* made again */

    store_set_begin(store, NULL); /* and the same for what a set lacks, known before or not */
    store_set_sweep(store, NULL, "20", ignore_gone, NULL);
    ck_assert_str_eq(held(store, 1), "");
    ck_assert(!put_version(store, 1, 20));
    ck_assert(!put_version(store, 2, 15));
    ck_assert(put_version(store, 2, 21));
    store_destroy(store);
}

TEST(the_seen_version_never_goes_back)
{
    struct store *store = make_store();

    store_seen(store, NULL, "100");
    store_seen(store, NULL, "99");
    ck_assert(!put_version(store, 1, 100));
    ck_assert(put_version(store, 1, 101));
    store_destroy(store);
}

TEST(a_removal_older_than_the_object_does_nothing)
{
    struct store *store = make_store();
    struct kube_name key = name_of(1);

    put_version(store, 1, 10);
    ck_assert_ptr_null(store_remove(store, &key, "9")); /* of the one before it */
    ck_assert_str_eq(held(store, 1), "10");
    struct kube_object *old = store_remove(store, &key, "10"); /* left a selector by that change */
    ck_assert_str_eq(old->resource_version, "10");
    ck_assert_ptr_null(store_remove(store, &key, "11"));
    kube_object_unref(old);
    store_destroy(store);
}

static int gone_count;
static char gone_names[100];

static void count_gone(void *ctx, struct kube_object *old)
{
    const struct kube_name name = kube_object_name(old);
    struct store *store = ctx;

    ck_assert_ptr_null(store_get(store, &name)); /* no lock held, and it is gone */
    gone_count++;
    ck_assert(str_copy(gone_names, sizeof(gone_names), old->name));
}

TEST(a_set_removes_what_it_lacks_and_keeps_what_is_newer)
{
    struct store *store = make_store();

    put_version(store, 1, 5);
    put_version(store, 2, 6);
    put_version(store, 3, 30); /* our own write, after the list was taken */
    put_version(store, 4, 7);
    store_set_begin(store, NULL);
    ck_assert(!add_version(store, 1, 5)); /* there already */
    ck_assert(!add_version(store, 4, 6)); /* older than ours, but there */
    ck_assert(add_version(store, 5, 2));
    ck_assert(put_version(store, 6, 40));
    store_set_sweep(store, NULL, "20", count_gone, store);

    ck_assert_int_eq(gone_count, 1);
    ck_assert_str_eq(gone_names, "o02");
    ck_assert_str_eq(held(store, 1), "5");
    ck_assert_str_eq(held(store, 3), "30");
    ck_assert_str_eq(held(store, 4), "7");
    ck_assert_str_eq(held(store, 5), "2");
    ck_assert_str_eq(held(store, 6), "40");
    store_destroy(store);
}

TEST(a_set_that_starts_over_forgets_what_was_added_before)
{
    struct store *store = make_store();

    store_set_begin(store, NULL);
    add_version(store, 1, 5);
    store_set_begin(store, NULL);
    add_version(store, 2, 6);
    store_set_sweep(store, NULL, "10", count_gone, store);
    ck_assert_int_eq(gone_count, 1);
    ck_assert_str_eq(held(store, 1), "");
    ck_assert_str_eq(held(store, 2), "6");
    store_destroy(store);
}

TEST(a_set_knows_no_deleted_objects)
{
    struct store *store = make_store();

    store_seen(store, NULL, "50"); /* left out as unreadable before: the seen version is past it */
    store_set_begin(store, NULL);
    ck_assert(add_version(store, 1, 5));
    store_set_sweep(store, NULL, "60", ignore_gone, NULL);
    ck_assert_str_eq(held(store, 1), "5");
    store_destroy(store);
}

TEST(has_seen_is_true_once_the_object_or_the_stream_is_there)
{
    struct store *store = make_store();

    ck_assert(!store_has_seen(store, NULL, "u1-0", "5"));
    put_version(store, 1, 4);
    ck_assert(!store_has_seen(store, NULL, "u1-0", "5"));
    put_version(store, 1, 5);
    ck_assert(store_has_seen(store, NULL, "u1-0", "5"));
    ck_assert(store_has_seen(store, NULL, "u1-0", "4"));
    ck_assert(!store_has_seen(store, NULL, "u2-0", "5")); /* another's version proves nothing */

    store_seen(store, NULL, "8"); /* deleted before we looked, or never to be held */
    ck_assert(store_has_seen(store, NULL, "u2-0", "8"));
    ck_assert(!store_has_seen(store, NULL, "u2-0", "9"));
    store_set_begin(store, NULL);
    store_set_sweep(store, NULL, "9", ignore_gone, NULL);
    ck_assert(store_has_seen(store, NULL, "u2-0", "9"));
    store_destroy(store);
}

static struct store *make_split_store(void)
{
    static const char *const NAMESPACES[] = { "even", "odd" };
    struct store *store = make_store();

    store_split(store, NAMESPACES, ARRAY_LEN(NAMESPACES));
    return store;
}

TEST(what_one_part_was_told_says_nothing_of_another)
{
    struct store *store = make_split_store();
    struct kube_name key = name_of(2);

    store_seen(store, "even", "100");
    ck_assert(!put_version(store, 2, 50));
    ck_assert(put_version(store, 1, 50)); /* told of "odd" is nothing yet */
    ck_assert(put_version(store, 2, 110));
    kube_object_unref(store_remove(store, &key, "120"));
    ck_assert(put_version(store, 3, 60));

    ck_assert(store_has_seen(store, "even", "u4-0", "120"));
    ck_assert(!store_has_seen(store, "odd", "u5-0", "1"));
    ck_assert(store_has_seen(store, "odd", "u1-0", "50"));
    store_destroy(store);
}

TEST(a_set_of_one_part_removes_nothing_of_another)
{
    struct store *store = make_split_store();

    for (int name = 1; name <= 4; name++)
        put_version(store, name, 5);
    store_set_begin(store, "even");
    store_set_begin(store, "odd"); /* lists of both are under way */
    add_version(store, 2, 5);
    store_set_sweep(store, "even", "20", count_gone, store);
    ck_assert_int_eq(gone_count, 1);
    ck_assert_str_eq(gone_names, "o04");
    ck_assert_str_eq(held(store, 1), "5");

    add_version(store, 1, 5);
    store_set_sweep(store, "odd", "30", count_gone, store);
    ck_assert_int_eq(gone_count, 2);
    ck_assert_str_eq(gone_names, "o03");
    ck_assert_uint_eq(store_count(store, NULL, NULL), 2);
    store_destroy(store);
}

TEST(an_object_of_a_namespace_without_a_part_is_not_kept)
{
    static const char *const NAMESPACES[] = { "even" };
    struct store *store = make_store();
    struct kube_name key = name_of(1);

    store_split(store, NAMESPACES, ARRAY_LEN(NAMESPACES));
    ck_assert(!put_version(store, 1, 5));
    ck_assert(!add_version(store, 1, 5));
    ck_assert_ptr_null(store_remove(store, &key, "6"));
    ck_assert(!store_has_seen(store, "odd", "u1-0", "1"));
    ck_assert(put_version(store, 2, 5));
    store_destroy(store);
}

/* The last digit of the version. */
static size_t class_of(const cJSON *json)
{
    const char *version = json_string(json_path(json, "metadata", "resourceVersion", NULL), "0");

    return (size_t)(version[strlen(version) - 1] - '0');
}

static const char *counts(struct store *store)
{
    static char text[64];
    size_t of[10];
    int len = 0;

    store_class_counts(store, NULL, of);
    for (size_t i = 0; i < 10; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%zu", of[i]);
    return text;
}

TEST(each_object_counts_in_the_class_that_it_has_now)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct store *store = make_store();
    struct kube_name key = name_of(3);

    store_count_classes(store, class_of, 10);
    ck_assert_str_eq(counts(store), "0000000000");
    put_version(store, 1, 5);
    put_version(store, 2, 5);
    put_version(store, 3, 7);
    ck_assert_str_eq(counts(store), "0000020100");
    ck_assert(!put_version(store, 1, 4)); /* older */
    put_version(store, 1, 16);
    ck_assert_str_eq(counts(store), "0000011100");
    ck_assert_uint_eq(store_of_class(store, arena, 4).len, 0);
    struct object_list of_six = store_of_class(store, arena, 6);
    ck_assert_uint_eq(of_six.len, 1);
    ck_assert_str_eq(of_six.items[0]->resource_version, "16");
    size_t numbers[10];
    store_class_counts(store, "elsewhere", numbers);
    ck_assert_uint_eq(numbers[6], 0);
    store_class_counts(store, of_six.items[0]->ns, numbers);
    ck_assert_uint_eq(numbers[6], 1);
    kube_object_unref(store_remove(store, &key, "20"));
    ck_assert_str_eq(counts(store), "0000011000");
    store_set_begin(store, NULL);
    add_version(store, 2, 29);
    store_set_sweep(store, NULL, "30", count_gone, store);
    ck_assert_str_eq(counts(store), "0000000001");
    store_destroy(store);
}

TEST(a_uid_leads_to_the_name_it_has_now)
{
    struct store *store = make_store();
    struct kube_name expected = name_of(1);
    struct kube_name found = { "", "untouched" };
    struct kube_object *again = make_object(&(struct shape){ .name = 1, .version = 9, .life = 1 });

    ck_assert(!store_name_of_uid(store, "u1-0", &found));
    ck_assert_str_eq(found.name, "untouched");
    put_version(store, 1, 5);
    ck_assert(store_name_of_uid(store, "u1-0", &found));
    ck_assert(kube_name_equal(&found, &expected));
    ck_assert(store_put(store, again, NULL));
    ck_assert(!store_name_of_uid(store, "u1-0", &found));
    ck_assert(store_name_of_uid(store, "u1-1", &found));
    kube_object_unref(again);
    store_destroy(store);
}
