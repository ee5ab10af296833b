/* Four times as many entries take about four times as long, whatever is done with them. */
#include <math.h>
#include <time.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

/* Sixteen times as long takes what looks at each entry for each; the rest is for memory that does not fit into
 * a cache any more, and for whoever else is at work. */
#define GROWTH 4
/* The plain flavour proves how it grows. Sanitizers, under which other things take time, look at the ways
 * there: each once, with few entries. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAX_RATIO ((double)INFINITY)
#define ENTRIES 1000
#define TIMES 1
#else
#define MAX_RATIO 8.0
#define ENTRIES 1500 /* a body has at most 10,000 values */
#define TIMES 3
#endif
/* Where others took the caches or the processor in the middle of it, it is measured again. */
#define TRIES 10

/* `count` entries, "#" in each replaced by a number; not in the order of their numbers. */
static const char *entries(size_t count, const char *entry)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT((size_t)16 << 20);
    const char *hash = strchr(entry, '#');

    for (size_t i = 0; i < count; i++)
        ck_assert(buf_printf(&text, "%s%.*s%06zu%s", i ? "," : "", (int)(hash - entry), entry,
                             i * 7919 % count, hash + 1));
    return arena_strdup(test_arena, buf_string(&text));
}

/* "%s" of format is replaced by entries. */
static const char *with(const char *format, size_t count, const char *entry)
{
    const char *hole = strstr(format, "%s");

    return arena_printf(test_arena, "%.*s%s%s", (int)(hole - format), format, entries(count, entry),
                        hole + 2);
}

#define CONFIGMAP "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}"
#define ACCOUNT "{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"a\"}"
#define ACCOUNTS "/api/v1/namespaces/default/serviceaccounts"
#define SECRETS "/api/v1/namespaces/default/secrets"
#define TASK_OF_SPEC                                                                               \
    "{\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"Task\","            \
    "\"metadata\":{\"name\":\"a\"},\"spec\":{\"name\":\"a\",\"imageUrl\":\"i\","
#define JOBS "/apis/propeller.propeller.abstractmachines.fr/v1/namespaces/default/propellerjobs"
#define JOB                                                                                        \
    "{\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"PropellerJob\","    \
    "\"metadata\":{\"name\":\"a\"},\"spec\":{\"name\":\"a\",\"tasks\":[%s]}}"
#define APPLY "apply-patch+yaml"
#define MANAGED                                                                                    \
    ",\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"manager\":\"m\",\"operation\":"           \
    "\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{%s}}"  \
    "}]}"

/* live: the object that is there, NULL: none; the request is a dry run. */
static const struct {
    const char *name, *collection;
    const char *live, *live_entry;
    const char *method, *query, *type, *body, *entry;
    int status;
} CASES[] = {
    { "create", CONFIGMAPS, NULL, NULL, "POST", "", "json",
      CONFIGMAP ",\"binaryData\":{\"x\":\"\"},\"data\":{%s}}", "\"k#\":\"v\"", 201 },
    { "create with owners", CONFIGMAPS, NULL, NULL, "POST", "", "json",
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\","
      "\"ownerReferences\":"
      "[%s]}}",
      "{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"n\",\"uid\":\"#\",\"controller\":true}",
      422 },
    { "create with managed fields", CONFIGMAPS, NULL, NULL, "POST", "", "json",
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"" MANAGED "}", "\"f:k#\":{}", 201 },
    { "unknown fields", TASKS, NULL, NULL, "POST", "fieldValidation=Strict&", "json",
      TASK_OF_SPEC "%s}}", "\"k#\":1", 400 },
    { "too many items with defaults", JOBS, NULL, NULL, "POST", "", "json", JOB,
      "{\"name\":\"n#\"}", 422 },
    { "update", CONFIGMAPS, CONFIGMAP ",\"data\":{%s}}", "\"k#\":\"v\"", "PUT", "", "json",
      CONFIGMAP ",\"data\":{%s}}", "\"k#\":\"w\"", 200 },
    { "merge patch", CONFIGMAPS, CONFIGMAP ",\"data\":{%s}}", "\"k#\":\"v\"", "PATCH", "",
      "merge-patch+json", "{\"data\":{%s}}", "\"k#\":\"w\"", 200 },
    { "strategic patch", CONFIGMAPS, CONFIGMAP ",\"data\":{%s}}", "\"k#\":\"v\"", "PATCH", "",
      "strategic-merge-patch+json", "{\"data\":{%s}}", "\"k#\":\"w\"", 200 },
    { "strategic patch of a list", ACCOUNTS, ACCOUNT ",\"secrets\":[%s]}", "{\"name\":\"n#\"}",
      "PATCH", "", "strategic-merge-patch+json", "{\"secrets\":[%s]}", "{\"name\":\"m#\"}", 200 },
    { "apply", CONFIGMAPS, CONFIGMAP ",\"data\":{%s}}", "\"k#\":\"v\"", "PATCH",
      "fieldManager=m&force=true&", APPLY, CONFIGMAP ",\"data\":{%s}}", "\"k#\":\"w\"", 200 },
    { "apply with conflicts", CONFIGMAPS, CONFIGMAP ",\"data\":{%s}}", "\"k#\":\"v\"", "PATCH",
      "fieldManager=m&", APPLY, CONFIGMAP ",\"data\":{%s}}", "\"k#\":\"w\"", 409 },
    { "apply of a list", ACCOUNTS, ACCOUNT ",\"secrets\":[%s]}", "{\"name\":\"n#\"}", "PATCH",
      "fieldManager=m&force=true&", APPLY, ACCOUNT ",\"secrets\":[%s]}", "{\"name\":\"m#\"}", 200 },
};

static double cpu_s(void)
{
    struct timespec now;

    ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_of(int i, const char *body)
{
    bool creates = str_equal(CASES[i].method, "POST");
    const char *path = arena_printf(test_arena, "%s%s?%sdryRun=All", CASES[i].collection,
                                    creates ? "" : "/a", CASES[i].query);
    double best = 1e9;

    for (int k = 0; k < TIMES; k++) {
        double start = cpu_s();

        api_send(CASES[i].method, path, CASES[i].type, body, CASES[i].status);

        double taken = cpu_s() - start;
        best = taken < best ? taken : best;
    }
    return best;
}

static double seconds_with(int i, size_t count)
{
    const char *body = with(CASES[i].body, count, CASES[i].entry);
    double seconds;

    if (CASES[i].live)
        (void)ask("POST", CASES[i].collection, with(CASES[i].live, count, CASES[i].live_entry),
                  201);
    seconds = seconds_of(i, body);
    if (CASES[i].live) {
        const char *path = arena_printf(test_arena, "%s/a", CASES[i].collection);

        (void)ask_patch(path, "merge-patch+json", "{\"metadata\":{\"finalizers\":null}}", 200);
        (void)ask("DELETE", path, NULL, 200);
    }
    return seconds;
}

TEST_GROUP("all", api_setup, api_teardown);

TEST_EACH(four_times_as_many_entries_take_about_four_times_as_long, CASES)
{
    double few = seconds_with(_i, ENTRIES / GROWTH), many = seconds_with(_i, ENTRIES);

    for (int i = 1; i < TRIES && many >= MAX_RATIO * few; i++) {
        few = fmin(few, seconds_with(_i, ENTRIES / GROWTH));
        many = fmin(many, seconds_with(_i, ENTRIES));
    }
    ck_assert_msg(many < MAX_RATIO * few, "%s: %.1f ms for %d entries, %.1f ms for %d",
                  CASES[_i].name, few * 1e3, ENTRIES / GROWTH, many * 1e3, ENTRIES);
}
