#include <signal.h>
#include <stdlib.h>

#include "common/api/kinds.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/net/http_server.h"
#include "common/tests/certs.h"
#include "common/tests/fake_api.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "controller/federated/model_source.h"

#define MODEL "{\"b\":1,\"w\":[2,3]}"

static struct arena *arena;
static struct error err;
static struct fake_api *api;
static struct kube_client *client;
static struct model_store *store;
static struct model_source source;

static void set_up(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    json_init();
    arena = arena_create();
    err = (struct error){ 0 };
    api = fake_api_create();
    client = kube_client_create_with(fake_api_roundtrip, api);
    store = model_store_configmap_create(client);
    source = (struct model_source){ .client = client, .store = store };
}

static void tear_down(void)
{
    model_store_destroy(store);
    kube_client_destroy(client);
    fake_api_destroy(api);
    arena_destroy(arena);
}

TEST_GROUP("all", set_up, tear_down);

static const char *with_digest(const char *reference, const char *content)
{
    char hex[SHA256_HEX_LEN];

    return arena_printf(arena, "%s#sha256:%s", reference,
                        sha256_hex(content, strlen(content), hex));
}

/* The bytes of the model, or "<code>: <message>". */
static const char *outcome(const char *reference)
{
    struct fl_model model;

    if (model_source_read(&source, arena, "ns", reference, &model, &err) < 0)
        return arena_printf(arena, "%s: %s", error_code_name(err.code), err.message);
    return arena_strndup(arena, model.bytes, model.bytes_len);
}

static void config_map(const char *ns, const char *name, const char *rest)
{
    const char *text = arena_printf(arena,
                                    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                    "\"namespace\":\"%s\",\"name\":\"%s\"},%s}",
                                    ns, name, rest);
    const cJSON *object;

    ck_assert_int_eq(json_parse(arena, text, strlen(text), &object, &err), 0);
    fake_api_put(api, &KIND_CONFIGMAP, object);
}

static void config_maps(void)
{
    config_map("ns", "one", "\"data\":{\"start.json\":\"{\\\"w\\\":[2.0,3],\\\"b\\\":1}\"}");
    config_map("ns", "two", "\"data\":{\"a\":\"[1]\"},\"binaryData\":{\"b\":\"WzIs\\nM10=\"}");
    config_map("ns", "binary", "\"binaryData\":{\"m\":\"WzIsM10=\"}");
    config_map("ns", "text", "\"data\":{\"m\":\"hello\"}");
    config_map("other", "one", "\"data\":{\"start.json\":\"[9]\"}");
}

static const struct {
    const char *reference;
    const char *outcome;
} CONFIG_MAPS[] = {
    { "configmap://one", MODEL },
    { "configmap://one/start.json", MODEL },
    { "configmap://ns/one/start.json", MODEL },
    { "configmap://binary", "[2,3]" },
    { "configmap://two/a", "[1]" },
    { "configmap://two/b", "Invalid: ConfigMap of modelRef is not base64" },
    { "configmap://two", "Invalid: ConfigMap of modelRef has not one key alone: name it" },
    { "configmap://one/other", "Invalid: ConfigMap of modelRef has not this key" },
    { "configmap://other/one/start.json",
      "Invalid: ConfigMap of modelRef must be in the namespace of the job" },
    { "configmap://ns/one/start.json/more",
      "Invalid: modelRef must be 'configmap://<name>' or 'configmap://<name>/<key>'" },
    { "configmap://One",
      "Invalid: modelRef must be 'configmap://<name>' or 'configmap://<name>/<key>'" },
    { "configmap://", "Invalid: modelRef names nothing" },
    { "configmap://text", "Invalid: modelRef: model: invalid JSON at byte 0: expected a value" },
    { "s3://bucket/key", "Invalid: s3:// needs --model-store s3" },
    { "s3://bucket", "Invalid: modelRef must be 's3://<bucket>/<key>'" },
};

TEST_EACH(a_config_map_of_the_namespace_holds_the_first_model, CONFIG_MAPS)
{
    config_maps();
    ck_assert_str_eq(outcome(CONFIG_MAPS[_i].reference), CONFIG_MAPS[_i].outcome);
}

