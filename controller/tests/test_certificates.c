/* The reconciler of the webhook's certificates against an API server in memory. */
#include "certs/cluster_place.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/parsed.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "controller/certificates.h"

#define NS "propeller-system"
#define HOUR_MS (60u * 60 * 1000)

static struct arena *arena;
static char *dir;
static struct fake_api *api;
static struct fake_clock clock;
static struct kube_config *config;
static struct kube_client *client;
static struct cert_settings settings;
static struct certificates *certificates;
static bool may_write;
static const char *forbidden; /* part of a path; NULL: nothing is */
static const char *vanish;    /* deleted before a patch of it; NULL: nothing is */
static const cJSON *appears;  /* a Secret that somebody makes before it is made here */
static const cJSON *manifests[2];
static uint32_t wait_ms; /* of the last pass */

static int forbid_or_answer(void *ctx, struct arena *call, const struct http_request *request,
                            struct http_response *ret, struct error *err)
{
    static const char BODY[] = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":"
                               "\"no rights\"}";

    if (vanish && str_equal(request->method, "PATCH") && strstr(request->path, vanish)) {
        const struct kube_name key = { .ns = NS, .name = CERT_SECRET_LEAF };
        fake_api_delete(ctx, &KIND_SECRET, &key);
    }
    if (appears && str_equal(request->method, "POST"))
        fake_api_put(ctx, &KIND_SECRET, appears);
    if (!forbidden || !strstr(request->path, forbidden))
        return fake_api_roundtrip(ctx, call, request, ret, err);
    *ret = (struct http_response){ .status = 403, .body = BODY, .body_len = sizeof(BODY) - 1 };
    return 0;
}

static bool guard(void *ctx UNUSED)
{
    return may_write;
}

static void make(void)
{
    const struct certificates_options options = {
        .config = config, .client = client, .settings = &settings, .clock = &clock.clock
    };
    struct error err = { 0 };

    certificates_destroy(certificates);
    ck_assert_msg(certificates_create(&options, &certificates, &err) == 0, "%s", err.message);
}

