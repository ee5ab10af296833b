#include "common/base/str.h"
#include "common/tests/suite.h"
#include "webhook/options.h"

static struct arena *arena;

static void setup(void)
{
    arena = arena_create();
    clearenv();
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("webhook_options", setup, teardown);

/* One flag, or none. */
static int parse(const char *flag, struct webhook_settings *ret, struct error *err)
{
    char *program = arena_strdup(arena, "propeller-webhook");
    char *const argv[] = { program, flag ? arena_strdup(arena, flag) : NULL, NULL };

    *ret = (struct webhook_settings){ 0 };
    return webhook_options_parse(arena, flag ? 2 : 1, argv, ret, err);
}

TEST(without_flags_the_defaults_are_those_of_the_manifests)
{
    struct webhook_settings settings;
    struct error err = { 0 };

    ck_assert_int_eq(parse(NULL, &settings, &err), 0);
    ck_assert_int_eq(settings.port, 9443);
    ck_assert_str_eq(settings.cert_dir, "/etc/propeller/webhook");
    ck_assert_str_eq(settings.metrics_address, ":8080");
    ck_assert_str_eq(settings.health_address, ":8081");
    ck_assert_int_eq(settings.max_connections, 512);
    ck_assert_int_eq(settings.max_inline_wasm, 716800);
    ck_assert_int_eq(settings.workers, 2);
    ck_assert_int_eq(settings.request_timeout_ms, 10000);
    ck_assert_str_eq(settings.log_level, "info");
    ck_assert_str_eq(settings.log_format, "auto");
}

static const char *const BAD[] = {
    "--port=0",
    "--port=65536",
    "--port=x",
    "--cert-dir=",
    "--max-connections=0",
    "--max-inline-wasm=0",
    "--workers=0",
    "--max-inline-wasm=716801",
    "--workers=65",
    "--request-timeout=0s",
    "--request-timeout=61s",
    "--allow-image-schemes=oci,ftp",
    "--allow-image-hosts=https://a.example",
    "--allow-model-schemes=ftp",
    "--allow-image-schemes=",
    "--allow-image-hosts=,",
    "--allow-model-schemes=",
    "--allow-device-types=",
    "--require-image-digests=maybe",
    "--log-level=loud",
    "--log-format=xml",
    "--unknown",
    "stray",
    "--port",
};

TEST_EACH(what_cannot_be_used_is_refused_with_the_flag, BAD)
{
    struct webhook_settings settings;
    struct error err = { 0 };
    const char *name = arena_strndup(arena, BAD[_i], strcspn(BAD[_i], "="));

    ck_assert_int_eq(parse(BAD[_i], &settings, &err), -ERROR_INVALID);
    ck_assert_msg(strstr(err.message, name) != NULL, "%s: %s", name, err.message);
}

TEST(the_environment_counts_too)
{
    struct webhook_settings settings;
    struct error err = { 0 };

    ck_assert_int_eq(setenv("PROPELLER_CERT_DIR", "/tmp/certs", 1), 0);
    ck_assert_int_eq(parse("--port=1", &settings, &err), 0);
    ck_assert_str_eq(settings.cert_dir, "/tmp/certs");
    ck_assert_int_eq(settings.port, 1);
}
