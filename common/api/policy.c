#include "common/api/policy.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define MAX_SCHEME 32
#define DIGEST_LEN 64
#define MAX_SHOWN 8 /* entries of a list in a message */
#define OCI "oci"

static const char *const IMAGE_SCHEMES[] = { "inline", OCI, "https", "http", NULL };
static const char *const MODEL_SCHEMES[] = { "model", "configmap", "s3", "https", NULL };

/* --- the flags -------------------------------------------------------------------------------- */

/* A part of a text. */
struct span {
    const char *start;
    size_t len;
};

/* "HOST", "HOST:PORT" or "[IPV6]:PORT". */
struct authority {
    struct span host; /* with the brackets of an IPv6 address */
    long port;        /* 0: the scheme's own */
};

static bool read_port(struct span text, long *ret)
{
    *ret = 0;
    if (!text.len || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!isdigit((unsigned char)text.start[i]))
            return false;
        *ret = *ret * 10 + (text.start[i] - '0');
    }
    return *ret > 0 && *ret <= 65535;
}

/* False: it has no host, or characters behind it that are no port. */
static bool read_authority(struct span text, struct authority *ret)
{
    const char *end = text.start + text.len;
    const char *host_end = text.start;

    if (text.len && *text.start == '[') {
        host_end = memchr(text.start, ']', text.len);
        if (!host_end)
            return false;
        host_end++;
    }
    while (host_end < end && *host_end != ':')
        host_end++;
    ret->host = (struct span){ text.start, (size_t)(host_end - text.start) };
    ret->port = 0;
    if (!ret->host.len || host_end == end)
        return ret->host.len > 0;
    return read_port((struct span){ host_end + 1, (size_t)(end - host_end - 1) }, &ret->port);
}

/* Whether a segment between slashes is "." or "..", with or without parameters behind a semicolon. */
static bool has_dot_segment(struct span path)
{
    const char *end = path.start + path.len;

    for (const char *segment = path.start; segment <= end;) {
        const char *slash = segment < end ? memchr(segment, '/', (size_t)(end - segment)) : NULL;
        size_t len = (size_t)((slash ? slash : end) - segment);
        const char *parameters = memchr(segment, ';', len);

        if (parameters)
            len = (size_t)(parameters - segment);
        if ((len == 1 && segment[0] == '.') || (len == 2 && memcmp(segment, "..", 2) == 0))
            return true;
        if (!slash)
            return false;
        segment = slash + 1;
    }
    return false;
}

/* Only what a URL holds without quoting; a backslash is a slash to some clients. */
static bool is_printable(const char *text)
{
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~' || *text == '\\')
            return false;
    }
    return true;
}

/* An entry of image_hosts. The prefix has no slash at its end. */
static bool read_entry(const char *entry, struct authority *ret, struct span *ret_prefix)
{
    size_t authority_len = strcspn(entry, "/");
    size_t len = strlen(entry);

    while (len > authority_len && entry[len - 1] == '/')
        len--;
    *ret_prefix = (struct span){ entry + authority_len, len - authority_len };
    return is_printable(entry) && !strpbrk(entry, "@?#%*") && !strstr(entry, "//") &&
           !has_dot_segment(*ret_prefix) &&
           read_authority((struct span){ entry, authority_len }, ret);
}

static int check_schemes(const char *flag, const struct str_list *schemes,
                         const char *const known[], const char *all, struct error *err)
{
    for (size_t i = 0; i < schemes->len; i++) {
        size_t k = 0;

        while (known[k] && !str_equal(known[k], schemes->items[i]))
            k++;
        if (!known[k])
            return error_set(err, ERROR_INVALID, "--%s: '%.100s' is not one of %s", flag,
                             schemes->items[i], all);
    }
    return 0;
}

int admission_policy_check(const struct admission_policy *policy, struct error *err)
{
    int r = check_schemes("allow-image-schemes", &policy->image_schemes, IMAGE_SCHEMES,
                          "inline, oci, https, http", err);

    if (r == 0)
        r = check_schemes("allow-model-schemes", &policy->model_schemes, MODEL_SCHEMES,
                          "model, configmap, s3, https", err);
    for (size_t i = 0; r == 0 && i < policy->device_types.len; i++) {
        const char *type = policy->device_types.items[i];

        if (*type == ' ' || str_has_suffix(type, " "))
            r = error_set(err, ERROR_INVALID,
                          "--allow-device-types: '%.100s' must not begin or end with a blank",
                          type);
    }
    for (size_t i = 0; r == 0 && i < policy->image_hosts.len; i++) {
        struct authority authority;
        struct span prefix;

        if (!read_entry(policy->image_hosts.items[i], &authority, &prefix))
            r = error_set(err, ERROR_INVALID,
                          "--allow-image-hosts: '%.100s' is not HOST[:PORT][/PREFIX]",
                          policy->image_hosts.items[i]);
    }
    return r;
}