static void setup(void)
{
    json_init();
    log_configure(LOG_ERROR, LOG_TEXT);
    memset(manifests, 0, sizeof(manifests));
    arena = arena_create();
    dir = temp_dir_create();
    api = fake_api_create();
    fake_clock_init(&clock);
    char *path = temp_file_write(dir, "config",
                                 "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                                 "contexts: [{name: c, context: {cluster: c, user: u, "
                                 "namespace: " NS "}}]\n"
                                 "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
                                 "users: [{name: u, user: {}}]\n");
    ck_assert_int_eq(kube_config_load(path, &config, NULL), 0);
    free(path);
    client = kube_client_create_with(forbid_or_answer, api);
    kube_client_set_guard(client, guard, NULL);
    may_write = true;
    forbidden = vanish = NULL;
    appears = NULL;
    settings = (struct cert_settings){ .service = "propeller-webhook",
                                       .configuration = "propeller-webhook",
                                       .leaf_lifetime_ms = INT64_C(2160) * HOUR_MS,
                                       .ca_lifetime_ms = INT64_C(87600) * HOUR_MS,
                                       .overlap_ms = 600000 };
    certificates = NULL;
    make();
}

static void teardown(void)
{
    certificates_destroy(certificates);
    kube_client_destroy(client);
    kube_config_destroy(config);
    fake_api_destroy(api);
    temp_dir_destroy(dir);
    arena_destroy(arena);
}

static int pass(struct error *err)
{
    struct reconcile rc = {
        .name = certificates_name(), .arena = arena, .client = client, .clock = &clock.clock
    };
    int r = certificates_reconcile(certificates, &rc, err);

    wait_ms = rc.requeue_after_ms;
    return r;
}

static void expect_pass(void)
{
    struct error err = { 0 };

    ck_assert_msg(pass(&err) == 0, "%s", err.message);
    ck_assert_uint_gt(wait_ms, 0);
}

static const char *const FILES[] = { "config/webhook/validating.yaml",
                                     "config/webhook/mutating.yaml" };
static const struct kube_kind *const KINDS[] = { &KIND_VALIDATING_WEBHOOKS,
                                                 &KIND_MUTATING_WEBHOOKS };

static void put_configurations(void)
{
    for (size_t i = 0; i < ARRAY_LEN(FILES) && !manifests[i]; i++)
        manifests[i] = parsed_yaml_file(arena, FILES[i]);
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
        fake_api_put(api, KINDS[i], manifests[i]);
}

static const cJSON *configuration(size_t i)
{
    const struct kube_name name = { .name = "propeller-webhook" };
    const cJSON *found = fake_api_get(api, arena, KINDS[i], &name);

    ck_assert_ptr_nonnull(found);
    return found;
}

static cJSON *config_of(const cJSON *entry)
{
    return (cJSON *)(uintptr_t)json_get(entry, "clientConfig");
}

static const cJSON *secret(const char *name)
{
    struct kube_name key;

    ck_assert(kube_name_set(&key, NS, name));
    return fake_api_get(api, arena, &KIND_SECRET, &key);
}

static const char *field(const char *name, const char *key)
{
    const char *text = json_string(json_path(secret(name), "data", key, NULL), "");

    return base64_decode(arena, text, strlen(text), NULL);
}

static size_t writes(void)
{
    struct fake_request *requests;
    size_t len = fake_api_requests(api, arena, &requests);
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += !str_equal(requests[i].method, "GET");
    return count;
}

/* The Secrets are of each other, and every entry has what signed the certificate. */
static void expect_complete(void)
{
    const struct cert_names names = cert_names_of(arena, "propeller-webhook", NS, NULL, 0);
    const struct cert_pair ca = { field(CERT_SECRET_CA, "tls.crt"),
                                  field(CERT_SECRET_CA, "tls.key") };
    const struct cert_pair leaf = { field(CERT_SECRET_LEAF, "tls.crt"),
                                    field(CERT_SECRET_LEAF, "tls.key") };
    const char *trust = field(CERT_SECRET_CA, "ca.crt");

    ck_assert_pstr_eq(cert_ca_problem(&ca, clock_wall_us(&clock.clock)), NULL);
    ck_assert_pstr_eq(cert_leaf_problem(&leaf, &names, trust, clock_wall_us(&clock.clock)), NULL);
    ck_assert_str_eq(json_string(json_get(secret(CERT_SECRET_CA), "type"), ""),
                     "kubernetes.io/tls");
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        json_for_each (entry, json_get(configuration(i), "webhooks")) {
            const char *bundle = json_string(json_get(config_of(entry), "caBundle"), "");
            ck_assert_str_eq(base64_decode(arena, bundle, strlen(bundle), NULL), trust);
        }
    }
}

static double managed(void)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(METRICS_MAX_TEXT);

    ck_assert(metrics_write(&text));
    const char *at = strstr(buf_string(&text), "\npropeller_webhook_certificates_managed ");
    ck_assert_ptr_nonnull(at);
    return strtod(at + strlen("\npropeller_webhook_certificates_managed "), NULL);
}

START_TEST(without_a_configuration_nothing_is_made)
{
    expect_pass();
    ck_assert_uint_eq(wait_ms, HOUR_MS);
    ck_assert_uint_eq(writes(), 0);
    ck_assert(managed() == 0);
}
END_TEST

START_TEST(secrets_and_bundles_are_made_once_and_nothing_else_is_touched)
{
    put_configurations();
    expect_pass();
    expect_complete();
    ck_assert_uint_eq(writes(), 4); /* two Secrets, two configurations */
    ck_assert_uint_eq(wait_ms, HOUR_MS);
    ck_assert(managed() == 1);

    for (unsigned i = 0; i < 3; i++)
        expect_pass();
    ck_assert_uint_eq(writes(), 4);

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        cJSON *now = json_copy(json_get(configuration(i), "webhooks"));
        json_for_each (entry, now)
            json_remove(config_of(entry), "caBundle");
        ck_assert(json_equal(now, json_get(manifests[i], "webhooks")));
        json_free(now);
    }
}
END_TEST

START_TEST(what_is_deleted_or_emptied_is_put_back)
{
    static const char *const SECRETS[] = { CERT_SECRET_LEAF, CERT_SECRET_CA };

    put_configurations();
    expect_pass();
    for (size_t i = 0; i < ARRAY_LEN(SECRETS); i++) {
        struct kube_name key;
        ck_assert(kube_name_set(&key, NS, SECRETS[i]));
        fake_api_delete(api, &KIND_SECRET, &key);
        expect_pass();
        expect_complete();
    }
    put_configurations(); /* all bundles are gone */
    size_t before = writes();
    expect_pass();
    expect_complete();
    ck_assert_uint_eq(writes(), before + 2);

    cJSON *emptied = json_copy(configuration(1));
    json_remove(config_of(json_first(json_get(emptied, "webhooks"))), "caBundle");
    fake_api_put(api, KINDS[1], emptied);
    json_free(emptied);
    before = writes();
    expect_pass();
    expect_complete();
    ck_assert_uint_eq(writes(), before + 1);
}
END_TEST

