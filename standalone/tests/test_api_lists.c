/* Lists that are read in chunks: of one revision, whatever is written and compacted between two of them,
 * and what they hold of the store meanwhile. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/suite.h"
#include "standalone/tests/api_fixture.h"
#include "standalone/tests/fault_vfs.h"

/* Three chunks, by their number. */
#define MANY 1200
#define CHUNK 500
#define PAGE 1100
#define HISTORY 50

#define LARGE 100
#define LARGE_BYTES ((size_t)256 << 10)
/* A chunk of 1 MiB and its last object, pages of the connections that read, and the answer, which is small. */
#define HELD_BYTES ((size_t)3 << 20)

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"

/* The act of another client as soon as a list of the test's thread has read a chunk. */
static void (*meanwhile)(void);
static pthread_t tester;
static size_t chunks;

static void compact(void);

static void on_read(void *ctx)
{
    void (*act)(void) = pthread_equal(pthread_self(), tester) ? meanwhile : NULL;

    (void)ctx;
    if (!act)
        return;
    meanwhile = NULL; /* it reads, too */
    chunks++;
    act();
    if (act != compact)
        meanwhile = act;
}

/* Another client asks: the answer of the list stays as it is. */
static void other(const char *method, const char *path, const char *type, const char *body,
                  int status)
{
    ck_assert_int_eq(api_status(method, path, type, body), status);
}

static const char *path_of(size_t i)
{
    return arena_printf(test_arena, CONFIGMAPS "/c%04zu", i);
}

static void make(size_t i, size_t bytes)
{
    api_put(arena_printf(test_arena, "c%04zu", i), ",\"labels\":{\"of\":\"first\"}", bytes);
}

static void change(size_t i)
{
    other("PATCH", path_of(i), "merge-patch+json",
          "{\"metadata\":{\"labels\":{\"then\":\"changed\"}}}", 200);
}

static const cJSON *list(const char *method, const char *query, int status, void (*act)(void))
{
    chunks = 0;
    meanwhile = act;

    const cJSON *answer =
        ask(method, arena_printf(test_arena, "%s%s", CONFIGMAPS, query), NULL, status);

    meanwhile = NULL;
    return answer;
}

static void setup(void)
{
    fault_vfs_install();
    tester = pthread_self();
    api_vfs = "fault";
    api_setup();
    fault_vfs_set_read_hook(on_read, NULL);
}

static void setup_many(void)
{
    setup();
    for (size_t i = 0; i < MANY; i++)
        make(i, 1);
}

static void setup_short(void)
{
    api_history = HISTORY;
    setup_many();
}

static void teardown(void)
{
    fault_vfs_set_read_hook(NULL, NULL);
    api_teardown();
}

TEST_GROUP("many", setup_many, teardown);

/* --- what is expected of one ------------------------------------------------------------------ */

static const struct way {
    const char *method, *query, *accept;
    size_t len;
    int64_t remaining; /* -1: not said */
} WAYS[] = {
    { "GET", "", NULL, MANY, -1 },
    { "GET", "", TABLE, MANY, -1 },
    { "GET", "?labelSelector=of%3Dfirst", NULL, MANY, -1 },
    { "GET", "?limit=1100", NULL, PAGE, MANY - PAGE },
    { "GET", "?limit=1100&labelSelector=of%3Dfirst", NULL, PAGE, -1 },
    { "DELETE", "", NULL, MANY, -1 },
};

static const cJSON *object_of(const cJSON *item, const struct way *way)
{
    return way->accept ? json_get(item, "object") : item;
}

static void expect_version(const cJSON *answer, uint64_t revision)
{
    ck_assert_str_eq(meta(answer, "resourceVersion"),
                     arena_printf(test_arena, "%llu", (unsigned long long)revision));
}

/* c0000, c0001 … from the first one on, in which the label `then` is this. */
static void expect_items(const cJSON *answer, const struct way *way, size_t first, const char *then)
{
    const char *const member = way->accept ? "rows" : "items";
    size_t i = first;

    json_for_each (item, json_get(answer, member)) {
        const cJSON *metadata = json_get(object_of(item, way), "metadata");

        ck_assert_str_eq(json_get_string(metadata, "name"), arena_printf(test_arena, "c%04zu", i));
        ck_assert_str_eq(json_string(json_path(metadata, "labels", "then", NULL), ""),
                         i % CHUNK == first ? then : "");
        i++;
    }
    ck_assert_uint_eq(i - first, way->len);
    ck_assert_int_eq(json_int(json_path(answer, "metadata", "remainingItemCount", NULL), -1),
                     way->remaining);
}

