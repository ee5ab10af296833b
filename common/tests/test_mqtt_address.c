#include <stdlib.h>
#include <string.h>

#include "common/net/mqtt.h"
#include "common/tests/suite.h"

static const struct {
    const char *address, *host;
    uint16_t port;
    bool tls;
} GOOD[] = {
    { "tcp://broker:1883", "broker", 1883, false },
    { "mqtt://broker", "broker", 1883, false },
    { "ssl://broker", "broker", 8883, true },
    { "tls://broker:1", "broker", 1, true },
    { "mqtts://mqtt.example.org:65535", "mqtt.example.org", 65535, true },
    { "MQTTS://Broker", "Broker", 8883, true },
    { "tcp://192.0.2.7:11883", "192.0.2.7", 11883, false },
    { "mqtts://[::1]", "::1", 8883, true },
    { "tcp://[2001:db8::7]:1884", "2001:db8::7", 1884, false },
    { "tcp://a_b-c.d:1883/", "a_b-c.d", 1883, false },
    { "tcp://broker/", "broker", 1883, false },
};

static const char *const BAD[] = {
    "",
    "broker",
    "broker:1883",
    "http://broker",
    "ws://broker",
    "tcps://broker",
    "tcp:broker",
    "tcp:/broker",
    "tcp://",
    "tcp://:1883",
    "tcp:///",
    "tcp://broker:",
    "tcp://broker:0",
    "tcp://broker:65536",
    "tcp://broker:99999999999999999999",
    "tcp://broker:18a3",
    "tcp://broker:+188",
    "tcp://broker: 188",
    "tcp://broker:1883/path",
    "tcp://broker//",
    "tcp://bro ker",
    "tcp://-broker",
    "tcp://.broker",
    "tcp://::1:1883",
    "tcp://[::1",
    "tcp://[::1]1883",
    "tcp://[]",
    "tcp://[broker]",
    "tcp://[127.0.0.1]",
    "tcp://[fe80::1%eth0]",
    "tcp://broker\n",
};

TEST_EACH(an_address_gives_host_port_and_whether_tls, GOOD)
{
    struct error err = { 0 };
    char *host = NULL;
    uint16_t port = 0;
    bool tls = !GOOD[_i].tls;

    ck_assert_msg(mqtt_address_parse(GOOD[_i].address, &host, &port, &tls, &err) == 0, "%s: %s",
                  GOOD[_i].address, err.message);
    ck_assert_str_eq(host, GOOD[_i].host);
    ck_assert_uint_eq(port, GOOD[_i].port);
    ck_assert_int_eq(tls, GOOD[_i].tls);
    free(host);
}

TEST_EACH(a_bad_address_is_refused_and_nothing_is_written, BAD)
{
    struct error err = { 0 };
    char *host = NULL;
    uint16_t port = 7;
    bool tls = true;

    ck_assert_msg(mqtt_address_parse(BAD[_i], &host, &port, &tls, &err) == -ERROR_INVALID, "'%s'",
                  BAD[_i]);
    ck_assert_ptr_null(host);
    ck_assert_uint_eq(port, 7);
    ck_assert(tls);
    ck_assert_ptr_nonnull(strstr(err.message, BAD[_i]));
}

TEST(a_name_longer_than_dns_allows_is_refused)
{
    struct error err = { 0 };
    char address[300] = "tcp://";
    char *host;
    uint16_t port;
    bool tls;

    memset(address + 6, 'a', 253);
    ck_assert_int_eq(mqtt_address_parse(address, &host, &port, &tls, &err), 0);
    free(host);
    address[6 + 253] = 'a';
    ck_assert_int_eq(mqtt_address_parse(address, &host, &port, &tls, &err), -ERROR_INVALID);
}

TEST(an_address_with_a_password_is_refused_without_repeating_it)
{
    struct error err = { 0 };
    char *host;
    uint16_t port;
    bool tls;

    ck_assert_int_eq(mqtt_address_parse("tcp://me:secret@broker", &host, &port, &tls, &err),
                     -ERROR_INVALID);
    ck_assert_ptr_null(strstr(err.message, "secret"));
}
