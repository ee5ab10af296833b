/* The limits of what clients send, and the requests that are long. */
#include <check.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/schema/schema.h"
#include "common/tests/heap.h"
#include "standalone/api/call.h"
#include "standalone/api/protobuf.h"
#include "standalone/api/selection.h"
#include "standalone/store/kv.h"
#include "standalone/tests/api_fixture.h"

/* --- sizes ------------------------------------------------------------------------------------ */

TEST_GROUP("all", api_setup, api_teardown);

/* Every patch that makes an object larger than the store takes. */
TEST(what_is_larger_than_an_object_may_be_is_not_written)
{
    char *text = arena_alloc(test_arena, KV_MAX_TEXT / 2 + 1, 1);
    const char *half = text, *version;

    memset(text, 'x', KV_MAX_TEXT / 2);
    version =
        meta(ask("POST", TASKS,
                 task_text("a", "", arena_printf(test_arena, ",\"metadata\":{\"a\":\"%s\"}", half)),
                 201),
             "resourceVersion");
    (void)ask_patch(TASKS "/a", "merge-patch+json",
                    arena_printf(test_arena, "{\"spec\":{\"metadata\":{\"b\":\"%s\"}}}", half),
                    413);
    (void)ask_patch(
        TASKS "/a", "json-patch+json",
        "[{\"op\":\"copy\",\"from\":\"/spec/metadata/a\",\"path\":\"/spec/metadata/b\"}]", 413);
    (void)ask_patch(
        TASKS "/a?fieldManager=m", "apply-patch+yaml",
        task_text("a", "", arena_printf(test_arena, ",\"metadata\":{\"b\":\"%s\"}", half)), 413);
    ck_assert_str_eq(meta(ask("GET", TASKS "/a", NULL, 200), "resourceVersion"), version);
}

/* `{"a":{"a":…1…}}` */
static const char *nested_members(size_t levels)
{
    const char *text = "1";

    while (levels-- > 0)
        text = arena_printf(test_arena, "{\"a\":%s}", text);
    return text;
}

/* As deep as can be read again, managed fields among it: each level of members is one of theirs, below five. */
TEST(what_was_stored_can_be_read)
{
    size_t refused = 0;

    for (size_t levels = JSON_MAX_DEPTH - 14; levels <= JSON_MAX_DEPTH - 4; levels++) {
        const char *name = arena_printf(test_arena, "t%zu", levels);
        const char *more = arena_printf(test_arena, ",\"metadata\":%s", nested_members(levels));
        const char *path = refused ? TASKS "?dryRun=All" : TASKS;

        api_try("POST", path, "json", task_text(name, "", more));
        if (api_answer.status == 201)
            (void)ask("GET", arena_printf(test_arena, TASKS "/%s", name), NULL, 200);
        else
            refused = refused ? refused : levels;
    }
    ck_assert_uint_gt(refused, JSON_MAX_DEPTH - 14);
    ck_assert_uint_lt(refused, JSON_MAX_DEPTH - 4);
    ck_assert_int_eq(api_answer.status, 400);
    (void)ask("GET", TASKS, NULL, 200);
}

/* An array of so many values, each written as `value` and a comma. */
static const char *array_of(size_t count, const char *value)
{
    size_t len = strlen(value) + 1;
    char *text = arena_alloc(test_arena, len * count + 2, 1);

    for (size_t i = 0; i < count; i++) {
        text[len * i] = i ? ',' : '[';
        memcpy(text + len * i + 1, value, len - 1);
    }
    text[len * count] = ']';
    return text;
}

static const char *many_zeros(void)
{
    return arena_printf(test_arena,
                        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                        "\"metadata\":{\"name\":\"a\"},\"data\":%s}",
                        array_of(1500000, "0"));
}

/* No JSON, and as many values as YAML of its length may have. */
static const char *many_lines(void)
{
    static const char HEAD[] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n";
    static const char LINE[] = "- 0    \n";
    const size_t lines = 370000;
    char *text = arena_alloc(test_arena, strlen(HEAD) + lines * strlen(LINE) + 1, 1);

    memcpy(text, HEAD, strlen(HEAD));
    for (size_t i = 0; i < lines; i++)
        memcpy(text + strlen(HEAD) + i * strlen(LINE), LINE, strlen(LINE));
    return text;
}

static void ck_too_many_values(const struct api_request *request)
{
    struct api_reply reply;

    heap_watch();
    api_handle(api, test_arena, request, &reply);

    size_t peak = heap_peak();

    ck_assert_int_eq(reply.status, 413);
    ck_assert_msg(strstr(reply.body, "more than 10000 values") != NULL, "%s", reply.body);
    ck_assert_uint_le(peak, 6 * request->body_len);
}

