#include "controller/page/guard.h"

#include <string.h>
#include <strings.h>

#include "common/base/str.h"

static bool is_name(const char *host, size_t len, const char *name)
{
    return strlen(name) == len && strncasecmp(host, name, len) == 0;
}

bool page_host_is_known(const char *host, const char *const *names, size_t len)
{
    static const char *const OWN[] = { "localhost", "127.0.0.1", "[::1]" };

    if (!host)
        return false;

    const char *bracket = *host == '[' ? strchr(host, ']') : NULL;
    size_t host_len = bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":");

    if (host[host_len] && host[host_len] != ':')
        return false; /* "[::1]evil" */
    for (size_t i = 0; i < ARRAY_LEN(OWN); i++) {
        if (is_name(host, host_len, OWN[i]))
            return true;
    }
    for (size_t i = 0; i < len; i++) {
        if (is_name(host, host_len, names[i]))
            return true;
    }
    return false;
}

bool page_site_is_own(const char *site)
{
    return !site || str_equal(site, "same-origin") || str_equal(site, "none");
}

void page_set_headers(struct http_server_reply *reply, struct http_header extra)
{
    static const struct http_header HEADERS[] = {
        { "Content-Security-Policy",
          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
          "'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'" },
        { "X-Content-Type-Options", "nosniff" },
        { "Referrer-Policy", "no-referrer" },
        { "Cache-Control", "no-store" },
    };

    memcpy(reply->headers, HEADERS, sizeof(HEADERS));
    reply->headers[ARRAY_LEN(HEADERS)] = extra;
}
