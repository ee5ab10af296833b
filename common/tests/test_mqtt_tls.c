/* Who lets whom in: TLS both ways, passwords, refusals, and a broker that is none. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/tests/certs.h"
#include "common/tests/mqtt_probe.h"
#include "common/tests/patience.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

static struct broker *broker;
static struct probe *probe;
static struct mqtt_options options;
static char paths[6][256];

/* A path in the broker's directory that lives as long as the test. */
static const char *path_of(const char *name)
{
    static size_t used;
    char *path = paths[used++ % 6];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", broker_dir(broker), name);
    return path;
}

static void configure(const char *key, const char *file)
{
    char line[512];

    (void)snprintf(line, sizeof(line), "%s %s", key, path_of(file));
    broker_configure(broker, line);
}

static void set_up(void)
{
    broker = broker_create();
    options = probe_options(broker, "client");
}

static void set_up_tls(void)
{
    set_up();
    certs_make_ca(broker_dir(broker), "ca");
    certs_make_ca(broker_dir(broker), "other-ca");
    certs_make(broker_dir(broker), "ca", "server", "DNS:localhost,IP:127.0.0.1");
    certs_make(broker_dir(broker), "ca", "client", "DNS:client");
    configure("certfile", "server.crt");
    configure("keyfile", "server.key");
    configure("cafile", "ca.crt");
    options.tls = true;
    options.ca_file = path_of("ca.crt");
}

static void tear_down(void)
{
    probe_destroy(probe);
    broker_destroy(broker);
}

TEST_GROUP("tls", set_up_tls, tear_down);

/* Starts both, and expects that they do not come together. */
static void expect_why(const char *part)
{
    struct error err = { 0 };

    probe = probe_create(&options, false);
    ck_assert_msg(mqtt_start(probe_mqtt(probe), &err) == 0, "%s", err.message);
    probe_wait_why(probe, part);
    ck_assert_uint_eq(probe_connections(probe), 0);
}

static void expect_works(void)
{
    probe = probe_create(&options, false);
    probe_start(probe);
    probe_subscribe(probe, "topic", 1);
    probe_publish(probe, "topic", "hello");
    probe_wait_messages(probe, 1);
}

TEST_TIMES(tls_works_with_an_address_and_with_a_name, 2)
{
    static const char *const HOSTS[] = { "127.0.0.1", "localhost" };

    broker_start(broker);
    options.host = HOSTS[_i];
    expect_works();
}

TEST_TIMES(a_flood_over_tls_arrives_whole_whether_settled_or_not, 2)
{
    enum { MESSAGES = 3000 };
    struct probe *sender;

    broker_start(broker);
    sender = probe_create(&options, false);
    probe_start(sender);
    options.client_id = "receiver";
    probe = probe_create(&options, _i);
    probe_set_settled(probe, true);
    probe_start(probe);
    probe_subscribe(probe, "topic", 1);
    probe_hold(probe, true);
    for (int i = 0; i < MESSAGES; i++) {
        struct error err = { 0 };
        char payload[16];

        (void)snprintf(payload, sizeof(payload), "%d", i);
        ck_assert_msg(mqtt_publish(probe_mqtt(sender), "topic", payload, strlen(payload), i % 2,
                                   60000, &err) == 0,
                      "%s", err.message);
        if (i % 100 == 50)
            probe_hold(probe, false);
        if (i % 100 == 99)
            probe_hold(probe, true);
    }
    probe_hold(probe, false);
    probe_wait_messages(probe, MESSAGES);
    ck_assert_uint_eq(probe_connections(probe), 1);
    probe_destroy(sender);
}

TEST(a_broker_with_a_certificate_of_another_ca_is_not_trusted)
{
    broker_start(broker);
    options.ca_file = path_of("other-ca.crt");
    expect_why("certificate");
}

TEST(the_systems_cas_do_not_trust_a_private_one)
{
    broker_start(broker);
    options.ca_file = NULL;
    expect_why("certificate");
}

TEST_TIMES(a_broker_with_a_certificate_for_another_name_is_not_trusted, 2)
{
    static const char *const HOSTS[] = { "127.0.0.1", "localhost" };
    static const char *const WHY[] = { "IP address mismatch", "hostname mismatch" };

    certs_make(broker_dir(broker), "ca", "server", "DNS:elsewhere.example.org,IP:192.0.2.1");
    broker_start(broker);
    options.host = HOSTS[_i];
    expect_why(WHY[_i]);
}