START_TEST(what_others_have_in_a_secret_or_configuration_stays)
{
    put_configurations();
    expect_pass();
    cJSON *edited = json_copy(configuration(0));
    cJSON *foreign = config_of(json_first(json_get(edited, "webhooks")));
    json_set_string((cJSON *)(uintptr_t)json_get(foreign, "service"), "namespace", "elsewhere");
    json_set_string(foreign, "caBundle", "Zm9yZWlnbg==");
    fake_api_put(api, KINDS[0], edited);
    json_free(edited);
    cJSON *labelled = json_copy(secret(CERT_SECRET_LEAF));
    json_set_string(json_set_object((cJSON *)(uintptr_t)json_get(labelled, "metadata"), "labels"),
                    "mine", "yes");
    cJSON *data = (cJSON *)(uintptr_t)json_get(labelled, "data");
    json_set_string(data, "extra", "eA==");
    json_remove(data, "tls.key");
    fake_api_put(api, &KIND_SECRET, labelled);
    json_free(labelled);

    expect_pass();
    const cJSON *first = json_first(json_get(configuration(0), "webhooks"));
    ck_assert_str_eq(json_string(json_get(config_of(first), "caBundle"), ""), "Zm9yZWlnbg==");
    ck_assert_str_eq(field(CERT_SECRET_LEAF, "extra"), "x");
    ck_assert_str_eq(
        json_string(json_path(secret(CERT_SECRET_LEAF), "metadata", "labels", "mine", NULL), ""),
        "yes");
    ck_assert(strstr(field(CERT_SECRET_LEAF, "tls.key"), "PRIVATE KEY"));
}
END_TEST

START_TEST(what_cert_manager_looks_after_is_left_alone)
{
    static const char *const ANNOTATIONS[] = { "cert-manager.io/inject-ca-from",
                                               "cert-manager.io/inject-ca-from-secret",
                                               "cert-manager.io/inject-apiserver-ca" };

    for (size_t i = 0; i < ARRAY_LEN(ANNOTATIONS); i++) {
        put_configurations();
        cJSON *annotated = json_copy(configuration(i % 2));
        cJSON *metadata = (cJSON *)(uintptr_t)json_get(annotated, "metadata");
        json_set_string(json_set_object(metadata, "annotations"), ANNOTATIONS[i], "x/y");
        fake_api_put(api, KINDS[i % 2], annotated);
        json_free(annotated);
        expect_pass();
        ck_assert_uint_eq(writes(), 0);
    }

    put_configurations();
    fake_api_put(api, &KIND_SECRET,
                 parsed(arena, "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":"
                               "\"" CERT_SECRET_LEAF "\",\"namespace\":\"" NS "\",\"annotations\":"
                               "{\"cert-manager.io/certificate-name\":\"c\"}}}"));
    expect_pass();
    ck_assert_uint_eq(writes(), 0);
    ck_assert(managed() == 0);
}
END_TEST

START_TEST(cert_manager_is_asked_for_what_would_be_made_here)
{
    const struct cert_names names = cert_names_of(arena, "propeller-webhook", NS, NULL, 0);
    char *text = temp_file_read("config/webhook-cert-manager", "certificate.yaml");
    const cJSON *documents = NULL;
    const cJSON *spec = NULL;
    size_t i = 0;

    ck_assert_int_eq(yaml_parse_all(arena, text, strlen(text), &documents, NULL), 0);
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
END_TEST

START_TEST(what_asks_another_service_is_left_alone)
{
    put_configurations();
    settings.ns = "elsewhere";
    make();
    expect_pass();
    ck_assert_uint_eq(writes(), 0);
}
END_TEST

START_TEST(who_may_not_tries_again_later_and_lives_on)
{
    static const char *const PATHS[] = { "validatingwebhook", "mutatingwebhook", CERT_SECRET_CA,
                                         "secrets" };

    put_configurations();
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        forbidden = PATHS[i];
        expect_pass();
        ck_assert_uint_eq(wait_ms, 60000);
        ck_assert(managed() == 0);
        ck_assert_uint_eq(writes(), 0);
    }
    forbidden = NULL;
    expect_pass();
    expect_complete();
}
END_TEST

START_TEST(who_does_not_lead_writes_nothing)
{
    struct error err = { 0 };

    put_configurations();
    may_write = false;
    ck_assert_int_eq(pass(&err), -ERROR_CANCELED);
    ck_assert_uint_eq(writes(), 0);
    ck_assert_ptr_null(secret(CERT_SECRET_CA));
}
END_TEST