/* --- references ------------------------------------------------------------------------------- */

struct reference {
    char scheme[MAX_SCHEME + 1]; /* lower case */
    const char *rest;            /* behind "://" */
    bool is_oci;
};

/* RFC 3986, 3.1. A text without one is an OCI reference. */
static void read_scheme(const char *text, const char *without, struct reference *ret)
{
    size_t len = 0;

    while (isalnum((unsigned char)text[len]) || (text[len] && strchr("+-.", text[len])))
        len++;
    ret->rest = text;
    (void)str_copy(ret->scheme, sizeof(ret->scheme), without);
    if (isalpha((unsigned char)text[0]) && strncmp(text + len, "://", 3) == 0) {
        size_t kept = len < MAX_SCHEME ? len : MAX_SCHEME;

        for (size_t i = 0; i < kept; i++)
            ret->scheme[i] = (char)tolower((unsigned char)text[i]);
        ret->scheme[kept] = '\0';
        ret->rest = text + len + 3;
    }
    ret->is_oci = str_equal(ret->scheme, OCI);
}

static const char *list_of(struct arena *arena, const struct str_list *list)
{
    const char *ret = "";

    for (size_t i = 0; i < list->len && i < MAX_SHOWN; i++)
        ret = arena_printf(arena, "%s%s%.100s", ret, i ? ", " : "", list->items[i]);
    return list->len > MAX_SHOWN ? arena_printf(arena, "%s and others", ret) : ret;
}

static bool list_has(const struct str_list *list, const char *value)
{
    for (size_t i = 0; i < list->len; i++) {
        if (str_equal(list->items[i], value))
            return true;
    }
    return false;
}

/* NULL: the list has it, or is empty. */
static const char *list_problem(struct arena *arena, const struct str_list *list, const char *value)
{
    if (!list->len || list_has(list, value))
        return NULL;
    return arena_printf(arena, "must not be %s: allowed are %s", value, list_of(arena, list));
}

static bool has_digest(const char *reference)
{
    static const char MARK[] = "@sha256:";
    const char *mark = strstr(reference, MARK);
    const char *digits = mark ? mark + strlen(MARK) : "";

    return strlen(digits) == DIGEST_LEN && strspn(digits, "0123456789abcdef") == DIGEST_LEN;
}

/* --- hosts ------------------------------------------------------------------------------------ */

/* The path of a reference, from its slash to before a tag, a digest, a query or a fragment. */
static struct span path_of(const char *path, bool is_oci)
{
    size_t len = strcspn(path, is_oci ? "@" : "?#");
    const char *last = path;

    if (!is_oci)
        return (struct span){ path, len };
    for (size_t i = 0; i < len; i++) {
        if (path[i] == '/')
            last = path + i;
    }
    const char *tag = memchr(last, ':', len - (size_t)(last - path));
    return (struct span){ path, tag ? (size_t)(tag - path) : len };
}

static bool spans_match(struct span a, struct span b, bool any_case)
{
    return a.len == b.len && (any_case ? strncasecmp(a.start, b.start, a.len) == 0
                                       : strncmp(a.start, b.start, a.len) == 0);
}

/* An absent port is the scheme's own, on both sides. */
static long port_of(const struct authority *authority, const char *scheme)
{
    if (authority->port)
        return authority->port;
    return str_equal(scheme, "http") ? 80 : 443;
}

static bool entry_allows(const char *entry, const char *scheme, const struct authority *authority,
                         struct span path)
{
    struct authority allowed;
    struct span prefix;

    if (!read_entry(entry, &allowed, &prefix) ||
        !spans_match(allowed.host, authority->host, true) ||
        port_of(&allowed, scheme) != port_of(authority, scheme))
        return false;
    return path.len >= prefix.len && memcmp(path.start, prefix.start, prefix.len) == 0 &&
           (path.len == prefix.len || !prefix.len || path.start[prefix.len] == '/');
}

/* A registry's host has a dot or a port, or is "localhost"; other references leave the host to the
 * container runtime. */
static bool names_host(const struct reference *reference, struct span authority)
{
    static const struct span LOCAL = { "localhost", 9 };

    if (!reference->is_oci)
        return true;
    return reference->rest[authority.len] == '/' &&
           (memchr(authority.start, '.', authority.len) ||
            memchr(authority.start, ':', authority.len) || spans_match(authority, LOCAL, true));
}

/* A quoted dot, slash or backslash, which servers may read as the character itself. */
static bool hides_path(struct span path)
{
    for (size_t i = 0; i + 2 < path.len; i++) {
        if (path.start[i] == '%' && (strncasecmp(path.start + i + 1, "2e", 2) == 0 ||
                                     strncasecmp(path.start + i + 1, "2f", 2) == 0 ||
                                     strncasecmp(path.start + i + 1, "5c", 2) == 0))
            return true;
    }
    return false;
}

