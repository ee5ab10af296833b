/* Credentials in the format of docker. */
#include "controller/registry/credentials.h"

#include <string.h>

#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

TEST_GROUP("registry credentials", arena_set_up, arena_tear_down);

/* "user:pass" */
#define AUTH "\"auth\":\"dXNlcjpwYXNz\""

static const struct {
    const char *text;
    const char *logins; /* decoded, one a line */
} CONFIGS[] = {
    { "{\"auths\":{\"r.example\":{" AUTH "}}}", "user:pass\n" },
    { "{\"auths\":{\"https://r.example\":{" AUTH "}}}", "user:pass\n" },
    { "{\"auths\":{\"https://r.example/v2/\":{" AUTH "}}}", "user:pass\n" },
    { "{\"auths\":{\"R.Example/v1\":{" AUTH "}}}", "user:pass\n" },
    { "{\"auths\":{\"r.example\":{\"username\":\"u\",\"password\":\"p:q\"}}}", "u:p:q\n" },
    { "{\"auths\":{\"r.example\":{\"username\":\"a\",\"password\":\"1\"},"
      "\"r.example/acme\":{\"username\":\"b\",\"password\":\"2\"},"
      "\"r.example/acme/add\":{\"username\":\"c\",\"password\":\"3\"},"
      "\"r.example/acm\":{\"username\":\"d\",\"password\":\"4\"},"
      "\"r.example/acme/add/more\":{\"username\":\"e\",\"password\":\"5\"}}}",
      "c:3\nb:2\na:1\n" },
    { "{\"auths\":{\"other.example\":{" AUTH "},\"r.example:443\":{" AUTH "},\"xr.example\":{" AUTH
      "}}}",
      "" },
    { "{\"auths\":{\"r.example.evil.example\":{" AUTH "}}}", "" },
    { "{}", "" },
    { "{\"auths\":{}}", "" },
    /* without user or password, or not base64 */
    { "{\"auths\":{\"r.example\":{}}}", "" },
    { "{\"auths\":{\"r.example\":\"x\"}}", "" },
    { "{\"auths\":{\"r.example\":{\"username\":\"u\"}}}", "" },
    { "{\"auths\":{\"r.example\":{\"username\":\"u:v\",\"password\":\"p\"}}}", "" },
    { "{\"auths\":{\"r.example\":{\"auth\":\"dXNlcg==\"}}}", "" },
    { "{\"auths\":{\"r.example\":{\"auth\":\"OnBhc3M=\"}}}", "" },
    { "{\"auths\":{\"r.example\":{\"auth\":\"dXNlcjo=\"}}}", "" },
    { "{\"auths\":{\"r.example\":{\"auth\":\"not base64\"}}}", "" },
};

static const char *decoded(const struct registry_logins *logins)
{
    const char *text = "";

    for (size_t i = 0; i < logins->len; i++)
        text = arena_printf(arena, "%s%s\n", text,
                            base64_decode(arena, logins->items[i], strlen(logins->items[i]), NULL));
    return text;
}

TEST_EACH(entries_of_the_host_are_found_with_the_longest_path_first, CONFIGS)
{
    struct registry_logins logins = { 0 };

    ck_assert_int_eq(registry_logins_add(arena, CONFIGS[_i].text, strlen(CONFIGS[_i].text), false,
                                         "r.example", "acme/add", &logins, NULL),
                     0);
    ck_assert_str_eq(decoded(&logins), CONFIGS[_i].logins);
}

static const char *const NO_CONFIGS[] = {
    "", "x", "[]", "\"x\"", "{\"auths\":[]}", "{\"auths\":1}", "{\"auths\":{}} secret",
};

TEST_EACH(text_that_is_no_config_is_refused_without_a_word_of_it, NO_CONFIGS)
{
    struct registry_logins logins = { 0 };
    struct error err = { 0 };

    ck_assert_int_eq(registry_logins_add(arena, NO_CONFIGS[_i], strlen(NO_CONFIGS[_i]), false,
                                         "r.example", "a", &logins, &err),
                     -ERROR_INVALID);
    ck_assert_ptr_null(strstr(err.message, "secret"));
}