/* Each request of the first pass fails once in each way. REFUSED is to us as SERVER_ERROR is. */
static const enum fake_failure FAILURES[] = { FAKE_LOST_REPLY, FAKE_CONFLICT, FAKE_SERVER_ERROR };
#define FIRST_PASS_REQUESTS 20

START_TEST(whatever_fails_the_end_is_the_same)
{
    struct error err = { 0 };
    struct fake_request *requests;

    put_configurations();
    fake_api_fail(api, (unsigned)_i / ARRAY_LEN(FAILURES) + 1,
                  FAILURES[(unsigned)_i % ARRAY_LEN(FAILURES)]);
    ck_assert_int_lt(pass(&err), 0);
    fake_api_fail(api, 0, FAKE_REFUSED);
    expect_pass();
    expect_complete();

    size_t before = writes();
    expect_pass();
    ck_assert_uint_eq(writes(), before);
    ck_assert_uint_ge(fake_api_requests(api, arena, &requests), FIRST_PASS_REQUESTS);
}
END_TEST

/* Somebody deletes between what was read and what is written. */
START_TEST(what_goes_between_reading_and_writing_is_made_by_the_next_pass)
{
    const struct kube_name key = { .ns = NS, .name = CERT_SECRET_LEAF };
    struct error err = { 0 };

    put_configurations();
    expect_pass();
    settings.leaf_lifetime_ms = INT64_C(1000) * HOUR_MS; /* the certificate is too old by now */
    fake_clock_advance(&clock, INT64_C(1000) * HOUR_MS);
    make();
    vanish = CERT_SECRET_LEAF;
    ck_assert_int_eq(pass(&err), -ERROR_CONFLICT);
    vanish = NULL;
    ck_assert_ptr_null(fake_api_get(api, arena, &KIND_SECRET, &key));
    expect_pass();
    expect_complete();
}
END_TEST

START_TEST(who_comes_second_takes_what_the_first_one_made)
{
    struct error err = { 0 };

    put_configurations();
    expect_pass();
    const cJSON *first = secret(CERT_SECRET_CA);
    const struct kube_name key = { .ns = NS, .name = CERT_SECRET_CA };
    fake_api_delete(api, &KIND_SECRET, &key);

    appears = first;
    ck_assert_int_eq(pass(&err), -ERROR_CONFLICT);
    appears = NULL;
    expect_pass();
    expect_complete();
    ck_assert(json_equal(json_get(secret(CERT_SECRET_CA), "data"), json_get(first, "data")));
}
END_TEST

START_TEST(certificates_are_renewed_when_their_time_has_come)
{
    settings.leaf_lifetime_ms = 30000;
    settings.overlap_ms = 1000;
    make();
    put_configurations();
    expect_pass();
    for (unsigned i = 0; i < 5; i++) {
        const char *cert = field(CERT_SECRET_LEAF, "tls.crt");

        fake_clock_advance(&clock, wait_ms);
        expect_pass();
        expect_complete();
        ck_assert_str_ne(field(CERT_SECRET_LEAF, "tls.crt"), cert);
        ck_assert_uint_lt(wait_ms, 21000);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("certificates");
    TCase *tc = tcase_create("certificates");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, without_a_configuration_nothing_is_made);
    tcase_add_test(tc, secrets_and_bundles_are_made_once_and_nothing_else_is_touched);
    tcase_add_test(tc, what_is_deleted_or_emptied_is_put_back);
    tcase_add_test(tc, what_others_have_in_a_secret_or_configuration_stays);
    tcase_add_test(tc, what_cert_manager_looks_after_is_left_alone);
    tcase_add_test(tc, cert_manager_is_asked_for_what_would_be_made_here);
    tcase_add_test(tc, what_asks_another_service_is_left_alone);
    tcase_add_test(tc, who_may_not_tries_again_later_and_lives_on);
    tcase_add_test(tc, who_does_not_lead_writes_nothing);
    tcase_add_loop_test(tc, whatever_fails_the_end_is_the_same, 0,
                        FIRST_PASS_REQUESTS * (int)ARRAY_LEN(FAILURES));
    tcase_add_test(tc, what_goes_between_reading_and_writing_is_made_by_the_next_pass);
    tcase_add_test(tc, who_comes_second_takes_what_the_first_one_made);
    tcase_add_test(tc, certificates_are_renewed_when_their_time_has_come);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
