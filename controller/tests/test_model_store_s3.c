#include <signal.h>
#include <stdlib.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "controller/blobs/s3.h"
#include "controller/federated/model_source.h"
#include "controller/tests/s3_server.h"

static struct arena *arena;
static struct error err;
static struct s3_server *server;
static struct model_store *store;
static struct model_s3_options options;
static const struct model_scope JOB = { &KIND_FEDERATEDJOB,
                                        { "ns", "mnist" },
                                        "11111111-0000-0000-0000-000000000000" };
static const struct model_scope ROUND = { &KIND_TRAININGROUND,
                                          { "ns", "round-1-mnist" },
                                          "22222222-0000-0000-0000-000000000000" };

static void open_store(void)
{
    model_store_destroy(store);
    store = NULL;
    ck_assert_msg(model_store_s3_create(&options, &store, &err) == 0, "%s", err.message);
}

/* PROPELLER_TEST_S3="<endpoint> <region> <bucket> <access key> <secret key>": another server, which runs. */
static bool is_elsewhere(void)
{
    return getenv("PROPELLER_TEST_S3") != NULL;
}

static void use_other_server(void)
{
    const char **members[] = { &options.endpoint, &options.region, &options.bucket,
                               &options.access_key, &options.secret_key };
    char *text = arena_strdup(arena, getenv("PROPELLER_TEST_S3"));

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        size_t len = strcspn(text, " ");
        ck_assert(len && (text[len] || i + 1 == ARRAY_LEN(members)));
        *members[i] = arena_strndup(arena, text, len);
        text += len + (text[len] == ' ');
    }
}

static void set_up(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    json_init();
    arena = arena_create();
    err = (struct error){ 0 };
    options = (struct model_s3_options){
        .region = S3_TEST_REGION,
        .bucket = S3_TEST_BUCKET,
        .access_key = S3_TEST_ACCESS_KEY,
        .secret_key = S3_TEST_SECRET_KEY,
    };
    if (is_elsewhere()) {
        use_other_server();
    } else {
        server = s3_server_start();
        options.endpoint = arena_printf(arena, "http://127.0.0.1:%d/", s3_server_port(server));
    }
    open_store();
}

static void tear_down(void)
{
    model_store_destroy(store);
    store = NULL;
    s3_server_stop(server);
    server = NULL;
    arena_destroy(arena);
}

