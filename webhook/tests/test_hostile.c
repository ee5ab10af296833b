/* The program itself on a real socket, and clients that mean it no good. */
#include <poll.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "webhook/tests/raw_tls.h"
#include "webhook/tests/review_files.h"
#include "webhook/tests/webhook_process.h"

#define PATH "/validate-propeller-propeller-abstractmachines-fr-v1-task"
#define POST "POST " PATH " HTTP/1.1\r\nHost: webhook\r\n"
#define JSON "Content-Type: application/json\r\n"
#define LARGE (8u << 20)
#define MANY 600 /* --max-connections is 512 */
#define DEPTH 100000
/* Bodies of which the last byte is not sent: together more than the program takes at once. */
#define WAITING 10
#define PIECE 65536
/* Tries of a wait, 100 ms apart. */
#define PATIENCE 1200
/* What the pods of config/webhook/deployment.yaml may use. */
#define MEMORY_LIMIT_KIB (256u << 10)

/* One process answers slow requests, the other one cuts them after a second. */
static struct webhook_process *patient, *hasty;
static size_t review_count;
static bool ended_well;

static void start_processes(void)
{
    patient = webhook_process_start("60s");
    hasty = webhook_process_start("1s");
}

static void stop_processes(void)
{
    bool patient_did = webhook_process_stop(patient);

    ended_well = webhook_process_stop(hasty) && patient_did;
}

TEST_GROUP_ONCE("hostile", start_processes, stop_processes, arena_set_up, arena_tear_down);

static struct raw_tls *connect_to(const struct webhook_process *process)
{
    struct raw_tls *client = raw_tls_open(webhook_process_port(process), RAW_TLS);

    ck_assert_ptr_nonnull(client);
    return client;
}

static bool send_text(struct raw_tls *client, const char *text)
{
    return raw_tls_send(client, text, strlen(text));
}

/* The status of the answer to these bytes, on a connection of their own. */
static int status_of(const char *bytes, size_t len)
{
    struct raw_tls *client = connect_to(patient);
    int status = raw_tls_send(client, bytes, len) ? raw_tls_status(client) : 0;

    raw_tls_close(client);
    return status;
}

static int status_of_body(const char *body, size_t len)
{
    struct raw_tls *client = connect_to(patient);

    ck_assert(send_text(client, arena_printf(arena, POST JSON "Content-Length: %zu\r\n\r\n", len)));
    ck_assert(raw_tls_send(client, body, len));

    int status = raw_tls_status(client);

    raw_tls_close(client);
    return status;
}

TEST(every_review_is_answered_the_same_by_the_program)
{
    CLEANUP(tls_client_destroyp)
    struct tls_client *client = tls_client_create(webhook_process_ca(patient));

    ck_assert_uint_ge(review_count, 300);
    review_files_post(client, webhook_process_port(patient), review_count);
    ck_assert_uint_eq(tls_client_connections(client), 1);
}

