/* The parts of the API that know no store: paths, selectors, users, protobuf, what a deletion means. */
#include <check.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "standalone/api/api.h"
#include "standalone/api/protobuf.h"
#include "standalone/api/request.h"
#include "standalone/api/selection.h"
#include "standalone/server/users.h"

static const struct {
    const char *path;
    enum route_type type;
    const char *said; /* group version ns plural name subresource */
} ROUTES[] = {
    { "/api/v1/namespaces/x", ROUTE_OBJECTS, " v1  namespaces x " },
    { "/api/v1/namespaces/x/secrets", ROUTE_OBJECTS, " v1 x secrets  " },
    { "/apis/g.io/v1/namespaces/x/tasks%2Fa%2Db/status", ROUTE_OBJECTS,
      "g.io v1 x tasks a-b status" },
    { "/apis/g.io/v1/tasks", ROUTE_OBJECTS, "g.io v1  tasks  " },
    { "/apis/g.io/v1", ROUTE_DOCUMENT, "     " },
    { "/apis/", ROUTE_DOCUMENT, "     " },
    { "/readyz/ping", ROUTE_HEALTH, "     " },
    { "/api/v1/namespaces/x/secrets/a/b/c", ROUTE_OBJECTS, " v1 x secrets a b" },
    { "/api/v1//secrets", ROUTE_UNKNOWN, "     " },
    { "/api/v1/namespaces/%00", ROUTE_UNKNOWN, "     " },
    { "/api/v1/namespaces/%4", ROUTE_UNKNOWN, "     " },
    { "/other", ROUTE_DOCUMENT, "     " },
};

TEST_GROUP("all", arena_set_up, arena_tear_down);

TEST_EACH(a_path_says_what_is_meant, ROUTES)
{
    struct route route = route_parse(arena, ROUTES[_i].path);

    ck_assert_int_eq(route.type, ROUTES[_i].type);
    ck_assert_str_eq(arena_printf(arena, "%s %s %s %s %s %s", route.group, route.version, route.ns,
                                  route.plural, route.name, route.subresource),
                     ROUTES[_i].said);
    ck_assert_int_eq(route.deeper, str_has_suffix(ROUTES[_i].path, "/b/c"));
}

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

static const struct {
    const char *selector;
    int matches; /* -1: it cannot be read */
} SELECTORS[] = {
    { "", 1 },        { "a", 1 },        { "!a", 0 },   { "c", 0 },           { "a=1", 1 },
    { "a==2", 0 },    { "a!=2,b=x", 1 }, { "c!=1", 1 }, { "a in (0, 1)", 1 }, { "a notin (1)", 0 },
    { "a in 1", -1 }, { "=1", -1 },      { "a>0", -1 }, { "a=1 b=x", -1 },
};

static const struct resource CONFIGMAPS = {
    .kind = { .group = "", .version = "v1", .plural = "configmaps", .namespaced = true }
};

/* -1: the selector cannot be read. */
static int selects(const char *labels, const char *fields, const char *object)
{
    struct selection selection;
    struct error err = { 0 };
    int r = selection_parse(arena, &CONFIGMAPS, labels, fields, &selection, &err);

    ck_assert_int_eq(r < 0, *err.message != '\0');
    return r < 0 ? -1 : selection_matches(&selection, parsed(arena, object));
}

TEST_EACH(a_label_selector_selects, SELECTORS)
{
    ck_assert_int_eq(selects(SELECTORS[_i].selector, "",
                             "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"x\"}}}"),
                     SELECTORS[_i].matches);
}

static const struct {
    const char *selector;
    int matches; /* -1: it cannot be read */
} FIELDS[] = {
    { "", 1 },
    { "metadata.name=a", 1 },
    { "metadata.name==a,metadata.namespace!=b", 0 },
    { "metadata.name!=x", 1 },
    { "metadata.name", -1 },
    { "data.k=v", -1 },
};

TEST_EACH(a_field_selector_selects, FIELDS)
{
    ck_assert_int_eq(
        selects("", FIELDS[_i].selector, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}"),
        FIELDS[_i].matches);
}

TEST(a_selector_has_no_requirements_and_no_values_without_end)
{
    const char *text = "k", *values = "v";

    for (int i = 1; i < SELECTION_MAX_REQUIREMENTS; i++)
        text = arena_printf(arena, "%s,k%d", text, i);
    ck_assert_int_eq(selects(text, "", "{}"), 0);
    ck_assert_int_eq(selects(arena_printf(arena, "%s,more", text), "", "{}"), -1);
    for (int i = 1; i < SELECTION_MAX_VALUES; i++)
        values = arena_printf(arena, "%s,v%d", values, i);
    ck_assert_int_eq(selects(arena_printf(arena, "k in (%s)", values), "", "{}"), 0);
    ck_assert_int_eq(selects(arena_printf(arena, "k in (%s,more)", values), "", "{}"), -1);
}

static const struct {
    const char *accept;
    enum format_type type;
} FORMATS[] = {
    { NULL, FORMAT_OBJECT },
    { "application/json", FORMAT_OBJECT },
    { "text/html", FORMAT_OBJECT },
    { "application/vnd.kubernetes.protobuf,application/json", FORMAT_OBJECT },
    { "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", FORMAT_TABLE },
    { "application/json;as=Table;v=v7;g=meta.k8s.io,application/json", FORMAT_OBJECT },
    { "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1, "
      "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
      FORMAT_METADATA },
    { "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", FORMAT_AGGREGATED },
    { "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", FORMAT_PROTOBUF },
};

TEST_EACH(the_first_form_that_can_be_answered_is_taken, FORMATS)
{
    ck_assert_int_eq(format_of(arena, FORMATS[_i].accept).type, FORMATS[_i].type);
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

static const struct {
    enum role role;
    const char *verb, *group, *plural;
    bool may;
} DECISIONS[] = {
    { ROLE_ADMIN, "*", "*", "*", true },
    { ROLE_ADMIN, "impersonate", "", "users", true },
    { ROLE_EDIT, "*", "*", "*", false },
    { ROLE_EDIT, "*", "", "configmaps", false },
    { ROLE_EDIT, "get", "", "*", false },
    { ROLE_EDIT, "impersonate", "", "users", false },
    { ROLE_EDIT, "get", "", "secrets", true },
    { ROLE_EDIT, "delete", "", "namespaces", false },
    { ROLE_EDIT, "deletecollection", "", "configmaps", true },
    { ROLE_VIEW, "list", "", "configmaps", true },
    { ROLE_VIEW, "list", "*", "*", false },
    { ROLE_VIEW, "get", "", "secrets", false },
    { ROLE_VIEW, "patch", "", "configmaps", false },
    { ROLE_NONE, "get", "", "configmaps", false },
    { ROLE_NONE, "create", "authorization.k8s.io", "selfsubjectaccessreviews", true },
};

TEST_EACH(a_role_may_what_it_says, DECISIONS)
{
    const struct user user = { .name = "u", .role = DECISIONS[_i].role };

    ck_assert(user_may(&user, DECISIONS[_i].verb, DECISIONS[_i].group, DECISIONS[_i].plural) ==
              DECISIONS[_i].may);
}