static const struct {
    const char *type, *key, *value, *logins; /* NULL: refused */
} SECRETS[] = {
    { "kubernetes.io/dockerconfigjson", ".dockerconfigjson",
      "{\"auths\":{\"r.example\":{" AUTH "}}}", "user:pass\n" },
    { "kubernetes.io/dockercfg", ".dockercfg", "{\"r.example\":{" AUTH "}}", "user:pass\n" },
    { "kubernetes.io/dockercfg", ".dockercfg", "{\"auths\":{\"r.example\":{" AUTH "}}}", "" },
    { "kubernetes.io/dockerconfigjson", ".dockercfg", "{}", NULL },
    { "kubernetes.io/dockerconfigjson", ".dockerconfigjson", "x", NULL },
    { "Opaque", ".dockerconfigjson", "{\"auths\":{\"r.example\":{" AUTH "}}}", NULL },
};

TEST_EACH(secret_counts_by_its_type, SECRETS)
{
    struct registry_logins logins = { 0 };
    struct error err = { 0 };
    cJSON *secret = json_object(arena);

    json_set_string(secret, "type", SECRETS[_i].type);
    json_set_string(json_set_object(secret, "data"), SECRETS[_i].key,
                    base64_encode(arena, SECRETS[_i].value, strlen(SECRETS[_i].value)));

    int r = registry_logins_add_secret(arena, secret, "r.example", "a", &logins, &err);

    ck_assert_int_eq(r, SECRETS[_i].logins ? 0 : -ERROR_INVALID);
    ck_assert_str_eq(decoded(&logins), SECRETS[_i].logins ? SECRETS[_i].logins : "");
}

TEST(secret_that_is_not_base64_is_refused)
{
    struct registry_logins logins = { 0 };
    struct error err = { 0 };
    const cJSON *secret = parsed(arena, "{\"type\":\"kubernetes.io/dockerconfigjson\",\"data\":{"
                                        "\".dockerconfigjson\":\"%%%\"}}");

    ck_assert_int_eq(registry_logins_add_secret(arena, secret, "r.example", "a", &logins, &err),
                     -ERROR_INVALID);
}

TEST(config_of_a_mebibyte_of_values_is_refused)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(2 << 20);
    struct registry_logins logins = { 0 };
    struct error err = { 0 };

    ck_assert(buf_append_string(&text, "{\"auths\":{\"a\":[0"));
    while (text.len < 1 << 20)
        ck_assert(buf_append_string(&text, ",0"));
    ck_assert(buf_append_string(&text, "]}}"));
    ck_assert_int_eq(
        registry_logins_add(arena, text.data, text.len, false, "r.example", "a", &logins, &err),
        -ERROR_INVALID);
    ck_assert_uint_eq(logins.len, 0);
}

TEST(more_entries_than_are_tried_keep_the_most_exact)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(1 << 20);
    struct registry_logins logins = { 0 };
    const char *path = "a";

    ck_assert(buf_append_string(&text, "{\"auths\":{\"r.example\":{" AUTH "}"));
    for (int i = 0; i < 2 * REGISTRY_MAX_LOGINS; i++) {
        ck_assert(buf_printf(&text, ",\"r.example/%s\":{\"username\":\"u\",\"password\":\"%d\"}",
                             path, i));
        path = arena_printf(arena, "%s/a", path);
    }
    ck_assert(buf_append_string(&text, "}}"));
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(registry_logins_add(arena, text.data, text.len, false, "r.example", path,
                                             &logins, NULL),
                         0);
    ck_assert_uint_eq(logins.len, REGISTRY_MAX_LOGINS);
    ck_assert_str_eq(base64_decode(arena, logins.items[0], strlen(logins.items[0]), NULL),
                     arena_printf(arena, "u:%d", 2 * REGISTRY_MAX_LOGINS - 1));
}
