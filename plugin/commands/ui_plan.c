#include "plugin/commands/ui_plan.h"

#include <ctype.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/base/version.h"

#define FLAG "--page-bind-address"
#define VARIABLE PRODUCT_ENVIRONMENT "PAGE_BIND_ADDRESS"
#define CONTAINER "controller"

static const cJSON *controller_of(const cJSON *pod)
{
    const cJSON *containers = json_path(pod, "spec", "containers", NULL);

    json_for_each (container, containers) {
        if (str_equal(json_string(json_get(container, "name"), NULL), CONTAINER))
            return container;
    }
    return json_first(containers);
}

const char *ui_settings_name(const cJSON *pod, size_t i)
{
    json_for_each (source, json_get(controller_of(pod), "envFrom")) {
        const char *name = json_string(json_path(source, "configMapRef", "name", NULL), NULL);

        if (name && i-- == 0)
            return name;
    }
    return NULL;
}

/* The value of the flag among the words; the last one counts. NULL: it is not there. */
static const char *flag_in(const cJSON *words)
{
    const char *found = NULL;
    bool is_next = false;

    json_for_each (word, words) {
        const char *text = json_string(word, "");

        if (is_next)
            found = text;
        is_next = str_equal(text, FLAG);
        if (str_has_prefix(text, FLAG "="))
            found = text + strlen(FLAG "=");
    }
    return found;
}

const char *ui_page_address(const cJSON *pod, const cJSON *const *settings, size_t len)
{
    const cJSON *container = controller_of(pod);
    const char *found = NULL, *in_command = flag_in(json_get(container, "command"));
    const char *in_args = flag_in(json_get(container, "args"));

    for (size_t i = 0; i < len; i++) {
        const char *value = json_string(json_path(settings[i], "data", VARIABLE, NULL), NULL);

        found = value ? value : found;
    }
    json_for_each (variable, json_get(container, "env")) {
        if (str_equal(json_string(json_get(variable, "name"), NULL), VARIABLE))
            found = json_string(json_get(variable, "value"), found);
    }
    found = in_command ? in_command : found;
    return in_args ? in_args : found;
}

/* A port in decimal, up to the first character that is no digit; 0: there is none. */
static unsigned read_port(const char *text)
{
    unsigned port = 0;

    for (; isdigit((unsigned char)*text) && port <= UINT16_MAX; text++)
        port = port * 10 + (unsigned)(*text - '0');
    return port <= UINT16_MAX ? port : 0;
}

unsigned ui_page_port(const char *address)
{
    const char *colon = strrchr(address, ':');

    return colon ? read_port(colon + 1) : 0;
}

const char *const *ui_forward_arguments(struct arena *arena, const struct common_flags *flags,
                                        const struct ui_forward *forward)
{
    const struct {
        const char *flag, *value;
    } GIVEN[] = {
        { "kubeconfig", flags->kubeconfig },
        { "context", flags->context },
        { "cluster", flags->cluster },
        { "user", flags->user },
        { "server", flags->server },
        { "token", flags->token },
        { "as", flags->as },
        { "as-uid", flags->as_uid },
        { "insecure-skip-tls-verify", flags->insecure ? "true" : NULL },
        { "namespace", forward->ns },
        { "address", "127.0.0.1" },
    };
    const char **list =
        arena_array(arena, const char *, ARRAY_LEN(GIVEN) + flags->as_groups.len + 5);
    size_t len = 0;

    list[len++] = "kubectl";
    list[len++] = "port-forward";
    for (size_t i = 0; i < ARRAY_LEN(GIVEN); i++) {
        if (GIVEN[i].value)
            list[len++] = arena_printf(arena, "--%s=%s", GIVEN[i].flag, GIVEN[i].value);
    }
    for (size_t i = 0; i < flags->as_groups.len; i++)
        list[len++] = arena_printf(arena, "--as-group=%s", flags->as_groups.items[i]);
    list[len++] = arena_printf(arena, "pod/%s", forward->pod);
    list[len++] = forward->local_port
                      ? arena_printf(arena, "%u:%u", forward->local_port, forward->page_port)
                      : arena_printf(arena, ":%u", forward->page_port);
    list[len] = NULL;
    return list;
}

unsigned ui_forwarded_port(const char *line)
{
    static const char BEGIN[] = "Forwarding from 127.0.0.1:";

    return str_has_prefix(line, BEGIN) ? read_port(line + strlen(BEGIN)) : 0;
}

/* The host and port of a URL: "127.0.0.1:8082". */
static const char *authority_of(const char *url, size_t *ret_len)
{
    const char *scheme = strstr(url, "://");
    const char *begin = scheme ? scheme + 3 : url;

    *ret_len = strcspn(begin, "/?#");
    return begin;
}

/* The host alone, with the brackets of an IPv6 address. */
static const char *host_of(const char *url, size_t *ret_len)
{
    size_t len;
    const char *begin = authority_of(url, &len);
    const char *end = memchr(begin, *begin == '[' ? ']' : ':', len);

    *ret_len = end ? (size_t)(end - begin) + (*begin == '[') : len;
    return begin;
}

bool ui_url_is_usable(const char *url)
{
    size_t len;

    if (strlen(url) > UI_MAX_URL ||
        (!str_has_prefix(url, "http://") && !str_has_prefix(url, "https://")))
        return false;
    for (const char *c = url; *c; c++) {
        if (!isgraph((unsigned char)*c) || strchr("@?#\\\"<>", *c))
            return false;
    }
    (void)host_of(url, &len);
    return len > 0;
}

bool ui_url_is_loopback(const char *url)
{
    static const char *const NAMES[] = { "127.0.0.1", "localhost", "[::1]" };
    size_t len;
    const char *host = host_of(url, &len);

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (strlen(NAMES[i]) == len && strncmp(host, NAMES[i], len) == 0)
            return true;
    }
    return false;
}

const char *ui_standalone_url(struct arena *arena, const char *server)
{
    size_t len;
    const char *host = host_of(server, &len);

    return arena_printf(arena, "http://%.*s:%d", (int)len, host, UI_PAGE_PORT);
}

const char *ui_login_url(struct arena *arena, const char *url, const char *token)
{
    const char *begin =
        arena_printf(arena, "%s%s#token=", url, str_has_suffix(url, "/") ? "" : "/");
    size_t len = strlen(begin);
    char *text = arena_array(arena, char, len + 3 * strlen(token) + 1);

    memcpy(text, begin, len);
    for (const unsigned char *c = (const unsigned char *)token; *c; c++) {
        if (isalnum(*c) || strchr("-._~", *c))
            text[len++] = (char)*c;
        else
            len += (size_t)snprintf(text + len, 4, "%%%02X", *c);
    }
    text[len] = '\0';
    return text;
}
