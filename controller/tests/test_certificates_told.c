/* What the reconciler of the webhook's certificates says, counts and keeps in memory; and entries
 * that name a URL. */
#include <math.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/tests/certs_stage.h"

#define EXPIRY "propeller_webhook_managed_certificate_expiry_seconds"
#define HOUR_S 3600

static unsigned lines_with(const char *words)
{
    unsigned count = 0;

    for (const char *at = capture_text(certs_stage.arena); (at = strstr(at, words)); at++)
        count++;
    return count;
}

TEST_GROUP("certificates_told", certs_stage_set_up, certs_stage_tear_down);

TEST(why_nothing_is_done_is_said_once_and_again_when_it_is_another_reason)
{
    log_configure(LOG_INFO, LOG_TEXT);
    capture_start(STDERR_FILENO);
    for (unsigned i = 0; i < 3; i++)
        certs_stage_expect_pass();
    ck_assert_uint_eq(lines_with("not looked after"), 1);
    ck_assert_uint_eq(lines_with("there is no webhook configuration"), 1);

    certs_stage.forbidden = "webhookconfigurations";
    for (unsigned i = 0; i < 3; i++)
        certs_stage_expect_pass();
    ck_assert_uint_eq(lines_with("not looked after"), 2);
    ck_assert_uint_eq(lines_with("no rights"), 1);
}

TEST(what_was_mended_and_comes_again_is_said_again)
{
    log_configure(LOG_INFO, LOG_TEXT);
    capture_start(STDERR_FILENO);
    certs_stage_put_configurations();
    for (unsigned i = 0; i < 2; i++) {
        certs_stage.forbidden = "webhookconfigurations";
        certs_stage_expect_pass();
        certs_stage.forbidden = NULL;
        certs_stage_expect_pass();
    }
    ck_assert_uint_eq(lines_with("not looked after"), 2);
}

TEST(the_seconds_to_expiry_are_told_and_counted_down)
{
    static const char *const SERIES[] = { EXPIRY "{certificate=\"authority\"}",
                                          EXPIRY "{certificate=\"serving\"}" };
    double before[ARRAY_LEN(SERIES)];

    certs_stage_put_configurations();
    certs_stage_expect_pass();
    for (size_t i = 0; i < ARRAY_LEN(SERIES); i++)
        before[i] = certs_stage_gauge(SERIES[i]);
    ck_assert(before[0] > 87599.0 * HOUR_S && before[0] <= 87600.0 * HOUR_S);
    ck_assert(before[1] > 2159.0 * HOUR_S && before[1] <= 2160.0 * HOUR_S);

    fake_clock_advance(&certs_stage.clock, HOUR_MS);
    certs_stage_tick();
    for (size_t i = 0; i < ARRAY_LEN(SERIES); i++)
        ck_assert(before[i] - certs_stage_gauge(SERIES[i]) == HOUR_S);

    /* cert-manager takes over: what was told last is not the truth any more */
    cJSON *annotated = json_copy(certs_stage_configuration(0));
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(annotated, "metadata");
    json_set_string(json_set_object(metadata, "annotations"), "cert-manager.io/inject-ca-from",
                    "x/y");
    fake_api_put(certs_stage.api, CERTS_STAGE_KINDS[0], annotated);
    json_free(annotated);
    certs_stage_expect_pass();
    for (size_t i = 0; i < ARRAY_LEN(SERIES); i++)
        ck_assert(isnan(certs_stage_gauge(SERIES[i])));
}

/* Passes that each find the bundles gone, as often as they are asked for. */
static unsigned puts_back_within(unsigned seconds, unsigned step_ms)
{
    size_t before = certs_stage_writes();

    for (unsigned ms = 0; ms < seconds * 1000; ms += step_ms) {
        certs_stage_put_configurations();
        certs_stage_expect_pass();
        ck_assert_uint_le(certs_stage.wait_ms, HOUR_MS);
        fake_clock_advance(&certs_stage.clock, step_ms);
    }
    return (unsigned)(certs_stage_writes() - before) / CERTS_STAGE_KIND_COUNT;
}

TEST(who_changes_the_bundles_again_and_again_is_answered_ever_more_slowly)
{
    log_configure(LOG_WARN, LOG_TEXT);
    capture_start(STDERR_FILENO);
    certs_stage_put_configurations();
    certs_stage_expect_pass();
    ck_assert_uint_eq(puts_back_within(60, 100),
                      5 + 6); /* 5 at once, then after 1, 2, 4, 8, 16 s */
    ck_assert_uint_le(puts_back_within(600, 1000), 11);
    ck_assert_uint_eq(lines_with("another component changes the caBundle"), 1);

    fake_clock_advance(&certs_stage.clock, 2 * 60 * 1000); /* quiet */
    certs_stage_put_configurations();
    certs_stage_expect_pass();
    certs_stage_expect_complete();
    ck_assert_uint_eq(puts_back_within(1, 100), 5 + 1);
}

TEST(an_entry_that_names_a_url_gets_the_bundle_as_well)
{
    certs_stage_put_configurations();
    for (size_t i = 0; i < CERTS_STAGE_KIND_COUNT; i++) {
        cJSON *edited = json_copy(certs_stage_configuration(i));
        cJSON *config = certs_stage_client_config(json_first(json_get(edited, "webhooks")));

        json_remove(config, "service");
        json_set_string(config, "url", "https://192.0.2.1:9443/validate");
        fake_api_put(certs_stage.api, CERTS_STAGE_KINDS[i], edited);
        json_free(edited);
    }
    certs_stage_expect_pass();
    certs_stage_expect_complete();
}

TEST(the_watches_keep_no_key_and_no_bundle)
{
    cJSON *object = json_copy(parsed(
        certs_stage.arena, "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\","
                           "\"resourceVersion\":\"7\",\"labels\":{\"a\":\"b\"},\"annotations\":"
                           "{\"c\":\"d\"}},\"data\":{\"tls.key\":\"eA==\"},\"webhooks\":[{}]}"));

    certificates_project(object);
    ck_assert(json_equal(object, parsed(certs_stage.arena,
                                        "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"n\","
                                        "\"uid\":\"u\",\"resourceVersion\":\"7\"}}")));
    json_free(object);
}