static const char *put(const struct model_scope *scope, const char *text)
{
    char *reference = arena_alloc(arena, MODEL_REFERENCE_LEN, 1);
    int r = model_store_put(store, scope, text, strlen(text), reference, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    return reference;
}

/* What is there, or the error. */
static const char *got(const struct model_scope *scope, const char *reference)
{
    const char *bytes;
    size_t len;

    if (model_store_get(store, arena, scope, reference, &bytes, &len, &err) < 0)
        return error_code_name(err.code);
    ck_assert_uint_eq(strlen(bytes), len);
    return bytes;
}

static void empty_bucket(void)
{
    ck_assert_int_eq(model_store_gc(store, &JOB, NULL, 0, &err), 0);
    ck_assert_int_eq(model_store_gc(store, &ROUND, NULL, 0, &err), 0);
}

START_TEST(models_are_put_read_found_and_collected)
{
    const char *other = put(&ROUND, "[1]"), *kept = NULL, *bytes;
    size_t len;

    for (int i = 0; i < 7; i++)
        kept = put(&JOB, arena_printf(arena, "[%d,0.5]", i));
    ck_assert_str_eq(put(&JOB, "[6,0.5]"), kept); /* twice is as once */
    ck_assert_str_eq(got(&JOB, kept), "[6,0.5]");
    ck_assert_str_eq(got(&JOB, other), "NotFound"); /* it is another scope's */
    ck_assert_str_eq(got(&ROUND, other), "[1]");

    ck_assert_int_eq(model_store_find(store, arena, "ns", kept, &bytes, &len, &err), 0);
    ck_assert_str_eq(bytes, "[6,0.5]");
    ck_assert_int_eq(model_store_find(store, arena, "n", kept, &bytes, &len, &err),
                     -ERROR_NOT_FOUND);

    ck_assert_msg(model_store_gc(store, &JOB, &kept, 1, &err) == 0, "%s", err.message);
    ck_assert_str_eq(got(&JOB, kept), "[6,0.5]");
    ck_assert_str_eq(got(&ROUND, other), "[1]");
    for (int i = 0; i < 6; i++) {
        char reference[MODEL_REFERENCE_LEN];
        const char *text = arena_printf(arena, "[%d,0.5]", i);
        ck_assert_str_eq(got(&JOB, model_reference(text, strlen(text), reference)), "NotFound");
    }
    empty_bucket();
    ck_assert_str_eq(got(&JOB, kept), "NotFound");
    if (server)
        ck_assert_uint_eq(s3_server_objects(server), 0);
}
END_TEST

START_TEST(a_large_model_comes_back)
{
    size_t len = (size_t)3 << 20;
    char *text = arena_alloc(arena, len + 1, 1);

    for (size_t i = 0; i < len; i++)
        text[i] = (char)('0' + i * 7 % 10);
    ck_assert_str_eq(got(&JOB, put(&JOB, text)), text);
    empty_bucket();
}
END_TEST

START_TEST(a_wrong_key_is_refused_and_no_message_holds_it)
{
    char reference[MODEL_REFERENCE_LEN];

    options.secret_key = "wrong-secret-key";
    open_store();
    ck_assert_int_eq(model_store_put(store, &JOB, "[1]", 3, reference, &err), -ERROR_FORBIDDEN);
    ck_assert_ptr_nonnull(strstr(err.message, "SignatureDoesNotMatch"));
    ck_assert_ptr_null(strstr(err.message, "wrong-secret"));
}
END_TEST

START_TEST(an_object_of_the_bucket_is_the_first_model_if_it_is_nobody_s)
{
    const struct model_source source = { .store = store };
    struct fl_model model;
    const char *digest = model_reference_digest(put(&JOB, "[1,2]"));
    char reference[MODEL_REFERENCE_LEN];
    const char *own =
        arena_printf(arena, "s3://%s/propeller/ns/%s/sha256-%s", options.bucket, JOB.uid, digest);

    ck_assert_int_eq(model_source_read(&source, arena, "ns", own, &model, &err), -ERROR_INVALID);
    ck_assert_int_eq(model_source_read(&source, arena, "ns", "s3://another/key", &model, &err),
                     -ERROR_INVALID);
    ck_assert_int_eq(
        model_source_read(&source, arena, "ns",
                          arena_printf(arena, "s3://%s/start model+1.json", options.bucket), &model,
                          &err),
        -ERROR_NOT_FOUND);
    ck_assert_int_eq(model_source_read(&source, arena, "ns", model_reference("[1,2]", 5, reference),
                                       &model, &err),
                     0);
    ck_assert_str_eq(model.shape, "[#2]");
    empty_bucket();
}
END_TEST

static const char *const ROUNDABOUT[] = { "../another/key",
                                          "x/../propeller/ns/key",
                                          "./propeller/key",
                                          "/propeller/key",
                                          "x//key",
                                          "x/",
                                          "x/.." };

START_TEST(a_key_that_a_server_may_understand_otherwise_is_refused)
{
    const struct model_source source = { .store = store };
    struct fl_model model;
    const char *reference = arena_printf(arena, "s3://%s/%s", options.bucket, ROUNDABOUT[_i]);

    ck_assert_int_eq(model_source_read(&source, arena, "ns", reference, &model, &err),
                     -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "'..'"));
}
END_TEST

/* ---- with the server of this test only ---- */

START_TEST(bytes_that_were_changed_are_never_a_model)
{
    const char *reference = put(&JOB, "[1,2]");

    s3_server_spoil(server, 0, "[1,3]");
    ck_assert_str_eq(got(&JOB, reference), "Internal");
}
END_TEST

