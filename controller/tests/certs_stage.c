#include "controller/tests/certs_stage.h"

#include "certs/cluster_place.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "common/tests/parsed.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

struct certs_stage certs_stage;

static int forbid_or_answer(void *ctx, struct arena *call, const struct http_request *request,
                            struct http_response *ret, struct error *err)
{
    static const char BODY[] = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":"
                               "\"no rights\"}";

    if (certs_stage.vanish && str_equal(request->method, "PATCH") &&
        strstr(request->path, certs_stage.vanish)) {
        const struct kube_name key = { .ns = CERTS_STAGE_NS, .name = CERT_SECRET_LEAF };
        fake_api_delete(ctx, &KIND_SECRET, &key);
    }
    if (certs_stage.appears && str_equal(request->method, "POST"))
        fake_api_put(ctx, &KIND_SECRET, certs_stage.appears);
    if (!certs_stage.forbidden || !strstr(request->path, certs_stage.forbidden))
        return fake_api_roundtrip(ctx, call, request, ret, err);
    *ret = (struct http_response){ .status = 403, .body = BODY, .body_len = sizeof(BODY) - 1 };
    return 0;
}

static bool guard(void *ctx UNUSED)
{
    return certs_stage.may_write;
}

void certs_stage_make(void)
{
    const struct certificates_options options = { .config = certs_stage.config,
                                                  .client = certs_stage.client,
                                                  .settings = &certs_stage.settings,
                                                  .clock = &certs_stage.clock.clock };
    struct error err = { 0 };

    certificates_destroy(certs_stage.certificates);
    ck_assert_msg(certificates_create(&options, &certs_stage.certificates, &err) == 0, "%s",
                  err.message);
}