TEST(a_config_map_that_is_not_there_is_not_found)
{
    ck_assert(str_has_prefix(outcome("configmap://none"), "NotFound: "));
}

TEST(a_digest_is_checked_wherever_it_stands)
{
    config_maps();
    ck_assert_str_eq(outcome(with_digest("configmap://binary", "[2,3]")), "[2,3]");
    ck_assert(str_has_prefix(outcome(with_digest("configmap://binary", "[2,4]")),
                             "Invalid: modelRef has the digest '"));
}

TEST(the_model_of_another_job_is_taken_by_its_reference)
{
    const struct model_scope scope = { &KIND_FEDERATEDJOB, { "ns", "old" }, "uid-of-old" };
    const struct model_scope elsewhere = { &KIND_FEDERATEDJOB, { "other", "old" }, "uid-2" };
    char reference[MODEL_REFERENCE_LEN];

    ck_assert_int_eq(model_store_put(store, &scope, MODEL, strlen(MODEL), reference, &err), 0);
    ck_assert_str_eq(outcome(reference), MODEL);
    ck_assert_int_eq(model_store_put(store, &elsewhere, "[7]", 3, reference, &err), 0);
    ck_assert(str_has_prefix(outcome(reference), "NotFound: "));
}

static const char *const BAD[] = {
    "",
    "fl/models/global_model_v0",
    "http://example.com/model.json",
    "file:///etc/passwd",
    "model://md5:00",
    "https://example.com/model.json",
    "https://example.com/model.json#md5:00",
    "https://example.com/model.json#sha256:00",
    "s3://bucket/key#fragment",
};

TEST_EACH(what_no_model_can_be_read_from_is_said_before_anything_is_read, BAD)
{
    struct fake_request *log;

    ck_assert(str_has_prefix(outcome(BAD[_i]), "Invalid: "));
    ck_assert_uint_eq(fake_api_requests(api, arena, &log), 0);
}

/* ---- https ---- */

static void answer(void *ctx UNUSED, struct arena *own, const struct http_server_request *request,
                   struct http_server_reply *ret)
{
    if (str_equal(request->path, "/model.json")) {
        *ret =
            (struct http_server_reply){ .status = 200, .body = MODEL, .body_len = strlen(MODEL) };
    } else if (str_equal(request->path, "/large")) {
        size_t len = MODEL_CONFIGMAP_MAX + 1;
        char *body = arena_alloc(own, len, 1);
        memset(body, '1', len);
        *ret = (struct http_server_reply){ .status = 200, .body = body, .body_len = len };
    } else {
        ret->status = str_equal(request->path, "/busy") ? 503 : 404;
    }
}

TEST(https_needs_the_digest_and_a_certificate_that_is_trusted)
{
    char *dir = temp_dir_create();
    certs_make_ca(dir, "ca");
    certs_make(dir, "ca", "server", "IP:127.0.0.1");
    char *cert = temp_file_read(dir, "server.crt"), *key = temp_file_read(dir, "server.key");
    const struct http_server_options options = {
        .address = "127.0.0.1:0", .handler = answer, .cert_pem = cert, .key_pem = key
    };
    struct http_server *server;

    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
    const char *base = arena_printf(arena, "https://127.0.0.1:%u", http_server_port(server));
    const char *url = arena_printf(arena, "%s/model.json", base);
    const char *unknown = outcome(with_digest(url, MODEL));
    ck_assert_msg(str_has_prefix(unknown, "Unavailable: "), "%s", unknown);

    source.ca_file = arena_printf(arena, "%s/ca.crt", dir);
    ck_assert_str_eq(outcome(with_digest(url, MODEL)), MODEL);
    ck_assert(str_has_prefix(outcome(with_digest(url, "[1]")), "Invalid: modelRef has the digest"));
    ck_assert(str_has_prefix(outcome(with_digest(arena_printf(arena, "%s/none", base), MODEL)),
                             "NotFound: "));
    ck_assert(str_has_prefix(outcome(with_digest(arena_printf(arena, "%s/busy", base), MODEL)),
                             "Unavailable: "));
    ck_assert(str_has_prefix(outcome(with_digest(arena_printf(arena, "%s/large", base), MODEL)),
                             "TooLarge: "));

    http_server_stop(server);
    free(cert);
    free(key);
    temp_dir_destroy(dir);
}