static struct api_request creation(const char *type, const char *body, size_t len)
{
    return (struct api_request){ .method = "POST",
                                 .path = CONFIGMAPS,
                                 .query = "",
                                 .content_type = type,
                                 .body = body,
                                 .body_len = len,
                                 .user = &api_user };
}

TEST_TIMES(a_body_of_too_many_values_is_refused_before_it_is_built, 2)
{
    const char *bodies[] = { many_zeros(), many_lines() };
    const struct api_request request =
        creation(_i ? "application/yaml" : "application/json", bodies[_i], strlen(bodies[_i]));

    ck_too_many_values(&request);
}

/* A length as a varint of four bytes. */
static char *put_len(char *at, size_t len)
{
    for (int i = 0; i < 4; i++)
        *at++ = (char)((len >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
    return at;
}

/* Entries of a map, owners and finalizers, of two bytes each. */
TEST_TIMES(a_protobuf_message_of_too_many_values_is_refused_before_it_is_built, 3)
{
    static const struct {
        char field;  /* key of the field in the object */
        char nested; /* key of the field in that one; 0: none */
    } FIELDS[] = { { 2 << 3 | 2, 0 }, { 1 << 3 | 2, 13 << 3 | 2 }, { 1 << 3 | 2, 14 << 3 | 2 } };
    static const char HEAD[] = "k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12";
    const size_t len = 3000000;
    char *body = arena_alloc(test_arena, sizeof(HEAD) + 10 + len, 1), *at = body;

    memcpy(at, HEAD, sizeof(HEAD) - 1);
    at += sizeof(HEAD) - 1;
    at = put_len(at, FIELDS[_i].nested ? len + 5 : len);
    if (FIELDS[_i].nested) {
        *at++ = FIELDS[_i].field;
        at = put_len(at, len);
    }
    for (size_t i = 0; i < len; i += 2) {
        *at++ = FIELDS[_i].nested ? FIELDS[_i].nested : FIELDS[_i].field;
        *at++ = 0;
    }

    const struct api_request request =
        creation("application/vnd.kubernetes.protobuf", body, (size_t)(at - body));

    ck_too_many_values(&request);
}

/* As kubectl create namespace x sends it. */
static const char NAMESPACE[] = "k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x05\n\x03\n\x01x";

TEST(protobuf_of_kubectl_is_read)
{
    struct error err;
    cJSON *object;

    ck_assert_int_eq(
        protobuf_read(test_arena, NAMESPACE, sizeof(NAMESPACE) - 1, API_MAX_VALUES, &object, &err),
        0);
    ck_assert_str_eq(
        json_text(test_arena, object, NULL),
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"x\"}}");
}

TEST(damaged_protobuf_is_refused_wherever_it_is_cut)
{
    struct error err;
    cJSON *object;

    for (size_t len = 0; len < sizeof(NAMESPACE) - 1; len++) {
        if (len != 21) /* between two fields: an object without anything */
            ck_assert_int_lt(
                protobuf_read(test_arena, NAMESPACE, len, API_MAX_VALUES, &object, &err), 0);
    }
}

/* --- values of what is stored ----------------------------------------------------------------- */

static const char *merge_of(const char *name, const char *value)
{
    return arena_printf(test_arena, "{\"spec\":{\"metadata\":{\"%s\":%s}}}", name, value);
}

/* The metadata is what answers have, for a test parses no more values than the server does. */
TEST(an_object_that_patches_make_larger_than_an_object_may_be_is_not_written)
{
    const char *part = array_of(API_MAX_VALUES - 1000, "      0"), *version;

    api_accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    (void)ask("POST", TASKS, task_text("a", "", ",\"metadata\":{}"), 201);
    (void)ask_patch(TASKS "/a", "merge-patch+json", merge_of("a", part), 200);
    version =
        meta(ask_patch(TASKS "/a", "json-patch+json",
                       arena_printf(test_arena,
                                    "[{\"op\":\"add\",\"path\":\"/spec/metadata/b\",\"value\":%s}]",
                                    part),
                       200),
             "resourceVersion");

    (void)ask_patch(TASKS "/a", "merge-patch+json", merge_of("c", part), 413);
    ck_assert_str_eq(meta(ask("GET", TASKS "/a", NULL, 200), "resourceVersion"), version);
}

/* As a version without this limit has stored it. */
TEST(an_object_that_is_larger_than_an_object_may_be_can_be_read_and_deleted)
{
    static const char KEY[] = "/registry/propeller.propeller.abstractmachines.fr/tasks/default/old";
    const char *more = arena_printf(test_arena, ",\"metadata\":{\"a\":%s}",
                                    array_of(3 * API_MAX_OBJECT_VALUES, "0"));
    const char *text = task_text("old", ",\"namespace\":\"default\",\"uid\":\"u\"", more);
    uint64_t revision;
    struct error err;

    ck_assert_int_eq(kv_put(kv_store.kv, KEY, text, strlen(text), 0, &revision, &err), 0);
    api_restart(NULL);
    api_collect();
    api_send("GET", TASKS "/old", "json", "", 200);
    api_send("GET", TASKS, "json", "", 200);
    ck_assert(strstr(api_answer.body, "\"name\":\"old\"") != NULL);
    (void)ask_patch(TASKS "/old", "merge-patch+json", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
                    413);
    (void)ask_patch(TASKS "/old", "merge-patch+json", "{\"spec\":{\"metadata\":null}}", 200);
    (void)ask("DELETE", TASKS "/old", NULL, 200);
    await_gone(TASKS "/old");
}

TEST(a_selector_has_no_requirements_and_no_values_without_end)
{
    const char *keys = "k", *values = "v";

    for (int i = 1; i < SELECTION_MAX_REQUIREMENTS; i++)
        keys = arena_printf(test_arena, "%s,k%d", keys, i);
    for (int i = 1; i < SELECTION_MAX_VALUES; i++)
        values = arena_printf(test_arena, "%s,v%d", values, i);
    (void)ask("GET", arena_printf(test_arena, TASKS "?labelSelector=%s", keys), NULL, 200);
    (void)ask("GET", arena_printf(test_arena, TASKS "?labelSelector=%s,l", keys), NULL, 400);
    (void)ask("GET", arena_printf(test_arena, TASKS "?labelSelector=k+in+(%s)", values), NULL, 200);
    (void)ask("GET", arena_printf(test_arena, TASKS "?labelSelector=k+in+(%s,w)", values), NULL,
              400);
}

/* --- unknown fields --------------------------------------------------------------------------- */

static const char *unknown_fields(size_t count, size_t name_len)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(8u << 20);
    char *name = arena_alloc(test_arena, name_len + 1, 1);
    bool fits = true;

    memset(name, 'n', name_len);
    for (size_t i = 0; i < count; i++)
        fits = fits && buf_printf(&text, ",\"%s%04zu\":1", name, i);
    ck_assert(fits);
    return arena_strdup(test_arena, buf_string(&text));
}

TEST(the_names_of_unknown_fields_are_not_told_without_end)
{
    const char *message;
    size_t warnings = 0;

    message = refusal("POST", TASKS "?fieldValidation=Strict",
                      task_text("a", unknown_fields(500, 1), unknown_fields(500, 1)), 400);
    ck_assert_ptr_nonnull(strstr(message, "\"metadata.n0000\""));
    ck_assert_uint_lt(strlen(message), 2000);
    message = refusal("POST", TASKS "?fieldValidation=Strict",
                      task_text("a", "", unknown_fields(50, 1000)), 400);
    ck_assert_uint_lt(strlen(message), 2000);

    const cJSON *made = ask("POST", TASKS, task_text("a", "", unknown_fields(500, 1)), 201);

    while (api_answer.warnings[warnings])
        warnings++;
    ck_assert_uint_eq(warnings, ARRAY_LEN(api_answer.warnings) - 1);
    ck_assert_uint_eq(json_len(json_get(made, "spec")), 6);
}

/* --- requests --------------------------------------------------------------------------------- */

static const struct {
    const char *method, *path, *query;
    bool is_long;
} LENGTHS[] = {
    { "GET", "/api/v1/secrets", "", true },
    { "GET", "/apis/g.io/v1/tasks", "labelSelector=a+in+(b)&watch=false", true },
    { "DELETE", "/api/v1/namespaces/x/secrets", "", true },
    { "GET", "/api/v1/secrets", "limit=x", true }, /* which is refused, as a list */
    { "GET", "/api/v1/secrets", "watch=1", false },
    { "GET", "/api/v1/namespaces/x/secrets/a", "", false },
    { "DELETE", "/api/v1/namespaces/x/secrets/a", "", false },
    { "POST", "/api/v1/namespaces/x/secrets", "", false },
    { "PATCH", "/api/v1/namespaces/x/secrets/a", "", false },
    { "GET", "/apis/g.io/v1", "", false },
    { "GET", "/readyz", "", false },
};

TEST_EACH(a_request_is_long_if_it_reads_a_collection, LENGTHS)
{
    const struct api_request request = { .method = LENGTHS[_i].method,
                                         .path = LENGTHS[_i].path,
                                         .query = LENGTHS[_i].query };

    ck_assert_int_eq(api_is_long(test_arena, &request), LENGTHS[_i].is_long);
}