static const struct {
    const char *request;
    int status; /* 0: the connection is closed */
} ODD[] = {
    { POST JSON "\r\n", 400 },
    { POST JSON "Content-Length: 0\r\n\r\n", 400 },
    { POST JSON "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400 },
    { POST JSON "Content-Length: 2\r\n\r\n{}", 400 },
    { POST JSON "Content-Length: -1\r\n\r\n", 400 },
    { POST JSON "Content-Length: 99999999999999999999\r\n\r\n", 413 },
    { POST "Content-Length: 2\r\n\r\n{}", 415 },
    { POST "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415 },
    { POST "Content-Type: application/jsonp\r\nContent-Length: 2\r\n\r\n{}", 415 },
    { "GET " PATH " HTTP/1.1\r\nHost: webhook\r\n\r\n", 405 },
    { "PUT " PATH " HTTP/1.1\r\nHost: webhook\r\n" JSON "Content-Length: 2\r\n\r\n{}", 405 },
    { "DELETE " PATH " HTTP/1.1\r\nHost: webhook\r\n\r\n", 405 },
    { "POST / HTTP/1.1\r\nHost: webhook\r\n" JSON "Content-Length: 2\r\n\r\n{}", 404 },
    { "POST " PATH "/ HTTP/1.1\r\nHost: webhook\r\n" JSON "Content-Length: 2\r\n\r\n{}", 404 },
    { "GET /healthz HTTP/1.1\r\nHost: webhook\r\n\r\n", 404 },
    { "GET /metrics HTTP/1.1\r\nHost: webhook\r\n\r\n", 404 },
    { "POST " PATH " HTTP/1.1\r\n" JSON "Content-Length: 2\r\n\r\n{}", 400 }, /* no Host */
    { "nonsense\r\n\r\n", 0 },
};

TEST_EACH(odd_requests_have_their_status, ODD)
{
    int status = status_of(ODD[_i].request, strlen(ODD[_i].request));

    ck_assert_msg(status == ODD[_i].status, "%d instead of %d for %s", status, ODD[_i].status,
                  ODD[_i].request);
}

TEST(without_tls_there_is_no_answer)
{
    struct raw_tls *client = raw_tls_open(webhook_process_port(patient), RAW_PLAIN);

    ck_assert_ptr_nonnull(client);
    (void)send_text(client, POST JSON "Content-Length: 2\r\n\r\n{}");
    ck_assert_int_eq(raw_tls_status(client), 0);
    raw_tls_close(client);
}

TEST(tls_begins_with_1_2)
{
    unsigned port = webhook_process_port(patient);

    ck_assert_ptr_null(raw_tls_open(port, RAW_TLS_1_1));

    struct raw_tls *client = raw_tls_open(port, RAW_TLS_1_2);

    ck_assert_ptr_nonnull(client);
    ck_assert(send_text(client, ODD[0].request));
    ck_assert_int_eq(raw_tls_status(client), 400);
    raw_tls_close(client);
}

TEST(a_body_of_more_than_the_limit_is_413)
{
    char *body = arena_alloc(arena, LARGE, 1);

    memset(body, ' ', LARGE);
    ck_assert_int_eq(status_of_body(body, ADMISSION_MAX_BODY), 400);
    ck_assert_int_eq(status_of_body(body, ADMISSION_MAX_BODY + 1), 413);
    ck_assert_int_eq(status_of_body(body, LARGE), 413);
}

TEST(a_body_of_8_mib_in_chunks_is_413)
{
    struct raw_tls *client = connect_to(patient);
    char chunk[PIECE];

    memset(chunk, ' ', sizeof(chunk));
    ck_assert(send_text(client, POST JSON "Transfer-Encoding: chunked\r\n\r\n"));
    for (size_t sent = 0; sent < LARGE; sent += sizeof(chunk)) {
        ck_assert(send_text(client, "10000\r\n"));
        ck_assert(raw_tls_send(client, chunk, sizeof(chunk)));
        ck_assert(send_text(client, "\r\n"));
    }
    ck_assert(send_text(client, "0\r\n\r\n"));
    ck_assert_int_eq(raw_tls_status(client), 413);
    raw_tls_close(client);
}

TEST(nesting_of_100000_is_400)
{
    static const char BEGIN[] = "{\"request\":{\"object\":{\"spec\":";
    char *body = arena_alloc(arena, sizeof(BEGIN) + 2 * DEPTH + 8, 1);
    size_t len = strlen(BEGIN);

    memcpy(body, BEGIN, len);
    memset(body + len, '[', DEPTH);
    ck_assert_int_eq(status_of_body(body, len + DEPTH), 400);
    memset(body + len + DEPTH, ']', DEPTH);
    memcpy(body + len + (size_t)2 * DEPTH, "}}}", 3);
    ck_assert_int_eq(status_of_body(body, len + (size_t)2 * DEPTH + 3), 400);
}

TEST(three_million_values_are_413)
{
    size_t len = (6u << 20) | 1;
    char *body = arena_alloc(arena, len, 1);

    for (size_t i = 0; i < len; i++)
        body[i] = i % 2 ? '1' : ',';
    body[0] = '[';
    body[len - 1] = ']';
    ck_assert_int_eq(status_of_body(body, len), 413);
}

TEST(others_are_served_beside_600_silent_connections)
{
    struct raw_tls *silent[MANY];

    for (size_t i = 0; i < MANY; i++) {
        silent[i] = raw_tls_open(webhook_process_port(patient), RAW_PLAIN);
        ck_assert_ptr_nonnull(silent[i]);
    }
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(status_of(ODD[0].request, strlen(ODD[0].request)), 400);
    for (size_t i = 0; i < MANY; i++)
        raw_tls_close(silent[i]);
}

static struct raw_tls *begin_large_body(const char *body, size_t len)
{
    struct raw_tls *client = connect_to(patient);

    ck_assert(send_text(client, arena_printf(arena, POST JSON "Content-Length: %zu\r\n\r\n", len)));
    ck_assert(raw_tls_send(client, body, len - 1));
    return client;
}

TEST(bodies_beyond_the_limit_of_all_are_503)
{
    size_t len = ADMISSION_MAX_BODY;
    char *body = arena_alloc(arena, len, 1);
    struct raw_tls *clients[WAITING];
    int refused = 0;
    int answered = 0;

    memset(body, 'x', len); /* nothing that takes long to refuse */
    for (size_t i = 0; i < WAITING; i++)
        clients[i] = begin_large_body(body, len);
    for (size_t i = 0; i < WAITING; i++) {
        ck_assert(send_text(clients[i], "}"));
        int status = raw_tls_status(clients[i]);
        refused += status == 503;
        answered += status == 400;
        raw_tls_close(clients[i]);
    }
    ck_assert_int_gt(refused, 0);
    ck_assert_int_gt(answered, 0);
    ck_assert_int_eq(refused + answered, WAITING);
}

/* --- slow ones -------------------------------------------------------------------------------- */

TEST(a_request_byte_by_byte_is_answered)
{
    struct raw_tls *client = connect_to(patient);

    for (const char *next = ODD[3].request; *next; next++)
        ck_assert(raw_tls_send(client, next, 1));
    ck_assert_int_eq(raw_tls_status(client), 400);
    raw_tls_close(client);
}

/* What comes before, and then again and again, never silent for long. */
static const struct {
    const char *begin, *again;
} ENDLESS[] = {
    { "POST " PATH, "a" },
    { POST "X-Slow: ", "a" },
    { POST JSON "Content-Length: 100000\r\n\r\n", " " },
    { POST JSON "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n" },
    { POST JSON "Transfer-Encoding: chunked\r\n\r\n", "" },
    { "", "" },
};

/* One whose handshake does not end, and one of each of the above. */
static void begin_endless(struct raw_tls *clients[])
{
    static const char HELLO[] = "\x16\x03\x01\x02"; /* of a hello, the first bytes */

    clients[0] = raw_tls_open(webhook_process_port(hasty), RAW_PLAIN);
    ck_assert_ptr_nonnull(clients[0]);
    (void)raw_tls_send(clients[0], HELLO, strlen(HELLO));
    for (size_t i = 0; i < ARRAY_LEN(ENDLESS); i++) {
        do { /* on a slow machine it may be cut before it has shaken hands */
            clients[i + 1] = raw_tls_open(webhook_process_port(hasty), RAW_TLS);
        } while (!clients[i + 1]);
        (void)send_text(clients[i + 1], ENDLESS[i].begin);
    }
}

/* A little more of each. How many of them still are connected. */
static size_t go_on(struct raw_tls *clients[])
{
    size_t connected = !raw_tls_has_ended(clients[0]);

    for (size_t i = 0; i < ARRAY_LEN(ENDLESS); i++)
        connected +=
            !raw_tls_has_ended(clients[i + 1]) && send_text(clients[i + 1], ENDLESS[i].again);
    return connected;
}

TEST(requests_that_do_not_end_are_cut)
{
    struct raw_tls *clients[ARRAY_LEN(ENDLESS) + 1];

    begin_endless(clients);
    for (int i = 0; go_on(clients); i++) {
        ck_assert_int_lt(i, PATIENCE);
        poll(NULL, 0, 100);
    }
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        raw_tls_close(clients[i]);
}

/* --- after all of it -------------------------------------------------------------------------- */

/* The last test. */
TEST(connections_have_ended_and_memory_is_bounded)
{
    int tries = 0;

    while (webhook_process_descriptors(patient) > 64) {
        ck_assert_int_lt(tries++, PATIENCE);
        poll(NULL, 0, 100);
    }
    ck_assert_int_eq(status_of(ODD[0].request, strlen(ODD[0].request)), 400);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_uint_lt(webhook_process_peak_kib(patient), MEMORY_LIMIT_KIB);
#endif
}

int main(void)
{
    review_count = review_files_find();

    int r = suite_run_tests();

    review_files_forget();
    return ended_well ? r : 1;
}
