#include <pthread.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/kube/object.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static const char OBJECT[] =
    "{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u-1\","
    "\"resourceVersion\":\"42\",\"generation\":7},\"spec\":{\"big\":9007199254740993}}";

TEST_GROUP("object", arena_set_up, arena_tear_down);

TEST(an_object_has_its_header_and_its_whole_text)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    ck_assert_int_eq(kube_object_create(parsed(arena, OBJECT), &object, NULL), 0);

    ck_assert_str_eq(object->ns, "ns");
    ck_assert_str_eq(object->name, "a");
    ck_assert_str_eq(object->uid, "u-1");
    ck_assert_str_eq(object->resource_version, "42");
    ck_assert_int_eq(object->generation, 7);
    ck_assert(!object->deleting);
    size_t len;
    ck_assert_str_eq(kube_object_text(arena, object, &len), OBJECT);
    ck_assert_uint_eq(len, strlen(OBJECT));
    ck_assert(json_equal(kube_object_json(arena, object), parsed(arena, OBJECT)));
}

TEST(an_object_needs_only_a_name)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    ck_assert_int_eq(
        kube_object_create(parsed(arena, "{\"metadata\":{\"name\":\"a\"}}"), &object, NULL), 0);
    ck_assert_str_eq(object->ns, "");
    ck_assert_str_eq(object->uid, "");
    ck_assert_str_eq(object->resource_version, "");
    ck_assert_int_eq(object->generation, 0);
}

/* From the oldest to the youngest. */
static const char *const AGES[] = {
    "\"uid\":\"z\"",
    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"uid\":\"c\"",
    "\"creationTimestamp\":\"2026-01-01T00:00:01Z\",\"uid\":\"a\"",
    "\"creationTimestamp\":\"2026-01-01T00:00:01Z\",\"uid\":\"b\"",
};

TEST(age_is_the_creation_timestamp_and_then_the_uid)
{
    struct kube_object *objects[ARRAY_LEN(AGES)];

    for (size_t i = 0; i < ARRAY_LEN(AGES); i++) {
        const char *text = arena_printf(arena, "{\"metadata\":{\"name\":\"a\",%s}}", AGES[i]);
        ck_assert_int_eq(kube_object_create(parsed(arena, text), &objects[i], NULL), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(AGES); i++) {
        for (size_t j = 0; j < ARRAY_LEN(AGES); j++)
            ck_assert_int_eq(kube_object_is_older(objects[i], objects[j]), i < j);
    }
    for (size_t i = 0; i < ARRAY_LEN(AGES); i++)
        kube_object_unref(objects[i]);
}

TEST(a_deletion_timestamp_makes_it_deleting)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    const char *text =
        "{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}}";
    ck_assert_int_eq(kube_object_create(parsed(arena, text), &object, NULL), 0);
    ck_assert(object->deleting);
}

static const char *const NAMELESS[] = {
    "null",
    "[]",
    "{}",
    "{\"metadata\":{}}",
    "{\"metadata\":{\"name\":\"\"}}",
    "{\"metadata\":{\"name\":1}}",
    "{\"metadata\":[\"name\"]}",
    "{\"metadata\":{\"Name\":\"a\"}}",
};

TEST_EACH(what_has_no_name_is_no_object, NAMELESS)
{
    struct kube_object *object = NULL;
    struct error err = { 0 };
    ck_assert_int_eq(kube_object_create(parsed(arena, NAMELESS[_i]), &object, &err),
                     -ERROR_INVALID);
    ck_assert_ptr_null(object);
    ck_assert_ptr_nonnull(strstr(err.message, "'metadata.name'"));
}

