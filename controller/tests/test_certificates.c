/* The reconciler of the webhook's certificates against an API server in memory. */
#include "certs/cluster_place.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "controller/tests/certs_stage.h"

TEST_GROUP("certificates", certs_stage_set_up, certs_stage_tear_down);

TEST(without_a_configuration_nothing_is_made)
{
    certs_stage_expect_pass();
    ck_assert_uint_eq(certs_stage.wait_ms, HOUR_MS);
    ck_assert_uint_eq(certs_stage_writes(), 0);
    ck_assert(certs_stage_managed() == 0);
}

TEST(secrets_and_bundles_are_made_once_and_nothing_else_is_touched)
{
    certs_stage_put_configurations();
    certs_stage_expect_pass();
    certs_stage_expect_complete();
    ck_assert_uint_eq(certs_stage_writes(), 4); /* two Secrets, two configurations */
    ck_assert_uint_eq(certs_stage.wait_ms, HOUR_MS);
    ck_assert(certs_stage_managed() == 1);

    for (unsigned i = 0; i < 3; i++)
        certs_stage_expect_pass();
    ck_assert_uint_eq(certs_stage_writes(), 4);

    for (size_t i = 0; i < ARRAY_LEN(CERTS_STAGE_KINDS); i++) {
        cJSON *now = json_copy(json_get(certs_stage_configuration(i), "webhooks"));
        json_for_each (entry, now)
            json_remove(certs_stage_client_config(entry), "caBundle");
        ck_assert(json_equal(now, json_get(certs_stage.manifests[i], "webhooks")));
        json_free(now);
    }
}

TEST(what_is_deleted_or_emptied_is_put_back)
{
    static const char *const SECRETS[] = { CERT_SECRET_LEAF, CERT_SECRET_CA };

    certs_stage_put_configurations();
    certs_stage_expect_pass();
    for (size_t i = 0; i < ARRAY_LEN(SECRETS); i++) {
        struct kube_name key;
        ck_assert(kube_name_set(&key, CERTS_STAGE_NS, SECRETS[i]));
        fake_api_delete(certs_stage.api, &KIND_SECRET, &key);
        certs_stage_expect_pass();
        certs_stage_expect_complete();
    }
    certs_stage_put_configurations(); /* all bundles are gone */
    size_t before = certs_stage_writes();
    certs_stage_expect_pass();
    certs_stage_expect_complete();
    ck_assert_uint_eq(certs_stage_writes(), before + 2);

    cJSON *emptied = json_copy(certs_stage_configuration(1));
    json_remove(certs_stage_client_config(json_first(json_get(emptied, "webhooks"))), "caBundle");
    fake_api_put(certs_stage.api, CERTS_STAGE_KINDS[1], emptied);
    json_free(emptied);
    before = certs_stage_writes();
    certs_stage_expect_pass();
    certs_stage_expect_complete();
    ck_assert_uint_eq(certs_stage_writes(), before + 1);
}

TEST(what_others_have_in_a_secret_or_configuration_stays)
{
    certs_stage_put_configurations();
    certs_stage_expect_pass();
    cJSON *edited = json_copy(certs_stage_configuration(0));
    cJSON *foreign = certs_stage_client_config(json_first(json_get(edited, "webhooks")));
    json_set_string((cJSON *)(uintptr_t)json_get(foreign, "service"), "namespace", "elsewhere");
    json_set_string(foreign, "caBundle", "Zm9yZWlnbg==");
    fake_api_put(certs_stage.api, CERTS_STAGE_KINDS[0], edited);
    json_free(edited);
    cJSON *labelled = json_copy(certs_stage_secret(CERT_SECRET_LEAF));
    json_set_string(json_set_object((cJSON *)(uintptr_t)json_get(labelled, "metadata"), "labels"),
                    "mine", "yes");
    cJSON *data = (cJSON *)(uintptr_t)json_get(labelled, "data");
    json_set_string(data, "extra", "eA==");
    json_remove(data, "tls.key");
    fake_api_put(certs_stage.api, &KIND_SECRET, labelled);
    json_free(labelled);

    certs_stage_expect_pass();
    const cJSON *first = json_first(json_get(certs_stage_configuration(0), "webhooks"));
    ck_assert_str_eq(json_string(json_get(certs_stage_client_config(first), "caBundle"), ""),
                     "Zm9yZWlnbg==");
    ck_assert_str_eq(certs_stage_field(CERT_SECRET_LEAF, "extra"), "x");
    ck_assert_str_eq(json_string(json_path(certs_stage_secret(CERT_SECRET_LEAF), "metadata",
                                           "labels", "mine", NULL),
                                 ""),
                     "yes");
    ck_assert(strstr(certs_stage_field(CERT_SECRET_LEAF, "tls.key"), "PRIVATE KEY"));
}