void certs_stage_set_up(void)
{
    json_init();
    log_configure(LOG_ERROR, LOG_TEXT);
    memset(certs_stage.manifests, 0, sizeof(certs_stage.manifests));
    certs_stage.arena = arena_create();
    certs_stage.dir = temp_dir_create();
    certs_stage.api = fake_api_create();
    fake_clock_init(&certs_stage.clock);
    char *path = temp_file_write(certs_stage.dir, "config",
                                 "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                                 "contexts: [{name: c, context: {cluster: c, user: u, "
                                 "namespace: " CERTS_STAGE_NS "}}]\n"
                                 "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
                                 "users: [{name: u, user: {}}]\n");
    ck_assert_int_eq(kube_config_load(path, &certs_stage.config, NULL), 0);
    free(path);
    certs_stage.client = kube_client_create_with(forbid_or_answer, certs_stage.api);
    kube_client_set_guard(certs_stage.client, guard, NULL);
    certs_stage.may_write = true;
    certs_stage.forbidden = certs_stage.vanish = NULL;
    certs_stage.appears = NULL;
    certs_stage.settings = (struct cert_settings){ .service = "propeller-webhook",
                                                   .configuration = "propeller-webhook",
                                                   .leaf_lifetime_ms = INT64_C(2160) * HOUR_MS,
                                                   .ca_lifetime_ms = INT64_C(87600) * HOUR_MS,
                                                   .overlap_ms = 600000 };
    certs_stage.certificates = NULL;
    certs_stage_make();
}

void certs_stage_tear_down(void)
{
    certificates_destroy(certs_stage.certificates);
    kube_client_destroy(certs_stage.client);
    kube_config_destroy(certs_stage.config);
    fake_api_destroy(certs_stage.api);
    temp_dir_destroy(certs_stage.dir);
    arena_destroy(certs_stage.arena);
}

static int turn(struct kube_name name, struct error *err)
{
    struct reconcile rc = { .name = name,
                            .arena = certs_stage.arena,
                            .client = certs_stage.client,
                            .clock = &certs_stage.clock.clock };
    int r = certificates_reconcile(certs_stage.certificates, &rc, err);

    certs_stage.wait_ms = rc.requeue_after_ms;
    return r;
}

int certs_stage_pass(struct error *err)
{
    return turn(certificates_name(), err);
}

void certs_stage_tick(void)
{
    struct error err = { 0 };

    ck_assert_msg(turn(certificates_tick(), &err) == 0, "%s", err.message);
}

void certs_stage_expect_pass(void)
{
    struct error err = { 0 };

    ck_assert_msg(certs_stage_pass(&err) == 0, "%s", err.message);
    ck_assert_uint_gt(certs_stage.wait_ms, 0);
}

static const char *const FILES[] = { "config/webhook/validating.yaml",
                                     "config/webhook/mutating.yaml" };
const struct kube_kind *const CERTS_STAGE_KINDS[CERTS_STAGE_KIND_COUNT] = {
    &KIND_VALIDATING_WEBHOOKS, &KIND_MUTATING_WEBHOOKS
};

void certs_stage_put_configurations(void)
{
    for (size_t i = 0; i < ARRAY_LEN(FILES) && !certs_stage.manifests[i]; i++)
        certs_stage.manifests[i] = parsed_yaml_file(certs_stage.arena, FILES[i]);
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
        fake_api_put(certs_stage.api, CERTS_STAGE_KINDS[i], certs_stage.manifests[i]);
}

const cJSON *certs_stage_configuration(size_t i)
{
    const struct kube_name name = { .name = "propeller-webhook" };
    const cJSON *found =
        fake_api_get(certs_stage.api, certs_stage.arena, CERTS_STAGE_KINDS[i], &name);

    ck_assert_ptr_nonnull(found);
    return found;
}

cJSON *certs_stage_client_config(const cJSON *entry)
{
    return (cJSON *)(uintptr_t)json_get(entry, "clientConfig");
}

const cJSON *certs_stage_secret(const char *name)
{
    struct kube_name key;

    ck_assert(kube_name_set(&key, CERTS_STAGE_NS, name));
    return fake_api_get(certs_stage.api, certs_stage.arena, &KIND_SECRET, &key);
}

const char *certs_stage_field(const char *name, const char *key)
{
    const char *text = json_string(json_path(certs_stage_secret(name), "data", key, NULL), "");

    return base64_decode(certs_stage.arena, text, strlen(text), NULL);
}

size_t certs_stage_writes(void)
{
    struct fake_request *requests;
    size_t len = fake_api_requests(certs_stage.api, certs_stage.arena, &requests);
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += !str_equal(requests[i].method, "GET");
    return count;
}

/* The Secrets are of each other, and every entry has what signed the certificate. */
void certs_stage_expect_complete(void)
{
    const struct cert_names names =
        cert_names_of(certs_stage.arena, "propeller-webhook", CERTS_STAGE_NS, NULL, 0);
    const struct cert_pair ca = { certs_stage_field(CERT_SECRET_CA, "tls.crt"),
                                  certs_stage_field(CERT_SECRET_CA, "tls.key") };
    const struct cert_pair leaf = { certs_stage_field(CERT_SECRET_LEAF, "tls.crt"),
                                    certs_stage_field(CERT_SECRET_LEAF, "tls.key") };
    const char *trust = certs_stage_field(CERT_SECRET_CA, "ca.crt");

    ck_assert_pstr_eq(cert_ca_problem(&ca, clock_wall_us(&certs_stage.clock.clock)), NULL);
    ck_assert_pstr_eq(
        cert_leaf_problem(&leaf, &names, trust, clock_wall_us(&certs_stage.clock.clock)), NULL);
    ck_assert_str_eq(json_string(json_get(certs_stage_secret(CERT_SECRET_CA), "type"), ""),
                     "kubernetes.io/tls");
    for (size_t i = 0; i < ARRAY_LEN(CERTS_STAGE_KINDS); i++) {
        json_for_each (entry, json_get(certs_stage_configuration(i), "webhooks")) {
            const char *bundle =
                json_string(json_get(certs_stage_client_config(entry), "caBundle"), "");
            ck_assert_str_eq(base64_decode(certs_stage.arena, bundle, strlen(bundle), NULL), trust);
        }
    }
}

double certs_stage_gauge(const char *series)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(METRICS_MAX_TEXT);
    const char *line = arena_printf(certs_stage.arena, "\n%s ", series);

    ck_assert(metrics_write(&text));
    const char *at = strstr(buf_string(&text), line);
    ck_assert_msg(at, "there is no '%s'", series);
    return strtod(at + strlen(line), NULL);
}

double certs_stage_managed(void)
{
    return certs_stage_gauge("propeller_webhook_certificates_managed");
}
