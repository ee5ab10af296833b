/* policy_module_problem: an address that a policy allows is, as libcurl reads it, of an allowed host and path. */
#include <curl/curl.h>
#include <strings.h>

#include "common/api/policy.h"
#include "common/tests/fuzz/target.h"

static char *part_of(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    REQUIRE(curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK);
    return text;
}

static bool is_below(const char *path, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(path, prefix, len) == 0 && (!path[len] || path[len] == '/');
}

/* The flag has HOST/PREFIX and [IPV6]:PORT. */
static void check(CURLU *url)
{
    char *user = NULL;
    char *scheme = part_of(url, CURLUPART_SCHEME);
    char *host = part_of(url, CURLUPART_HOST);
    char *port = part_of(url, CURLUPART_PORT);
    char *path = part_of(url, CURLUPART_PATH);
    bool is_first = strcasecmp(host, "a.example") == 0 && is_below(path, "/team/x") &&
                    strcmp(port, strcasecmp(scheme, "http") == 0 ? "80" : "443") == 0;
    bool is_second = strcmp(host, "[::1]") == 0 && strcmp(port, "5000") == 0;

    REQUIRE(curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_NO_USER);
    REQUIRE(is_first || is_second);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    const char *hosts[] = { "a.example/team/x", "[::1]:5000" };
    const char *schemes[] = { "https", "http" };
    const struct admission_policy policy = { .image_hosts = { hosts, 2 },
                                             .image_schemes = { schemes, 2 } };
    struct arena *arena = arena_create();
    char *text = arena_strndup(arena, (const char *)bytes, len);

    if (*text && !policy_module_problem(arena, &policy, text)) {
        CURLU *url = curl_url();

        REQUIRE(url);
        if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK)
            check(url);
        curl_url_cleanup(url);
    }
    arena_destroy(arena);
}
