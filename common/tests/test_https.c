/* The HTTP server with TLS: versions, and the hand-over of certificates under load. */
#include <curl/curl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/http_server.h"
#include "common/tests/certs.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

#define PAIRS 2
#define CLIENTS 4
#define ROTATIONS 12
/* Longer than a test may take. */
#define AN_HOUR_MS 3600000

static char *dir;
static char *cert_pem[PAIRS];
static char *key_pem[PAIRS];
static char ca_path[256];
static struct http_server *server;

static void answer(void *ctx UNUSED, struct arena *arena, const struct http_server_request *request,
                   struct http_server_reply *ret)
{
    ret->status = 200;
    ret->body = arena_printf(arena, "%s", request->body);
    ret->body_len = request->body_len;
}

static void set_up(void)
{
    dir = temp_dir_create();
    certs_make_ca(dir, "ca");
    (void)snprintf(ca_path, sizeof(ca_path), "%s/ca.crt", dir);
    for (int i = 0; i < PAIRS; i++) {
        char name[32];
        char file[64];

        (void)snprintf(name, sizeof(name), "server-%d", i);
        certs_make(dir, "ca", name, "DNS:localhost,IP:127.0.0.1");
        (void)snprintf(file, sizeof(file), "%s.crt", name);
        cert_pem[i] = temp_file_read(dir, file);
        (void)snprintf(file, sizeof(file), "%s.key", name);
        key_pem[i] = temp_file_read(dir, file);
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void serve(unsigned threads)
{
    struct http_server_options options = { .address = "127.0.0.1:0",
                                           .handler = answer,
                                           .threads = threads,
                                           .max_connections = 32,
                                           .max_body = 1000,
                                           .cert_pem = cert_pem[0],
                                           .key_pem = key_pem[0] };
    struct error err = { 0 };

    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
}

static void tear_down(void)
{
    http_server_stop(server);
    for (int i = 0; i < PAIRS; i++) {
        free(cert_pem[i]);
        free(key_pem[i]);
    }
    temp_dir_destroy(dir);
    curl_global_cleanup();
}

TEST_GROUP("https", set_up, tear_down);

static size_t drop(char *bytes, size_t size, size_t count, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * count;
}

static CURL *trusting_create(void)
{
    CURL *curl = curl_easy_init();
    char url[64];

    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", http_server_port(server));
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CAINFO, ca_path);
    return curl;
}

/* A client that trusts the CA; its connection is kept for the next request. */
static CURL *client_create(void)
{
    CURL *curl = trusting_create();

    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "hello");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    return curl;
}

static CURLcode request(CURL *curl)
{
    long status = 0;
    CURLcode code = curl_easy_perform(curl);

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return code == CURLE_OK && status != 200 ? CURLE_HTTP_RETURNED_ERROR : code;
}

/* Which pair a new connection is served with, by the common name of its certificate. */
static int served_pair(void)
{
    CURL *curl = client_create();
    const struct curl_certinfo *info = NULL;
    int pair = -1;

    ck_assert_int_eq(request(curl), CURLE_OK);
    curl_easy_getinfo(curl, CURLINFO_CERTINFO, &info);
    for (const struct curl_slist *field = info->certinfo[0]; field; field = field->next) {
        const char *name = strstr(field->data, "server-");

        if (strncmp(field->data, "Subject:", 8) == 0 && name)
            pair = name[7] - '0';
    }
    curl_easy_cleanup(curl);
    return pair;
}

static long connections_made(CURL *curl)
{
    long made = 0;

    curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &made);
    return made;
}