TEST(a_broker_without_tls_is_refused)
{
    broker_destroy(broker);
    broker = broker_create();
    certs_make_ca(broker_dir(broker), "ca");
    broker_start(broker);
    options.port = broker_port(broker);
    options.ca_file = path_of("ca.crt");
    expect_why("connect to '127.0.0.1:");
}

TEST(a_client_certificate_is_shown_and_missed)
{
    broker_configure(broker, "require_certificate true");
    broker_start(broker);
    expect_why("127.0.0.1:"); /* an alert, or just a reset: the broker does not wait */
    probe_destroy(probe);
    options.cert_file = path_of("client.crt");
    options.key_file = path_of("client.key");
    expect_works();
}

TEST_TIMES(files_that_cannot_be_used_are_named, 8)
{
    const struct {
        const char *ca, *cert, *key, *why;
    } cases[] = {
        { "missing", NULL, NULL, "No such file" },
        { "server.key", NULL, NULL, "server.key" },
        { "ca.crt", "client.crt", NULL, "together" },
        { "ca.crt", NULL, "client.key", "together" },
        { "ca.crt", "missing", "client.key", "No such file" },
        { "ca.crt", "client.crt", "missing", "No such file" },
        { "ca.crt", "client.crt", "server.key", "key values mismatch" },
        { "ca.crt", "client.crt", "encrypted.key", "encrypted.key" },
    };
    const char *const encrypt[] = { "openssl",       "ec",      "-in",      "client.key",  "-out",
                                    "encrypted.key", "-aes256", "-passout", "pass:secret", NULL };

    process_run(broker_dir(broker), encrypt);
    options.ca_file = path_of(cases[_i].ca);
    options.cert_file = cases[_i].cert ? path_of(cases[_i].cert) : NULL;
    options.key_file = cases[_i].key ? path_of(cases[_i].key) : NULL;
    broker_start(broker);
    expect_why(cases[_i].why);
}

TEST_GROUP("plain", set_up, tear_down);

TEST(a_wrong_password_is_told_without_the_password)
{
    char why[256];

    broker_add_user(broker, "me", "right");
    broker_start(broker);
    options.user_name = "me";
    options.password = "wrong-secret";
    expect_why("refused: not authorised");
    ck_assert(!mqtt_connected(probe_mqtt(probe), why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "refused: not authorised"));
    ck_assert_ptr_null(strstr(why, "wrong-secret"));
}

TEST_TIMES(the_password_file_is_read_again_at_every_attempt, 3)
{
    static const char *const USELESS[] = { "", "\n", "wrong\n" };

    broker_add_user(broker, "me", "right");
    broker_start(broker);
    free(temp_file_write(broker_dir(broker), "password", USELESS[_i]));
    options.user_name = "me";
    options.password_file = path_of("password");
    expect_why(_i < 2 ? "is empty or not text" : "not authorised");
    free(temp_file_write(broker_dir(broker), "password", "right\r\n"));
    probe_wait_connected(probe);
}

TEST_TIMES(a_password_file_that_is_missing_or_too_long_is_named, 2)
{
    char *text = malloc(5000);

    memset(text, 'x', 4999);
    text[4999] = '\0';
    if (_i)
        free(temp_file_write(broker_dir(broker), "password", text));
    free(text);
    broker_start(broker);
    options.user_name = "me";
    options.password_file = path_of("password");
    expect_why(_i ? "is longer than" : "No such file");
}

TEST(a_filter_that_the_broker_refuses_is_told_and_asked_for_until_it_is_granted)
{
    broker_refuse_subscriptions(broker);
    broker_start(broker);
    probe = probe_create(&options, false);
    probe_start(probe);
    mqtt_subscribe(probe_mqtt(probe), "bad", 1);
    mqtt_subscribe(probe_mqtt(probe), "good", 1);
    ck_assert_int_eq(probe_granted(probe, "bad"), -1);
    ck_assert_int_eq(probe_granted(probe, "good"), 1);
    probe_publish(probe, BROKER_CONTROL, BROKER_ALLOW);
    ck_assert_int_eq(probe_granted(probe, "bad"), 1);
    ck_assert_uint_eq(probe_connections(probe), 1);
}