TEST(what_cert_manager_looks_after_is_left_alone)
{
    static const char *const ANNOTATIONS[] = { "cert-manager.io/inject-ca-from",
                                               "cert-manager.io/inject-ca-from-secret",
                                               "cert-manager.io/inject-apiserver-ca" };

    for (size_t i = 0; i < ARRAY_LEN(ANNOTATIONS); i++) {
        certs_stage_put_configurations();
        cJSON *annotated = json_copy(certs_stage_configuration(i % 2));
        cJSON *metadata = (cJSON *)(uintptr_t)json_get(annotated, "metadata");
        json_set_string(json_set_object(metadata, "annotations"), ANNOTATIONS[i], "x/y");
        fake_api_put(certs_stage.api, CERTS_STAGE_KINDS[i % 2], annotated);
        json_free(annotated);
        certs_stage_expect_pass();
        ck_assert_uint_eq(certs_stage_writes(), 0);
    }

    certs_stage_put_configurations();
    fake_api_put(certs_stage.api, &KIND_SECRET,
                 parsed(certs_stage.arena,
                        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":"
                        "\"" CERT_SECRET_LEAF "\",\"namespace\":\"" CERTS_STAGE_NS
                        "\",\"annotations\":"
                        "{\"cert-manager.io/certificate-name\":\"c\"}}}"));
    certs_stage_expect_pass();
    ck_assert_uint_eq(certs_stage_writes(), 0);
    ck_assert(certs_stage_managed() == 0);
}

TEST(cert_manager_is_asked_for_what_would_be_made_here)
{
    const struct cert_names names =
        cert_names_of(certs_stage.arena, "propeller-webhook", CERTS_STAGE_NS, NULL, 0);
    char *text = temp_file_read("config/webhook-cert-manager", "certificate.yaml");
    const cJSON *documents = NULL;
    const cJSON *spec = NULL;
    size_t i = 0;

    ck_assert_int_eq(yaml_parse_all(certs_stage.arena, text, strlen(text), &documents, NULL), 0);
    free(text);
    json_for_each (document, documents) {
        if (str_equal(json_string(json_get(document, "kind"), ""), "Certificate") &&
            !json_path(document, "spec", "isCA", NULL))
            spec = json_get(document, "spec");
    }
    ck_assert_str_eq(json_string(json_get(spec, "secretName"), ""), CERT_SECRET_LEAF);
    ck_assert_uint_eq(json_len(json_get(spec, "dnsNames")), names.len);
    json_for_each (name, json_get(spec, "dnsNames"))
        ck_assert_str_eq(json_string(name, ""), names.items[i++]);
}

TEST(what_asks_another_service_is_left_alone)
{
    certs_stage_put_configurations();
    certs_stage.settings.ns = "elsewhere";
    certs_stage_make();
    certs_stage_expect_pass();
    ck_assert_uint_eq(certs_stage_writes(), 0);
}

TEST(who_may_not_tries_again_later_and_lives_on)
{
    static const char *const PATHS[] = { "validatingwebhook", "mutatingwebhook", CERT_SECRET_CA,
                                         "secrets" };

    certs_stage_put_configurations();
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        certs_stage.forbidden = PATHS[i];
        certs_stage_expect_pass();
        ck_assert_uint_eq(certs_stage.wait_ms, 60000);
        ck_assert(certs_stage_managed() == 0);
        ck_assert_uint_eq(certs_stage_writes(), 0);
    }
    certs_stage.forbidden = NULL;
    certs_stage_expect_pass();
    certs_stage_expect_complete();
}