TEST(the_next_handshake_has_the_new_pair_and_an_old_connection_one_more_answer)
{
    struct error err = { 0 };

    serve(1);

    CURL *curl = client_create();

    ck_assert_int_eq(served_pair(), 0);
    ck_assert_int_eq(request(curl), CURLE_OK);
    ck_assert_int_eq(connections_made(curl), 1);
    ck_assert_int_eq(http_server_set_pair(server, cert_pem[1], key_pem[1], &err), 0);
    ck_assert_int_eq(served_pair(), 1);
    ck_assert_int_eq(request(curl), CURLE_OK);
    ck_assert_int_eq(connections_made(curl), 0); /* still the old one, closed with this answer */
    ck_assert_int_eq(request(curl), CURLE_OK);
    ck_assert_int_eq(connections_made(curl), 1);
    ck_assert_int_eq(request(curl), CURLE_OK);
    ck_assert_int_eq(connections_made(curl), 0); /* and this one is kept */
    curl_easy_cleanup(curl);
}

TEST(an_unusable_pair_is_refused_and_the_old_one_serves_on)
{
    const char *const unusable[][2] = {
        { cert_pem[1], key_pem[0] }, { "", "" },
        { "rubbish", key_pem[1] },   { cert_pem[1], "rubbish" },
        { cert_pem[1], NULL },       { NULL, key_pem[1] },
    };
    struct error err = { 0 };

    serve(1);
    for (size_t i = 0; i < ARRAY_LEN(unusable); i++) {
        ck_assert_int_eq(http_server_set_pair(server, unusable[i][0], unusable[i][1], &err),
                         -ERROR_INVALID);
        ck_assert_ptr_null(strstr(err.message, "PRIVATE KEY"));
        ck_assert_int_eq(served_pair(), 0);
    }
}

TEST_TIMES(tls_before_1_2_is_refused, 3)
{
    static const struct {
        long version;
        bool works;
    } VERSIONS[] = {
        { CURL_SSLVERSION_MAX_TLSv1_1, false },
        { CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_2, true },
        { CURL_SSLVERSION_TLSv1_3 | CURL_SSLVERSION_MAX_TLSv1_3, true },
    };

    serve(1);

    CURL *curl = client_create();

    curl_easy_setopt(curl, CURLOPT_SSLVERSION, VERSIONS[_i].version);
    curl_easy_setopt(curl, CURLOPT_SSL_CIPHER_LIST, "DEFAULT@SECLEVEL=0");
    ck_assert_int_eq(request(curl) == CURLE_OK, VERSIONS[_i].works);
    curl_easy_cleanup(curl);
}

struct load {
    pthread_t thread;
    bool keeps;
    atomic_size_t answers;
    atomic_int failed; /* a CURLcode */
};

static atomic_bool load_ends;

static void *load_thread(void *data)
{
    struct load *load = data;
    CURL *curl = client_create();

    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, load->keeps ? 0L : 1L);
    while (!atomic_load(&load_ends) && atomic_load(&load->failed) == CURLE_OK) {
        atomic_store(&load->failed, (int)request(curl));
        atomic_fetch_add(&load->answers, 1);
    }
    curl_easy_cleanup(curl);
    return NULL;
}

/* So that each client has had answers since. */
static void wait_answers(struct load *loads)
{
    for (int i = 0; i < CLIENTS; i++) {
        size_t before = atomic_load(&loads[i].answers);

        while (atomic_load(&loads[i].answers) < before + 3 &&
               atomic_load(&loads[i].failed) == CURLE_OK)
            (void)poll(NULL, 0, 1);
    }
}

TEST_TIMES(no_request_fails_while_certificates_are_handed_over, 2)
{
    static struct load loads[CLIENTS];
    struct error err = { 0 };

    serve(1 + (unsigned)_i);
    for (int i = 0; i < CLIENTS; i++) {
        loads[i].keeps = i % 2;
        ck_assert_int_eq(pthread_create(&loads[i].thread, NULL, load_thread, &loads[i]), 0);
    }
    for (int i = 1; i <= ROTATIONS; i++) {
        ck_assert_msg(http_server_set_pair(server, cert_pem[i % PAIRS], key_pem[i % PAIRS], &err) ==
                          0,
                      "%s", err.message);
        wait_answers(loads);
        ck_assert_int_eq(served_pair(), i % PAIRS);
    }
    atomic_store(&load_ends, true);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(loads[i].thread, NULL);
        ck_assert_msg(atomic_load(&loads[i].failed) == CURLE_OK, "client %d after %zu answers: %s",
                      i, atomic_load(&loads[i].answers),
                      curl_easy_strerror((CURLcode)atomic_load(&loads[i].failed)));
    }
}