static const char *host_problem(struct arena *arena, const struct str_list *hosts,
                                const struct reference *reference)
{
    const struct span text = { reference->rest, strcspn(reference->rest, "/?#") };
    const struct span path = path_of(reference->rest + text.len, reference->is_oci);
    struct authority authority = { 0 };

    if (!hosts->len)
        return NULL;
    if (memchr(text.start, '@', text.len))
        return "must not have a user name or a password in its address";
    if (!names_host(reference, text))
        return arena_printf(arena, "must begin with a host: allowed are %s", list_of(arena, hosts));
    if (has_dot_segment(path) || hides_path(path))
        return "must not have the path segments . and .., or quoted dots and slashes";
    if (!read_authority(text, &authority))
        return "must have a host, and a port of digits only if there is one";
    for (size_t i = 0; i < hosts->len; i++) {
        if (entry_allows(hosts->items[i], reference->scheme, &authority, path))
            return NULL;
    }
    return arena_printf(arena, "must not be of this host or path: allowed are %s",
                        list_of(arena, hosts));
}

/* --- what users name -------------------------------------------------------------------------- */

const char *policy_inline_problem(struct arena *arena, const struct admission_policy *policy)
{
    return list_problem(arena, &policy->image_schemes, "inline");
}

/* HOST/PATH:TAG@DIGEST, or a part of it, so that no program reads it as something else. */
static bool is_oci_reference(const char *text)
{
    static const char CHARACTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789._-/:@+[]";
    const char *at = strchr(text, '@');
    const struct span name = { text, at ? (size_t)(at - text) : strlen(text) };
    const struct span first = { text, strcspn(text, "/@") };
    struct authority authority;

    return name.len && *text != '/' && text[strspn(text, CHARACTERS)] == '\0' &&
           (!at || !strpbrk(at + 1, "@/")) && !strstr(text, "//") && !has_dot_segment(name) &&
           (text[first.len] != '/' || read_authority(first, &authority));
}

/* The flags restrict images, so that nothing may be there which another program reads otherwise. */
static const char *form_problem(const struct reference *reference)
{
    if (!is_printable(reference->rest))
        return "must be of printable ASCII characters, without spaces and backslashes";
    if (reference->is_oci)
        return is_oci_reference(reference->rest) ? NULL : "must be HOST/PATH:TAG@DIGEST";
    if (!str_equal(reference->scheme, "https") && !str_equal(reference->scheme, "http"))
        return "must be an OCI reference, or an address of https or http";
    return NULL;
}

static const char *reference_problem(struct arena *arena, const struct admission_policy *policy,
                                     const struct reference *reference)
{
    const char *problem = NULL;

    if (policy->image_schemes.len || policy->image_hosts.len || policy->require_image_digests)
        problem = form_problem(reference);
    if (problem)
        return problem;
    problem = host_problem(arena, &policy->image_hosts, reference);
    if (!problem && policy->require_image_digests && reference->is_oci &&
        !has_digest(reference->rest))
        problem = "must end in @sha256: and 64 hexadecimal digits in lower case";
    return problem;
}

const char *policy_module_problem(struct arena *arena, const struct admission_policy *policy,
                                  const char *text)
{
    struct reference reference;
    const char *problem;

    if (str_is_empty(text))
        return NULL;
    read_scheme(text, OCI, &reference);
    problem = list_problem(arena, &policy->image_schemes, reference.scheme);
    return problem ? problem : reference_problem(arena, policy, &reference);
}

const char *policy_image_problem(struct arena *arena, const struct admission_policy *policy,
                                 const char *text)
{
    const struct reference reference = { .scheme = OCI, .rest = text, .is_oci = true };

    return str_is_empty(text) ? NULL : reference_problem(arena, policy, &reference);
}

const char *policy_model_problem(struct arena *arena, const struct admission_policy *policy,
                                 const char *text)
{
    struct reference reference;

    if (str_is_empty(text))
        return NULL;
    read_scheme(text, "without a scheme", &reference);
    return list_problem(arena, &policy->model_schemes, reference.scheme);
}

const char *policy_device_problem(struct arena *arena, const struct admission_policy *policy,
                                  const char *type)
{
    if (!policy->device_types.len || (!str_is_empty(type) && list_has(&policy->device_types, type)))
        return NULL;
    return arena_printf(arena, "must be one of %s", list_of(arena, &policy->device_types));
}

bool policy_is_by_tag(const char *text)
{
    struct reference reference;

    read_scheme(text, OCI, &reference);
    return reference.is_oci && !has_digest(reference.rest);
}
