/* The query of a request that hands over a checkpoint: what is taken, and what is said of the rest. */
#include "common/base/str.h"
#include "common/tests/suite.h"
#include "controller/checkpoint/checkpoint_query.h"

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define COUNT ": must be an integer from 0 to 2^53 - 1"
#define URI                                                                                        \
    "uri: must be an address of file://, s3://, gs:// or https:// without user information, of "   \
    "at "                                                                                          \
    "most 1024 characters"

static struct arena *arena;

static void set_up(void)
{
    arena = arena_create();
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("checkpoint_query", set_up, tear_down);

TEST(a_query_with_every_parameter_is_read)
{
    struct checkpoint_query query;

    ck_assert_int_eq(checkpoint_query_parse(arena,
                                            "samples=7&uri=s3%3A%2F%2Fb%2Fa%20b&step="
                                            "9007199254740991&sha256=" SHA,
                                            &query, NULL),
                     0);
    ck_assert_int_eq(query.step, CHECKPOINT_MAX_STEP);
    ck_assert_int_eq(query.samples.value, 7);
    ck_assert_str_eq(query.uri, "s3://b/a b");
    ck_assert_str_eq(query.sha256, SHA);
}

TEST(a_step_alone_is_enough)
{
    struct checkpoint_query query;

    ck_assert_int_eq(checkpoint_query_parse(arena, "step=0", &query, NULL), 0);
    ck_assert_int_eq(query.step, 0);
    ck_assert(!query.samples.set);
    ck_assert_ptr_null(query.uri);
}

static const struct {
    const char *query, *problem;
} BAD[] = {
    { "", "step: is needed" },
    { NULL, "step: is needed" },
    { "samples=1", "step: is needed" },
    { "step", "step" COUNT },
    { "step=", "step" COUNT },
    { "step=-1", "step" COUNT },
    { "step=+1", "step" COUNT },
    { "step=1e3", "step" COUNT },
    { "step=1.0", "step" COUNT },
    { "step=9007199254740992", "step" COUNT },
    { "step=99999999999999999999", "step" COUNT },
    { "step=1&step=2", "step: is given twice" },
    { "step=1&samples=x", "samples" COUNT },
    { "step=1&sha256=ab", "sha256: must be 64 lower-case hexadecimal digits" },
    { "step=1&sha256=" SHA "0", "sha256: must be 64 lower-case hexadecimal digits" },
    { "step=1&uri=s3://b/k", "sha256: is needed with uri" },
    { "step=1&uri=ftp://b/k&sha256=" SHA, URI },
    { "step=1&uri=s3://&sha256=" SHA, URI },
    { "step=1&uri=https://u:p@h/k&sha256=" SHA, URI },
    { "step=1&uri=file:///a%0ab&sha256=" SHA, URI },
    { "step=1&uri=file:///a%00b&sha256=" SHA, "uri: is not percent-encoded" },
    { "step=1&uri=file:///a%zz&sha256=" SHA, "uri: is not percent-encoded" },
    { "step=1&uri=file:///a%4&sha256=" SHA, "uri: is not percent-encoded" },
    { "step=1&setp=2", "setp: is unknown: allowed are step, samples, sha256 and uri" },
    { "&", ": is unknown: allowed are step, samples, sha256 and uri" },
};

TEST_EACH(what_cannot_be_used_is_named, BAD)
{
    struct checkpoint_query query;
    struct error err = { 0 };

    ck_assert_int_eq(checkpoint_query_parse(arena, BAD[_i].query, &query, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, BAD[_i].problem);
}

TEST(an_at_sign_behind_the_host_is_no_user)
{
    struct checkpoint_query query;

    ck_assert_int_eq(
        checkpoint_query_parse(arena, "step=1&uri=https://h/a@b&sha256=" SHA, &query, NULL), 0);
}

TEST(a_query_has_a_limit)
{
    struct checkpoint_query query;
    struct error err = { 0 };
    char *text = arena_alloc(arena, CHECKPOINT_MAX_QUERY + 2, 1);

    memset(text, 'a', CHECKPOINT_MAX_QUERY + 1);
    text[CHECKPOINT_MAX_QUERY + 1] = '\0';
    ck_assert_int_eq(checkpoint_query_parse(arena, text, &query, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "the query has more than 8192 bytes");
}
