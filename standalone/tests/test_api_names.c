/* Names that the server makes: one that is taken is no reason to refuse, until as many were as may be. */
#include <string.h>

#include "common/base/str.h"
#include "standalone/api/call.h"
#include "standalone/tests/api_fixture.h"

#define PREFIXED "{\"metadata\":{\"generateName\":\"made-\"%s}}"
/* As many as the API server tries. */
#define TRIES 8

static unsigned names_made, names_alike;

/* The first of them are all the same one. */
static const char *make_uuid(char ret[static UUID_LEN])
{
    unsigned number = names_made++ < names_alike ? 0 : names_made;

    (void)snprintf(ret, UUID_LEN, "00000000-0000-4000-8000-%010x00", number);
    return ret;
}

/* From here on so many names are the one that is taken. */
static void take_names(unsigned alike)
{
    names_made = 0;
    names_alike = alike;
}

static void setup(void)
{
    api_setup();
    api->make_uuid = make_uuid;
    take_names(1);
}

TEST_GROUP("all", setup, api_teardown);

static const char *prefixed(const char *more)
{
    return arena_printf(test_arena, PREFIXED, more);
}

TEST(another_name_is_tried_when_the_generated_one_is_taken)
{
    const char *first = meta(ask("POST", CONFIGMAPS, prefixed(""), 201), "name");

    ck_assert_str_eq(first, "made-bbbbb");
    take_names(TRIES - 1);

    const cJSON *made = ask("POST", CONFIGMAPS,
                            prefixed(",\"labels\":{\"a\":\"b\"},\"namespace\":\"default\""), 201);

    ck_assert_uint_eq(names_made, TRIES);
    ck_assert_str_ne(meta(made, "name"), first);
    ck_assert(str_has_prefix(meta(made, "name"), "made-"));
    ck_assert_uint_eq(kv_fixture_count(api_store.kv, "/registry/core/configmaps/default/"), 2);
}

TEST(so_it_is_when_it_is_tried_only)
{
    (void)ask("POST", TASKS, task_text("made-bbbbb", "", ""), 201);
    take_names(TRIES - 1);
    ck_assert_str_ne(meta(ask("POST", TASKS "?dryRun=All",
                              "{\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\","
                              "\"kind\":\"Task\",\"metadata\":{\"generateName\":\"made-\"},"
                              "\"spec\":{\"name\":\"n\",\"file\":\"AGFzbQEAAAA=\"}}",
                              201),
                          "name"),
                     "made-bbbbb");
}

TEST(who_finds_all_of_them_taken_is_told_that_the_server_made_them)
{
    (void)ask("POST", CONFIGMAPS, prefixed(""), 201);
    take_names(TRIES);
    ck_assert_str_eq(refusal("POST", CONFIGMAPS, prefixed(""), 409),
                     "AlreadyExists: configmaps \"made-bbbbb\" already exists, the server was not "
                     "able to generate a unique name for the object");
    ck_assert_uint_eq(names_made, TRIES);
    ck_assert_uint_eq(api_answer.retry_after_s, 1);
    ck_assert_uint_eq(kv_fixture_count(api_store.kv, "/registry/core/configmaps/default/"), 1);
}

TEST(a_name_that_was_sent_is_tried_once)
{
    static const char NAMED[] = ",\"name\":\"mine\"";

    (void)ask("POST", CONFIGMAPS, prefixed(NAMED), 201);
    ck_assert_str_eq(refusal("POST", CONFIGMAPS, prefixed(NAMED), 409),
                     "AlreadyExists: configmaps \"mine\" already exists, the server was not able "
                     "to generate a unique name for the object");
    ck_assert_uint_eq(names_made, 0);
}