TEST(names_over_the_limit_are_refused)
{
    char longest[255 + 1];
    memset(longest, 'x', sizeof(longest));
    struct kube_name name;

    longest[253] = '\0';
    ck_assert(kube_name_set(&name, "ns", longest));
    longest[253] = 'x';
    longest[254] = '\0';
    ck_assert(!kube_name_set(&name, "ns", longest));
    longest[64] = '\0';
    ck_assert(!kube_name_set(&name, longest, "name"));
    longest[63] = '\0';
    ck_assert(kube_name_set(&name, longest, "name"));

    memset(longest, 'x', 254);
    longest[254] = '\0';
    struct kube_object *object = NULL;
    struct error err = { 0 };
    const char *text = arena_printf(arena, "{\"metadata\":{\"name\":\"%s\"}}", longest);
    ck_assert_int_eq(kube_object_create(parsed(arena, text), &object, &err), -ERROR_INVALID);
}

TEST(a_key_tells_namespaced_from_cluster_scoped)
{
    struct kube_name a, b;
    char key[KUBE_KEY_LEN];
    ck_assert(kube_name_set(&a, "ns", "name"));
    ck_assert(kube_name_set(&b, NULL, "name"));
    ck_assert_str_eq(kube_name_key(&a, key), "ns/name");
    ck_assert_str_eq(kube_name_key(&b, key), "name");
    ck_assert(!kube_name_equal(&a, &b));
    ck_assert(kube_name_set(&b, "ns", "name"));
    ck_assert(kube_name_equal(&a, &b));
}

static void *take_and_drop(void *object)
{
    for (int i = 0; i < 1000; i++) {
        struct kube_object *mine = kube_object_ref(object);
        ck_assert_str_eq(mine->uid, "u-1");
        kube_object_unref(mine);
    }
    kube_object_unref(object);
    return NULL;
}

TEST(references_may_be_taken_and_dropped_by_many_threads)
{
    struct kube_object *object = NULL;
    ck_assert_int_eq(kube_object_create(parsed(arena, OBJECT), &object, NULL), 0);
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_drop, kube_object_ref(object)),
                         0);
    kube_object_unref(object);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_ptr_null(kube_object_ref(NULL));
    kube_object_unref(NULL);
}

static const struct {
    const char *a, *b;
    int sign;
} VERSIONS[] = {
    { "1", "1", 0 },
    { "9", "10", -1 },
    { "10", "9", 1 },
    { "18446744073709551616", "18446744073709551615", 1 },
    { "99999999999999999999999999999", "100000000000000000000000000000", -1 },
    { "007", "7", 0 },
    { "0", "000", 0 },
    { "1", "", 1 },
    { NULL, "1", -1 },
    { "0", "x1", 1 },
    { "1.5", "1", -1 },
    { "-5", "0", -1 },
    { NULL, "", 0 },
    { "abc", "xyz", 0 },
};

TEST_EACH(versions_compare_as_numbers_of_any_length, VERSIONS)
{
    int result = kube_version_compare(VERSIONS[_i].a, VERSIONS[_i].b);
    int reverse = kube_version_compare(VERSIONS[_i].b, VERSIONS[_i].a);
    ck_assert_int_eq((result > 0) - (result < 0), VERSIONS[_i].sign);
    ck_assert_int_eq((reverse > 0) - (reverse < 0), -VERSIONS[_i].sign);
}

TEST(the_controller_is_the_owner_that_says_so)
{
    ck_assert_str_eq(
        kube_controller_uid(parsed(arena, "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"a\"},"
                                          "{\"uid\":\"b\",\"controller\":false},"
                                          "{\"uid\":\"c\",\"controller\":true}]}}")),
        "c");
    ck_assert_ptr_null(kube_controller_uid(
        parsed(arena, "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"a\"}]}}")));
    ck_assert_ptr_null(
        kube_controller_uid(parsed(arena, "{\"metadata\":{\"ownerReferences\":7}}")));
    ck_assert_ptr_null(kube_controller_uid(NULL));
}

TEST(core_and_group_kinds_have_their_names)
{
    ck_assert_str_eq(KIND_TASK.group, "propeller.propeller.abstractmachines.fr");
    ck_assert_str_eq(KIND_TRAININGROUND.plural, "trainingrounds");
    ck_assert_str_eq(KIND_SECRET.group, "");
    ck_assert_str_eq(KIND_EVENT.group, "events.k8s.io");
    ck_assert(KIND_LEASE.namespaced);
}
