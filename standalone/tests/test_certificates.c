/* Client certificates beside tokens: whose count, and for what. */
#include <check.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "certs/make.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/process/data_dir.h"
#include "standalone/server/users.h"
#include "standalone/tests/server_fixture.h"

#define DAY_US (INT64_C(24) * 60 * 60 * 1000000)
#define ME "/apis/authentication.k8s.io/v1/selfsubjectreviews"

static const char *dir; /* the data directory */
static struct cert_pair client_ca;

static int64_t now_us(void)
{
    return clock_wall_us(&CLOCK_SYSTEM);
}

/* Files that curl reads: <name>.crt and <name>.key. */
static void save(const char *name, const struct cert_pair *pair)
{
    (void)temp_file(test_arena, dir, arena_printf(test_arena, "%s.crt", name), pair->cert);
    (void)temp_file(test_arena, dir, arena_printf(test_arena, "%s.key", name), pair->key);
}

static void setup(void)
{
    const char *names[] = { "127.0.0.1" };
    const struct cert_names server_names = { names, 1 };
    struct cert_pair ca, leaf;
    struct error err = { 0 };

    server_setup();
    dir = temp_dir(test_arena);
    ck_assert_int_eq(data_dir_keep_client_ca(test_arena, dir, &CLOCK_SYSTEM, &client_ca, &err), 0);
    ck_assert_int_eq(cert_make_ca(test_arena, now_us(), DAY_US, &ca, &err), 0);
    ck_assert_int_eq(cert_make_leaf(test_arena, &ca, &server_names, now_us(), DAY_US, &leaf, &err),
                     0);
    save("server-ca", &ca);
    server_serve((struct server_options){
        .cert_pem = leaf.cert, .key_pem = leaf.key, .client_ca_pem = client_ca.cert });
}

TEST_GROUP("all", setup, server_teardown);

/* --- a client --------------------------------------------------------------------------------- */

static size_t take(char *bytes, size_t size, size_t count, void *ctx)
{
    return buf_append(ctx, bytes, size * count) ? size * count : 0;
}

/* Who am I, asked with this certificate and this token (NULL: none): the status, and what was said. */
static int ask_me(const char *name, const char *token, const char **ret)
{
    CLEANUP(buf_releasep) struct buf said = BUF_INIT(65536);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURL *curl = curl_easy_init();
    long status = 0;

    if (token)
        headers =
            curl_slist_append(headers, arena_printf(test_arena, "Authorization: Bearer %s", token));
    (void)curl_easy_setopt(
        curl, CURLOPT_URL,
        arena_printf(test_arena, "https://127.0.0.1:%u" ME, server_port(api_server)));
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{}");
    (void)curl_easy_setopt(curl, CURLOPT_CAINFO, arena_printf(test_arena, "%s/server-ca.crt", dir));
    if (name) {
        (void)curl_easy_setopt(curl, CURLOPT_SSLCERT,
                               arena_printf(test_arena, "%s/%s.crt", dir, name));
        (void)curl_easy_setopt(curl, CURLOPT_SSLKEY,
                               arena_printf(test_arena, "%s/%s.key", dir, name));
    }
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, &said);

    CURLcode code = curl_easy_perform(curl);

    ck_assert_msg(code == CURLE_OK, "%s", curl_easy_strerror(code));
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    *ret = arena_strdup(test_arena, buf_string(&said));
    return (int)status;
}

static void expect(const char *name, const char *token, int status, const char *says)
{
    const char *said;
    int got = ask_me(name, token, &said);

    ck_assert_msg(got == status && strstr(said, says), "%d: %s", got, said);
}

/* A certificate of the client authority; its line. */
static const char *make_client(const char *file, const char *name, enum role role)
{
    struct cert_pair pair;
    const char *hash, *line;
    struct error err = { 0 };

    ck_assert_msg(data_dir_make_client(test_arena, dir, name, &CLOCK_SYSTEM, &pair, &hash, &err) ==
                      0,
                  "%s", err.message);
    save(file, &pair);
    ck_assert_int_eq(users_certificate_line(test_arena, name, role, hash, &line, &err), 0);
    return line;
}

static void add_lines(const char *lines)
{
    const char *path = users_path();
    const char *folder = arena_strndup(test_arena, path, strlen(path) - strlen("/users"));
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text;
    struct error err;

    ck_assert_int_eq(data_dir_read(arena, path, &text, &err), 0);
    (void)temp_file(test_arena, folder, "users", arena_printf(test_arena, "%s%s", text, lines));
}

/* --- what is said of whom --------------------------------------------------------------------- */

TEST(a_certificate_of_a_line_is_its_user)
{
    add_lines(make_client("eve", "eve", ROLE_EDIT));
    expect("eve", NULL, 201, "\"username\":\"eve\",\"groups\":[\"propeller:edit\"");
    expect("eve", "viewer", 201, "\"username\":\"eve\""); /* it counts first, as there */
    expect(NULL, "viewer", 201, "\"username\":\"viewer\"");
    expect(NULL, NULL, 401, "Unauthorized");
}