/* --- writes between two chunks ---------------------------------------------------------------- */

/* Of each chunk one changes; one goes that is last in the list, and another comes behind it. */
static void write_everywhere(void)
{
    if (chunks > 1)
        return;
    for (size_t i = 1; i < MANY; i += CHUNK)
        change(i);
    other("DELETE", path_of(MANY - 1), NULL, "", 200);
    make(MANY, 1);
}

TEST_EACH(all_chunks_are_of_one_revision_whatever_is_written_between_them, WAYS)
{
    const struct way *way = &WAYS[_i];
    uint64_t revision = kv_revision(kv_store.kv);

    api_accept = way->accept;

    const cJSON *answer = list(way->method, way->query, 200, write_everywhere);

    ck_assert_uint_ge(chunks, way->len / CHUNK + 1);
    ck_assert_uint_gt(kv_revision(kv_store.kv), revision);
    expect_version(answer, revision);
    expect_items(answer, way, 0, "");
}

/* --- a compaction between two chunks ---------------------------------------------------------- */

static void compact(void)
{
    meanwhile = NULL;
    for (size_t i = 0; i < 3 * (size_t)HISTORY; i++) {
        make(2 * MANY, 1);
        other("DELETE", path_of(2 * MANY), NULL, "", 200);
    }

    uint64_t written = kv_revision(kv_store.kv);

    fake_clock_advance(&kv_store.clock, 60000);
    kv_fixture_await_compacted(written - 2 * HISTORY);
}

TEST_GROUP("short history", setup_short, teardown);

TEST_EACH(a_list_whose_revision_is_compacted_is_refused_and_nothing_is_deleted, WAYS)
{
    api_accept = WAYS[_i].accept;
    ck_assert_str_eq(json_get_string(list(WAYS[_i].method, WAYS[_i].query, 410, compact), "reason"),
                     "Expired");
    api_accept = NULL;
    ck_assert_uint_eq(json_len(json_get(list("GET", "", 200, NULL), "items")), MANY);
}

/* --- memory ----------------------------------------------------------------------------------- */

static size_t most;

static void look(void)
{
    size_t now = api_allocated();

    most = now > most ? now : most;
}

TEST_GROUP("large", setup, teardown);

TEST_TIMES(a_list_of_large_objects_holds_a_chunk_of_them, 2)
{
    for (size_t i = 0; i < LARGE; i++)
        make(i, LARGE_BYTES);
    api_accept = TABLE;

    size_t before = most = api_allocated();
    const cJSON *answer = list("GET", _i ? "?limit=90" : "", 200, look);

    ck_assert_uint_eq(json_len(json_get(answer, "rows")), _i ? 90 : LARGE);
    ck_assert_int_eq(json_int(json_path(answer, "metadata", "remainingItemCount", NULL), -1),
                     _i ? LARGE - 90 : -1);
    ck_assert_uint_ge(chunks, LARGE * LARGE_BYTES / ((size_t)2 << 20));
    ck_assert_msg(most < before + HELD_BYTES, "%zu bytes more", most - before);
}

struct leaving {
    size_t asked, last;
};

static bool is_gone(void *ctx)
{
    struct leaving *leaving = ctx;

    return ++leaving->asked == leaving->last;
}

/* Of a chunk are at most 500 objects or 1 MiB: these are three. */
static const struct {
    const char *method;
    size_t last; /* question that is answered by yes */
    size_t left;
} LEAVING[] = { { "GET", 2, 6 }, { "DELETE", 2, 6 }, { "DELETE", 6, 4 } };

TEST_EACH(nothing_more_is_done_for_a_client_that_has_gone, LEAVING)
{
    struct leaving leaving = { .last = LEAVING[_i].last };
    const struct api_request request = { .method = LEAVING[_i].method,
                                         .path = CONFIGMAPS,
                                         .query = "",
                                         .user = &api_user,
                                         .is_gone = is_gone,
                                         .ctx = &leaving };
    struct api_reply reply;

    for (size_t i = 0; i < 6; i++)
        make(i, 700000);
    api_handle(api, test_arena, &request, &reply);
    ck_assert_int_eq(reply.status, 504);
    ck_assert_uint_eq(leaving.asked, leaving.last);
    ck_assert_uint_eq(json_len(json_get(ask("GET", CONFIGMAPS, NULL, 200), "items")),
                      LEAVING[_i].left);
}
