/* The parts of the API that know no store: protobuf, tokens, the length of requests. */
#include <check.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "standalone/api/api.h"
#include "standalone/api/protobuf.h"
#include "standalone/server/users.h"

TEST_GROUP("all", arena_set_up, arena_tear_down);

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

    ck_assert_int_eq(api_is_long(arena, &request), LENGTHS[_i].is_long);
}

/* As kubectl create namespace x sends it. */
static const char NAMESPACE[] = "k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x05\n\x03\n\x01x";

TEST(protobuf_of_kubectl_is_read)
{
    struct error err;
    cJSON *object;

    ck_assert_int_eq(
        protobuf_read(arena, NAMESPACE, sizeof(NAMESPACE) - 1, API_MAX_VALUES, &object, &err), 0);
    ck_assert_str_eq(
        json_text(arena, object, NULL),
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"x\"}}");
}

TEST(damaged_protobuf_is_refused_wherever_it_is_cut)
{
    struct error err;
    cJSON *object;

    for (size_t len = 0; len < sizeof(NAMESPACE) - 1; len++) {
        if (len != 21) /* between two fields: an object without anything */
            ck_assert_int_lt(protobuf_read(arena, NAMESPACE, len, API_MAX_VALUES, &object, &err),
                             0);
    }
}

static const struct user *by_token(const struct users *users, const char *token)
{
    char hash[SHA256_HEX_LEN];

    return users_find_token(users, sha256_hex(token, strlen(token), hash));
}

TEST(a_token_is_its_users_alone)
{
    const char *line;
    struct users *users;
    struct error err;

    ck_assert_int_eq(users_line(arena, "eve", ROLE_VIEW, "token", &line, &err), 0);
    ck_assert_int_eq(users_parse(arena_printf(arena, "# who\n\n%s", line), &users, &err), 0);
    ck_assert_str_eq(by_token(users, "token")->name, "eve");
    ck_assert_int_eq(by_token(users, "token")->role, ROLE_VIEW);
    ck_assert_ptr_null(by_token(users, "toke"));
    ck_assert_ptr_null(by_token(users, ""));
    ck_assert(!strstr(line, "token"));
    users_destroy(users);
    ck_assert_int_lt(users_parse("eve king 00", &users, &err), 0);
    ck_assert_str_eq(err.message, "line 1: the role of 'eve' must be admin, edit or view");
    ck_assert_int_lt(users_parse("\neve view 00", &users, &err), 0);
    ck_assert_int_lt(users_parse("\n# nobody\n", &users, &err), 0);
    ck_assert_int_lt(users_parse("e\x1bve view 00", &users, &err), 0);
    ck_assert_str_eq(err.message,
                     "line 1: the user's name holds control characters, or is no UTF-8");
    ck_assert_int_lt(users_line(arena, "e\xc2\x80ve", ROLE_VIEW, "token", &line, &err), 0);
    ck_assert_int_lt(users_line(arena, "e ve", ROLE_VIEW, "token", &line, &err), 0);
}