TEST(who_is_removed_is_locked_out_also_when_his_name_comes_back)
{
    add_lines(make_client("eve", "eve", ROLE_EDIT));
    expect("eve", NULL, 201, "eve");
    write_users(ALL_USERS);
    expect("eve", NULL, 401, "Unauthorized");
    add_lines(make_client("other", "eve", ROLE_VIEW));
    expect("eve", NULL, 401, "Unauthorized");
    expect("other", NULL, 201, "propeller:view");
    add_lines("bob view certificate\n"); /* any one of that name */
    (void)make_client("bob", "bob", ROLE_NONE);
    expect("bob", NULL, 201, "propeller:view");
}

/* Signed by the authority of that name, for clients. */
static void make_with_openssl(const char *ca, const char *name, const char *subject)
{
    const char *file = arena_printf(test_arena, "%s.csr", name);
    const char *key = arena_printf(test_arena, "%s.key", name);
    const char *crt = arena_printf(test_arena, "%s.crt", name);
    const char *const request[] = { "openssl", "req",     "-new", "-newkey", "rsa:2048",
                                    "-nodes",  "-keyout", key,    "-out",    file,
                                    "-subj",   subject,   NULL };
    const char *const sign[] = { "openssl",
                                 "x509",
                                 "-req",
                                 "-in",
                                 file,
                                 "-CA",
                                 arena_printf(test_arena, "%s.crt", ca),
                                 "-CAkey",
                                 arena_printf(test_arena, "%s.key", ca),
                                 "-CAcreateserial",
                                 "-days",
                                 "2",
                                 "-extfile",
                                 "usage",
                                 "-out",
                                 crt,
                                 NULL };

    (void)temp_file(test_arena, dir, "usage", "extendedKeyUsage=clientAuth\n");
    process_run(dir, request);
    process_run(dir, sign);
}

TEST(organizations_are_groups_and_some_are_roles)
{
    save("client-ca-copy", &client_ca);
    make_with_openssl("client-ca-copy", "ann", "/O=devs/O=propeller:view/CN=ann");
    expect(
        "ann", NULL, 201,
        "\"username\":\"ann\",\"groups\":[\"devs\",\"propeller:view\",\"system:authenticated\"]");
    make_with_openssl("client-ca-copy", "root", "/O=system:masters/CN=root");
    expect("root", NULL, 201, "\"groups\":[\"system:masters\",\"system:authenticated\"]");
    make_with_openssl("client-ca-copy", "nobody", "/O=devs/CN=nobody");
    expect("nobody", NULL, 401, "Unauthorized");
    make_with_openssl("client-ca-copy", "viewer", "/CN=viewer"); /* whose line has a token */
    expect("viewer", NULL, 401, "Unauthorized");
}

static const char *log_of(int (*act)(void))
{
    const char *path = arena_printf(test_arena, "%s/log", dir), *text;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), before = dup(STDERR_FILENO);
    struct error err;

    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(act(), 401);
    ck_assert_int_eq(dup2(before, STDERR_FILENO), STDERR_FILENO);
    close(fd);
    close(before);
    ck_assert_int_eq(data_dir_read(test_arena, path, &text, &err), 0);
    return text;
}

static int ask_as_foreigner(void)
{
    const char *said;

    return ask_me("foreigner", NULL, &said);
}

TEST(a_foreign_certificate_is_refused_with_a_line_of_the_log)
{
    struct cert_pair ca, pair;
    struct error err;
    const char *log;

    ck_assert_int_eq(cert_make_ca(test_arena, now_us(), DAY_US, &ca, &err), 0);
    ck_assert_int_eq(cert_make_client(test_arena, &ca, "eve", now_us(), DAY_US, &pair, &err), 0);
    save("foreigner", &pair);
    add_lines("eve view certificate\n");
    log = log_of(ask_as_foreigner);
    ck_assert_msg(strstr(log, "a client certificate is refused") && strstr(log, "\"eve\""), "%s",
                  log);
    expect("foreigner", "viewer", 201, "\"username\":\"viewer\""); /* a token is one all the same */
}

TEST(what_is_over_or_not_for_clients_is_refused)
{
    const char *names[] = { "eve" };
    const struct cert_names leaf_names = { names, 1 };
    struct cert_pair pair;
    struct error err;

    add_lines("eve view certificate\npropeller-webhook view certificate\n");
    ck_assert_int_eq(
        cert_make_client(test_arena, &client_ca, "eve", now_us() - 2 * DAY_US, DAY_US, &pair, &err),
        0);
    save("over", &pair);
    expect("over", NULL, 401, "Unauthorized");
    ck_assert_int_eq(
        cert_make_leaf(test_arena, &client_ca, &leaf_names, now_us(), DAY_US, &pair, &err), 0);
    save("server", &pair);
    expect("server", NULL, 401, "Unauthorized");
    ck_assert_int_eq(cert_make_client(test_arena, &client_ca, "eve", now_us(), DAY_US, &pair, &err),
                     0);
    save("good", &pair);
    expect("good", NULL, 201, "propeller:view");
}

TEST(the_authority_of_clients_stays)
{
    struct cert_pair again;
    struct error err;

    ck_assert_int_eq(data_dir_keep_client_ca(test_arena, dir, &CLOCK_SYSTEM, &again, &err), 0);
    ck_assert_str_eq(again.cert, client_ca.cert);
    ck_assert_str_eq(again.key, client_ca.key);
}