TEST(connections_of_many_pairs_have_one_more_answer_each)
{
    CURL *curls[8];
    struct error err = { 0 };

    serve(1);
    for (size_t i = 0; i < ARRAY_LEN(curls); i++) { /* each leaves an idle connection behind */
        curls[i] = client_create();
        ck_assert_int_eq(request(curls[i]), CURLE_OK);
        ck_assert_int_eq(
            http_server_set_pair(server, cert_pem[i % PAIRS], key_pem[i % PAIRS], &err), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(curls); i++) {
        ck_assert_int_eq(request(curls[i]), CURLE_OK);
        ck_assert_int_eq(connections_made(curls[i]), 0);
        ck_assert_int_eq(request(curls[i]), CURLE_OK);
        ck_assert_int_eq(connections_made(curls[i]), 1);
        curl_easy_cleanup(curls[i]);
    }
}

TEST(a_client_that_does_not_shake_hands_is_cut)
{
    CURL *curl;
    struct http_server_options options = { .address = "127.0.0.1:0",
                                           .handler = answer,
                                           .request_timeout_ms = 200,
                                           .cert_pem = cert_pem[0],
                                           .key_pem = key_pem[0] };
    struct error err = { 0 };
    char url[64];

    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
    curl = curl_easy_init();
    (void)snprintf(url, sizeof(url), "telnet://127.0.0.1:%u/", http_server_port(server));
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    ck_assert_int_eq(curl_easy_perform(curl), CURLE_OK);

    size_t len;
    char byte;
    CURLcode code;

    do {
        code = curl_easy_recv(curl, &byte, 1, &len);
        if (code == CURLE_AGAIN)
            (void)poll(NULL, 0, 1);
    } while (code == CURLE_AGAIN);
    ck_assert(code != CURLE_OK || len == 0);
    curl_easy_cleanup(curl);
}

/* A client whose hands are shaken, and that says these bytes. */
static CURL *talker_create(const char *text)
{
    CURL *curl = trusting_create();
    size_t sent = 0;

    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    ck_assert_int_eq(curl_easy_perform(curl), CURLE_OK);
    if (*text)
        ck_assert_int_eq(curl_easy_send(curl, text, strlen(text), &sent), CURLE_OK);
    ck_assert_uint_eq(sent, strlen(text));
    return curl;
}

static const struct {
    const char *begin;
    bool thread_per_connection;
} HALVES[] = {
    { "", false },
    { "", true },
    { "GET / HT", false },
    { "GET / HTTP/1.1\r\nHost: ", true },
    { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel", false },
    { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel", true },
    { "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", true },
};

TEST_EACH(stop_does_not_wait_for_the_time_of_a_request_that_is_not_whole, HALVES)
{
    const struct http_server_options options = { .address = "127.0.0.1:0",
                                                 .handler = answer,
                                                 .thread_per_connection =
                                                     HALVES[_i].thread_per_connection,
                                                 .max_body = 1000,
                                                 .request_timeout_ms = AN_HOUR_MS,
                                                 .cert_pem = cert_pem[0],
                                                 .key_pem = key_pem[0] };
    struct error err = { 0 };
    CURL *half;

    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
    half = talker_create(HALVES[_i].begin);
    ck_assert_int_eq(served_pair(), 0); /* with one thread: it has read that */
    http_server_stop(server);
    server = NULL;
    curl_easy_cleanup(half);
}