static const struct {
    int status;
    const char *code;
    const char *error;
    bool transient;
} ANSWERS[] = {
    { 500, "InternalError", "Unavailable", true },
    { 503, "SlowDown", "Unavailable", true },
    { 429, "TooMany", "Unavailable", true },
    { 403, "AccessDenied", "Forbidden", false },
    { 404, "NoSuchBucket", "Unavailable", true }, /* which says nothing of the object */
    { 404, "NoSuchKey", "NotFound", false },
    { 301, "PermanentRedirect", "Invalid", false },
    { 400, "<b>", "Invalid", false },
};

START_TEST(what_may_pass_and_what_does_not_are_told_apart)
{
    char reference[MODEL_REFERENCE_LEN];

    s3_server_fail(server, ANSWERS[_i].status, ANSWERS[_i].code);
    ck_assert_str_eq(got(&JOB, model_reference("1", 1, reference)), ANSWERS[_i].error);
    ck_assert(error_is_transient(&err) == ANSWERS[_i].transient);
    ck_assert_ptr_nonnull(
        strstr(err.message, arena_printf(arena, "status %d", ANSWERS[_i].status)));
    ck_assert_ptr_null(strchr(err.message, '<'));
}
END_TEST

static bool may_not(void *ctx)
{
    ++*(int *)ctx;
    return false;
}

START_TEST(who_does_not_lead_any_more_reads_and_writes_nothing)
{
    const char *reference = put(&JOB, "[1]");
    int asked = 0;

    options.may_write = may_not;
    options.ctx = &asked;
    open_store();
    ck_assert_str_eq(got(&JOB, reference), "[1]");
    ck_assert_int_eq(asked, 0);
    char again[MODEL_REFERENCE_LEN];
    ck_assert_int_eq(model_store_put(store, &JOB, "[2]", 3, again, &err), -ERROR_CANCELED);
    ck_assert_int_eq(model_store_gc(store, &JOB, NULL, 0, &err), -ERROR_CANCELED);
    ck_assert_int_eq(model_store_forget(store, &JOB, &err), -ERROR_CANCELED);
    ck_assert_uint_eq(s3_server_objects(server), 1);
    ck_assert_int_eq(asked, 3);
}
END_TEST

START_TEST(what_an_owner_leaves_is_forgotten_with_it)
{
    const char *other = put(&ROUND, "[1]");

    (void)put(&JOB, "[2]");
    (void)put(&JOB, "[3]");
    ck_assert_int_eq(model_store_forget(store, &JOB, &err), 0);
    ck_assert_uint_eq(s3_server_objects(server), 1);
    ck_assert_str_eq(got(&ROUND, other), "[1]");
}
END_TEST

START_TEST(a_server_that_is_away_may_come_back)
{
    char reference[MODEL_REFERENCE_LEN];

    s3_server_stop(server);
    server = NULL;
    ck_assert_int_eq(model_store_put(store, &JOB, "[1]", 3, reference, &err), -ERROR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "connect to 'http://127.0.0.1:"));
}
END_TEST

/* Signature Version 4 of Amazon S3, "Examples: Signature Calculations" of its documentation. */
#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HEAD(line, headers, hash, names, signature)                                                \
    line " HTTP/1.1\r\nHost: examplebucket.s3.amazonaws.com\r\n" headers                           \
         "x-amz-content-sha256: " hash "\r\nx-amz-date: 20130524T000000Z\r\nAuthorization: "       \
         "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"    \
         "SignedHeaders=" names ",Signature=" signature "\r\n\r\n"
