/* The manifests of approve and device add: key, Secret, environment file, account. */
#include <string.h>

#include "common/api/enrollment.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "plugin/commands/enroll_manifest.h"

#define KEY "planted-key"

static struct error err;

TEST_GROUP("enroll", arena_set_up, arena_tear_down);

static const cJSON *proplet_of(const char *client_id)
{
    const struct enrollment_spec spec = { .mqtt_address = "mqtts://b:8883", .domain_id = "d" };
    const struct enrollment_identity identity = {
        .enrollment = "lab", .name = "p", .ns = "ns", .channel_id = "c", .client_id = client_id
    };

    return enrollment_proplet(arena, &spec, &identity, true);
}

TEST(key_is_in_the_secret_and_the_environment_file_only)
{
    const cJSON *proplet = proplet_of("device-1");
    const char *text = enroll_env_file(arena, proplet, KEY);

    ck_assert_ptr_null(strstr(json_text(arena, proplet, NULL), KEY));
    ck_assert_str_eq(
        json_text(arena, enroll_secret(arena, proplet, KEY), NULL),
        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"p-key\",\"namespace\":"
        "\"ns\",\"labels\":{\"propeller.propeller.abstractmachines.fr/enrollment\":\"lab\"}},"
        "\"type\":\"Opaque\",\"data\":{\"clientKey\":\"cGxhbnRlZC1rZXk=\"}}");
    ck_assert(str_has_prefix(text, "PROPLET_MQTT_ADDRESS=mqtts://b:8883\n"
                                   "PROPLET_DOMAIN_ID=d\nPROPLET_TENANT_ID=d\n"
                                   "PROPLET_CHANNEL_ID=c\n"
                                   "PROPLET_CLIENT_ID=device-1\nPROPLET_ENTITY_ID=device-1\n"
                                   "PROPLET_CLIENT_KEY=planted-key\nPROPLET_API_KEY=planted-key\n"
                                   "# Account for the password file of mosquitto:\n"
                                   "# device-1:$7$101$"));
}

TEST(value_that_a_shell_would_change_is_quoted)
{
    ck_assert_ptr_nonnull(strstr(enroll_env_file(arena, proplet_of("device-1"), "a b$\"`\\'"),
                                 "PROPLET_CLIENT_KEY=\"a b\\$\\\"\\`\\\\'\"\n"));
}

TEST(account_is_as_mosquitto_reads_it)
{
    static const unsigned char SALT[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

    ck_assert_str_eq(enroll_account(arena, "device-1", KEY, SALT),
                     "device-1:$7$101$AQIDBAUGBwgJCgsM$YlMWdA0PEzlG/AQUrdK0377/"
                     "5xTo9RdLk7hzirenECvZcVxzgNhAMrJV3WWTNRsopku3NozKrb/ZvUUGSI096Q==");
}

/* The file is read up to the first colon: the rest would be the password of another account. */
TEST(client_id_with_a_colon_has_no_account)
{
    const char *text = enroll_env_file(arena, proplet_of("admin:$7$101$salt$hash"), KEY);

    ck_assert_ptr_nonnull(strstr(text, "PROPLET_API_KEY=planted-key\n"));
    ck_assert_ptr_null(strstr(text, "# admin:"));
    ck_assert_ptr_null(strstr(text, "Account"));
}

TEST(new_keys_differ)
{
    const char *first, *second;

    ck_assert_int_eq(enroll_key(arena, NULL, &first, &err), 0);
    ck_assert_int_eq(enroll_key(arena, NULL, &second, &err), 0);
    ck_assert_uint_eq(strlen(first), 64);
    ck_assert_str_ne(first, second);
}

static const struct {
    const char *text, *key; /* key NULL: it is refused */
} FILES[] = {
    { "abc\n", "abc" }, { "abc", "abc" },   { "a b\r\n", "a b" }, { "", NULL },
    { "\n", NULL },     { "a\nb\n", NULL }, { "a\x1b", NULL },
};

TEST_EACH(key_file_has_one_line, FILES)
{
    const char *path = temp_file(arena, temp_dir(arena), "key", FILES[_i].text), *key = NULL;
    int r = enroll_key(arena, path, &key, &err);

    if (FILES[_i].key) {
        ck_assert_msg(r == 0, "%s", err.message);
        ck_assert_str_eq(key, FILES[_i].key);
        return;
    }
    ck_assert_int_lt(r, 0);
    ck_assert(str_has_prefix(err.message, "--key-file: "));
}

TEST(name_of_a_proplet_is_made_of_prefix_and_client_id)
{
    struct enrollment_template defaults = { .name_prefix = "lab-" };
    const struct enrollment_spec spec = { .proplets = &defaults };

    ck_assert_str_eq(enrollment_proplet_name(arena, &spec, "s-1"), "lab-s-1");
    ck_assert(str_has_prefix(enrollment_proplet_name(arena, &spec, "S_1"), "lab-s-1-"));
    ck_assert_uint_le(
        strlen(enrollment_proplet_name(arena, &spec, arena_printf(arena, "%0200d", 1))), 63);
}
