#include "common/net/mqtt.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "common/base/alloc.h"
#include "common/base/str.h"

#define PLAIN_PORT 1883
#define TLS_PORT 8883

#define MAX_HOST 253 /* of a DNS name */

static const struct {
    const char *name;
    bool tls;
} SCHEMES[] = {
    { "tcp", false }, { "mqtt", false }, { "ssl", true }, { "tls", true }, { "mqtts", true },
};

static const char *after_scheme(const char *address, bool *ret_tls)
{
    size_t len = strcspn(address, ":");

    if (strncmp(address + len, "://", 3) != 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(SCHEMES); i++) {
        if (strlen(SCHEMES[i].name) == len && strncasecmp(address, SCHEMES[i].name, len) == 0) {
            *ret_tls = SCHEMES[i].tls;
            return address + len + 3;
        }
    }
    return NULL;
}

static bool is_name_or_ipv4(const char *host)
{
    static const char ALLOWED[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    size_t len = strlen(host);

    return len >= 1 && len <= MAX_HOST && strspn(host, ALLOWED) == len && host[0] != '-' &&
           host[0] != '.';
}

static bool is_ipv6(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET6, host, &address) == 1;
}

/* Cuts "[host]" or "host" off; returns what follows it. */
static const char *cut_host(const char *authority, char **ret_host)
{
    bool brackets = authority[0] == '[';
    const char *start = brackets ? authority + 1 : authority;
    size_t len = strcspn(start, brackets ? "]" : ":/");

    if (brackets && start[len] != ']')
        return NULL;

    char *host = xstrndup(start, len);

    if (brackets ? !is_ipv6(host) : !is_name_or_ipv4(host)) {
        free(host);
        return NULL;
    }
    *ret_host = host;
    return start + len + (brackets ? 1 : 0);
}

/* What follows the host: nothing, ":port", and a slash that says nothing. */
static bool parse_port(const char *rest, uint16_t fallback, uint16_t *ret)
{
    size_t len = strcspn(rest, "/");
    char digits[8];

    if (rest[len] == '/' && rest[len + 1])
        return false;
    if (len == 0) {
        *ret = fallback;
        return true;
    }
    if (rest[0] != ':' || len > 6 || strspn(rest + 1, "0123456789") < len - 1)
        return false;
    memcpy(digits, rest + 1, len - 1);
    digits[len - 1] = '\0';

    int64_t port;

    if (!str_to_int64(digits, &port) || port < 1 || port > UINT16_MAX)
        return false;
    *ret = (uint16_t)port;
    return true;
}

int mqtt_address_parse(const char *address, char **ret_host, uint16_t *ret_port, bool *ret_tls,
                       struct error *err)
{
    bool tls = false;
    uint16_t port;
    char *host = NULL;

    if (strchr(address, '@')) /* not repeated: what is before it may be a password */
        return error_set(err, ERROR_INVALID, "MQTT address holds a user name or password");

    const char *authority = after_scheme(address, &tls);

    if (!authority)
        return error_set(err, ERROR_INVALID,
                         "MQTT address '%s' does not start with tcp://, mqtt://, ssl://, tls:// or "
                         "mqtts://",
                         address);

    const char *rest = cut_host(authority, &host);

    if (!rest)
        return error_set(err, ERROR_INVALID, "MQTT address '%s' has no usable host", address);
    if (!parse_port(rest, tls ? TLS_PORT : PLAIN_PORT, &port)) {
        free(host);
        return error_set(err, ERROR_INVALID, "MQTT address '%s' has no usable port", address);
    }
    *ret_host = host;
    *ret_port = port;
    *ret_tls = tls;
    return 0;
}