TEST(who_does_not_lead_writes_nothing)
{
    struct error err = { 0 };

    certs_stage_put_configurations();
    certs_stage.may_write = false;
    ck_assert_int_eq(certs_stage_pass(&err), -ERROR_CANCELED);
    ck_assert_uint_eq(certs_stage_writes(), 0);
    ck_assert_ptr_null(certs_stage_secret(CERT_SECRET_CA));
}

/* Each request of the first pass fails once in each way. REFUSED is to us as SERVER_ERROR is. */
static const enum fake_failure FAILURES[] = { FAKE_LOST_REPLY, FAKE_CONFLICT, FAKE_SERVER_ERROR };
#define FIRST_PASS_REQUESTS 20

TEST_TIMES(whatever_fails_the_end_is_the_same, FIRST_PASS_REQUESTS *(int)ARRAY_LEN(FAILURES))
{
    struct error err = { 0 };
    struct fake_request *requests;

    certs_stage_put_configurations();
    fake_api_fail(certs_stage.api, (unsigned)_i / ARRAY_LEN(FAILURES) + 1,
                  FAILURES[(unsigned)_i % ARRAY_LEN(FAILURES)]);
    ck_assert_int_lt(certs_stage_pass(&err), 0);
    fake_api_fail(certs_stage.api, 0, FAKE_REFUSED);
    certs_stage_expect_pass();
    certs_stage_expect_complete();

    size_t before = certs_stage_writes();
    certs_stage_expect_pass();
    ck_assert_uint_eq(certs_stage_writes(), before);
    ck_assert_uint_ge(fake_api_requests(certs_stage.api, certs_stage.arena, &requests),
                      FIRST_PASS_REQUESTS);
}

/* Somebody deletes between what was read and what is written. */
TEST(what_goes_between_reading_and_writing_is_made_by_the_next_pass)
{
    const struct kube_name key = { .ns = CERTS_STAGE_NS, .name = CERT_SECRET_LEAF };
    struct error err = { 0 };

    certs_stage_put_configurations();
    certs_stage_expect_pass();
    certs_stage.settings.leaf_lifetime_ms =
        INT64_C(1000) * HOUR_MS; /* the certificate is too old by now */
    fake_clock_advance(&certs_stage.clock, INT64_C(1000) * HOUR_MS);
    certs_stage_make();
    certs_stage.vanish = CERT_SECRET_LEAF;
    ck_assert_int_eq(certs_stage_pass(&err), -ERROR_CONFLICT);
    certs_stage.vanish = NULL;
    ck_assert_ptr_null(fake_api_get(certs_stage.api, certs_stage.arena, &KIND_SECRET, &key));
    certs_stage_expect_pass();
    certs_stage_expect_complete();
}

TEST(who_comes_second_takes_what_the_first_one_made)
{
    struct error err = { 0 };

    certs_stage_put_configurations();
    certs_stage_expect_pass();
    const cJSON *first = certs_stage_secret(CERT_SECRET_CA);
    const struct kube_name key = { .ns = CERTS_STAGE_NS, .name = CERT_SECRET_CA };
    fake_api_delete(certs_stage.api, &KIND_SECRET, &key);

    certs_stage.appears = first;
    ck_assert_int_eq(certs_stage_pass(&err), -ERROR_CONFLICT);
    certs_stage.appears = NULL;
    certs_stage_expect_pass();
    certs_stage_expect_complete();
    ck_assert(
        json_equal(json_get(certs_stage_secret(CERT_SECRET_CA), "data"), json_get(first, "data")));
}

TEST(certificates_are_renewed_when_their_time_has_come)
{
    certs_stage.settings.leaf_lifetime_ms = 30000;
    certs_stage.settings.overlap_ms = 1000;
    certs_stage_make();
    certs_stage_put_configurations();
    certs_stage_expect_pass();
    for (unsigned i = 0; i < 5; i++) {
        const char *cert = certs_stage_field(CERT_SECRET_LEAF, "tls.crt");

        fake_clock_advance(&certs_stage.clock, certs_stage.wait_ms);
        certs_stage_expect_pass();
        certs_stage_expect_complete();
        ck_assert_str_ne(certs_stage_field(CERT_SECRET_LEAF, "tls.crt"), cert);
        ck_assert_uint_lt(certs_stage.wait_ms, 21000);
    }
}