static const char *const VECTORS[] = {
    HEAD("GET /test.txt", "Range: bytes=0-9\r\n", EMPTY_HASH,
         "host;range;x-amz-content-sha256;x-amz-date",
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    HEAD(
        "PUT /test%24file.text",
        "Date: Fri, 24 May 2013 00:00:00 GMT\r\nx-amz-storage-class: REDUCED_REDUNDANCY\r\n",
        "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd") "Welcome to Amazon S3.",
    HEAD("GET /?lifecycle", "", EMPTY_HASH, "host;x-amz-content-sha256;x-amz-date",
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    HEAD("GET /?max-keys=2&prefix=J", "", EMPTY_HASH, "host;x-amz-content-sha256;x-amz-date",
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
};

START_TEST(the_verifier_of_this_test_agrees_with_the_published_vectors)
{
    const char *problem = s3_signature_problem(arena, VECTORS[_i], "us-east-1", S3_TEST_ACCESS_KEY,
                                               S3_TEST_SECRET_KEY);
    ck_assert_msg(!problem, "%s", problem);
    ck_assert_str_eq(s3_signature_problem(arena, VECTORS[_i], NULL, S3_TEST_ACCESS_KEY, "other"),
                     "SignatureDoesNotMatch");

    char *changed = arena_strdup(arena, VECTORS[_i]);
    changed[strcspn(changed, " ") + 2] ^= 1; /* of the path */
    ck_assert_str_eq(
        s3_signature_problem(arena, changed, NULL, S3_TEST_ACCESS_KEY, S3_TEST_SECRET_KEY),
        "SignatureDoesNotMatch");
}
END_TEST

#define OPTIONS(at, where, name, access, secret)                                                   \
    {                                                                                              \
        .endpoint = (at), .region = (where), .bucket = (name), .access_key = (access),             \
        .secret_key = (secret)                                                                     \
    }
static const struct {
    struct model_s3_options options;
    const char *message;
} BAD_OPTIONS[] = {
    { OPTIONS(NULL, NULL, "models", "a", "s"), "--s3-endpoint" },
    { OPTIONS("s3.example.com", NULL, "models", "a", "s"), "--s3-endpoint" },
    { OPTIONS("https://", NULL, "models", "a", "s"), "--s3-endpoint" },
    { OPTIONS("https://h/path", NULL, "models", "a", "s"), "--s3-endpoint" },
    { OPTIONS("https://u@h", NULL, "models", "a", "s"), "--s3-endpoint" },
    { OPTIONS("https://h", NULL, "Models", "a", "s"), "--s3-bucket" },
    { OPTIONS("https://h", NULL, NULL, "a", "s"), "--s3-bucket" },
    { OPTIONS("https://h", "a b", "models", "a", "s"), "--s3-region" },
    { OPTIONS("https://h", NULL, "models", "", "s"), "--s3-credentials-file" },
    { OPTIONS("https://h", NULL, "models", "a", NULL), "--s3-credentials-file" },
};

START_TEST(an_option_that_cannot_be_used_is_named)
{
    struct model_store *none;

    ck_assert_int_eq(model_store_s3_create(&BAD_OPTIONS[_i].options, &none, &err), -ERROR_INVALID);
    ck_assert(str_has_prefix(err.message, BAD_OPTIONS[_i].message));
}
END_TEST

static const struct {
    const char *text;
    const char *read; /* NULL: refused */
} CREDENTIALS[] = {
    { "aws_access_key_id = AK \naws_secret_access_key=a=b/c+d\n", "AK a=b/c+d -" },
    { "[other]\naws_access_key_id=X\naws_secret_access_key=Y\n[default]\n# comment\r\n"
      "aws_access_key_id=AK\r\naws_secret_access_key=SK\r\naws_session_token=T\r\nregion=x\n",
      "AK SK T" },
    { "[other]\naws_access_key_id=X\naws_secret_access_key=Y\n", NULL },
    { "aws_access_key_id=X\n", NULL },
    { "", NULL },
};

START_TEST(a_credentials_file_is_read_as_others_read_it)
{
    char *folder = temp_dir_create();
    char *path = temp_file_write(folder, "credentials", CREDENTIALS[_i].text);
    struct model_s3_options read = { 0 };
    int r = model_s3_credentials_read(arena, path, &read, &err);

    ck_assert_int_eq(r, CREDENTIALS[_i].read ? 0 : -ERROR_INVALID);
    if (r == 0)
        ck_assert_str_eq(arena_printf(arena, "%s %s %s", read.access_key, read.secret_key,
                                      read.session_token ? read.session_token : "-"),
                         CREDENTIALS[_i].read);
    free(path);
    temp_dir_destroy(folder);
}
END_TEST

START_TEST(a_credentials_file_that_is_not_there_is_named)
{
    struct model_s3_options read = { 0 };

    ck_assert_int_eq(model_s3_credentials_read(arena, "/nonexistent/keys", &read, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message,
                     "credentials file '/nonexistent/keys': No such file or directory");
}
END_TEST

static void write_credentials(const char *path, const char *access_key, const char *secret_key)
{
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "aws_access_key_id=%s\naws_secret_access_key=%s\n", access_key, secret_key);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(credentials_that_are_replaced_in_their_file_are_the_next_request_s)
{
    char *folder = temp_dir_create();
    char *path = temp_file_write(folder, "credentials", "");
    char reference[MODEL_REFERENCE_LEN];

    options.credentials_file = path;
    open_store();
    ck_assert_int_eq(model_store_put(store, &JOB, "[1]", 3, reference, &err), -ERROR_UNAVAILABLE);
    write_credentials(path, S3_TEST_ACCESS_KEY, "of-yesterday");
    ck_assert_int_eq(model_store_put(store, &JOB, "[1]", 3, reference, &err), -ERROR_FORBIDDEN);
    ck_assert_ptr_null(strstr(err.message, "of-yesterday"));
    write_credentials(path, S3_TEST_ACCESS_KEY, S3_TEST_SECRET_KEY);
    ck_assert_str_eq(got(&JOB, put(&JOB, "[1]")), "[1]");
    free(path);
    temp_dir_destroy(folder);
    ck_assert_int_eq(model_store_put(store, &JOB, "[1]", 3, reference, &err), -ERROR_UNAVAILABLE);
}
END_TEST

START_TEST(one_request_after_the_other_needs_one_connection)
{
    for (int i = 0; i < 5; i++)
        put(&JOB, arena_printf(arena, "[%d]", i));
    empty_bucket();
    ck_assert_uint_eq(s3_server_connections(server), 1);
}
END_TEST

static void add_tests_of_this_server(TCase *tcase)
{
    tcase_add_test(tcase, credentials_that_are_replaced_in_their_file_are_the_next_request_s);
    tcase_add_test(tcase, one_request_after_the_other_needs_one_connection);
    tcase_add_test(tcase, bytes_that_were_changed_are_never_a_model);
    tcase_add_loop_test(tcase, what_may_pass_and_what_does_not_are_told_apart, 0,
                        ARRAY_LEN(ANSWERS));
    tcase_add_test(tcase, who_does_not_lead_any_more_reads_and_writes_nothing);
    tcase_add_test(tcase, what_an_owner_leaves_is_forgotten_with_it);
    tcase_add_test(tcase, a_server_that_is_away_may_come_back);
    tcase_add_loop_test(tcase, the_verifier_of_this_test_agrees_with_the_published_vectors, 0,
                        ARRAY_LEN(VECTORS));
    tcase_add_loop_test(tcase, an_option_that_cannot_be_used_is_named, 0, ARRAY_LEN(BAD_OPTIONS));
    tcase_add_loop_test(tcase, a_credentials_file_is_read_as_others_read_it, 0,
                        ARRAY_LEN(CREDENTIALS));
    tcase_add_test(tcase, a_credentials_file_that_is_not_there_is_named);
}

int main(void)
{
    Suite *suite = suite_create("model_store_s3");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, models_are_put_read_found_and_collected);
    tcase_add_test(tcase, a_large_model_comes_back);
    tcase_add_test(tcase, a_wrong_key_is_refused_and_no_message_holds_it);
    tcase_add_test(tcase, an_object_of_the_bucket_is_the_first_model_if_it_is_nobody_s);
    tcase_add_loop_test(tcase, a_key_that_a_server_may_understand_otherwise_is_refused, 0,
                        ARRAY_LEN(ROUNDABOUT));
    if (!is_elsewhere())
        add_tests_of_this_server(tcase);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