TEST_TIMES(an_unknown_host_and_a_closed_port_are_told, 2)
{
    if (_i)
        options.host = NO_HOST;
    expect_why(_i ? "connect to '" NO_HOST ":" : "Connection refused");
}

/* A listening socket on the broker's port; the kernel accepts for it. */
static int listen_instead(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(broker_port(broker)),
                                   .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

TEST_GROUP("tls", set_up_tls, tear_down);

/* A ClientHello is not encrypted, and holds the name as it is. */
TEST_TIMES(the_name_is_sent_to_the_server_and_an_address_is_not, 2)
{
    struct error err = { 0 };
    int listener = listen_instead();
    char hello[4096];

    options.host = _i ? "localhost" : "127.0.0.1";
    probe = probe_create(&options, false);
    ck_assert_int_eq(mqtt_start(probe_mqtt(probe), &err), 0);

    int peer = accept(listener, NULL, NULL);
    ssize_t len = read(peer, hello, sizeof(hello));

    ck_assert_int_gt(len, 0);
    ck_assert_int_eq(memmem(hello, (size_t)len, "localhost", 9) != NULL, _i);
    ck_assert_ptr_null(memmem(hello, (size_t)len, "127.0.0.1", 9));
    close(peer);
    close(listener);
}

/* An attempt has this long, and ends by itself. */
#define ATTEMPT_MS 10000

static bool stops_in_the_attempt(uint32_t ms UNUSED)
{
    struct error err = { 0 };
    int listener = listen_instead();
    int64_t begin_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    probe = probe_create(&options, false);
    ck_assert_int_eq(mqtt_start(probe_mqtt(probe), &err), 0);

    int peer = accept(listener, NULL, NULL);
    char byte;

    ck_assert_int_eq(read(peer, &byte, 1), 1); /* of its CONNECT */

    mqtt_stop(probe_mqtt(probe));
    close(peer);
    close(listener);
    probe_destroy(TAKE(probe));
    return clock_monotonic_ms(&CLOCK_SYSTEM) - begin_ms < ATTEMPT_MS;
}

TEST_GROUP("plain", set_up, tear_down);

TEST(stop_does_not_wait_for_a_broker_that_says_nothing)
{
    /* real time: the limit of an attempt must not pass */
    ck_timed(stops_in_the_attempt, 1000);
}

TEST_TIMES(a_peer_that_talks_nonsense_ends_the_attempt_and_the_next_one_comes_later, 10)
{
    static const struct {
        const char *bytes;
        size_t len;
    } NONSENSE[] = {
        { "HTTP/1.1 400 Bad Request\r\n\r\n", 28 },
        { "\x20\x02\x00\x07", 4 },         /* CONNACK with a code that does not exist */
        { "\x20\x02\x00\x02", 4 },         /* client id rejected */
        { "\x20\x01\x00", 3 },             /* CONNACK that is too short */
        { "\x20\xff\xff\xff\xff\xff", 6 }, /* a length that does not end */
        { "\x30\x05\x00\x03"
          "abc",
          7 },                                      /* PUBLISH before CONNACK */
        { "\x20\x02\x00\x00\x32\x03\x00\x09x", 9 }, /* a topic longer than its packet */
        { "\x20\x02\x00\x00\x90\x02\x00\x01", 8 }, /* SUBACK that nobody asked for, without codes */
        { "\x20\x02\x00\x00\x40\x02\x00\x07\xf0\x00", 10 }, /* PUBACK of nothing; reserved type */
        { "", 0 },
    };
    struct error err = { 0 };
    int listener = listen_instead();
    char connect[512];

    options.backoff_ms = 200;
    probe = probe_create(&options, false);
    ck_assert_int_eq(mqtt_start(probe_mqtt(probe), &err), 0);

    int peer = accept(listener, NULL, NULL);
    int64_t before_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    ck_assert_int_gt(read(peer, connect, sizeof(connect)), 0);
    ck_assert_int_eq(write(peer, NONSENSE[_i].bytes, NONSENSE[_i].len), (ssize_t)NONSENSE[_i].len);
    shutdown(peer, SHUT_WR);
    probe_wait_why(probe, "127.0.0.1:");
    close(peer);
    peer = accept(listener, NULL, NULL);
    ck_assert_int_ge(clock_monotonic_ms(&CLOCK_SYSTEM) - before_ms, 90);
    close(peer);
    close(listener);
}
