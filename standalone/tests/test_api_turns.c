/* Many writers of one object: a client that names no version never hears of a conflict. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/str.h"
#include "common/tests/power.h"
#include "standalone/tests/api_fixture.h"

#define WRITERS 100
#define WRITES ((int)power_count(1, 3, 3))

#define HOT CONFIGMAPS "/hot"

struct way {
    const char *method, *type, *query; /* behind the field manager */
};

struct writer {
    const struct way *way;
    int number;
};

/* bad: the last status that was not expected. */
static atomic_int good, bad;

static void *write_on(void *ctx)
{
    const struct writer *writer = ctx;
    const struct way *way = writer->way;
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    for (int i = 0; i < WRITES; i++) {
        const char *body =
            arena_printf(arena,
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                         "\"hot\"},\"data\":{\"w%d\":\"%d\"}}",
                         writer->number, i);
        int status = api_status(
            way->method, arena_printf(arena, HOT "?fieldManager=m%d%s", writer->number, way->query),
            way->type, body);

        if (status == 200 || status == 201)
            atomic_fetch_add(&good, 1);
        else
            atomic_store(&bad, status);
    }
    return NULL;
}

static void run_all(const struct way *way)
{
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];

    atomic_store(&good, 0);
    atomic_store(&bad, 0);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ way, i };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_on, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&bad), 0);
    ck_assert_int_eq(atomic_load(&good), WRITERS * WRITES);
}

static size_t members(void)
{
    return json_len(json_get(ask("GET", HOT, NULL, 200), "data"));
}

static const struct way PATCH = { "PATCH", "merge-patch+json", "" };
static const struct way APPLY = { "PATCH", "apply-patch+yaml", "&force=true" };

TEST_GROUP("many", api_setup, api_teardown);

TEST(all_of_many_patches_are_made)
{
    (void)ask("POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"hot\"}}", 201);
    run_all(&PATCH);
    ck_assert_uint_eq(members(), WRITERS);
}

TEST(all_of_many_applies_are_made_also_of_what_is_not_there_yet)
{
    run_all(&APPLY);
    ck_assert_uint_eq(members(), WRITERS);
}
