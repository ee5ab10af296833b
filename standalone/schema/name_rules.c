#include "standalone/schema/name_rules.h"

#include "common/base/str.h"
#include "common/kube/object.h"

#define LABEL_FORMAT "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define QUALIFIED_FORMAT "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

#define SUBDOMAIN_WORDS                                                                            \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '" LABEL_FORMAT "(\\." LABEL_FORMAT ")*')"
#define LABEL_WORDS                                                                                \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '" LABEL_FORMAT "')"
#define QUALIFIED_WORDS                                                                            \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '" QUALIFIED_FORMAT "')"
#define LABEL_VALUE_WORDS                                                                          \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', " \
    " or '12345', regex used for validation is '(" QUALIFIED_FORMAT ")?')"
#define CONFIG_KEY_WORDS                                                                           \
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "           \
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

#define MAX_SUBDOMAIN 253
#define MAX_LABEL 63

static const char ALPHANUMERIC[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
static const char NAME_CHARACTERS[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

void invalid_text(struct field_errors *errors, const char *path, const char *value,
                  const char *message)
{
    cJSON *shown = cJSON_CreateString(value);

    field_error(errors, FIELD_ERROR_INVALID, path, shown, "%s", message);
    json_free(shown);
}

static void too_long(struct field_errors *errors, const char *path, const char *shown,
                     const char *prefix, int max)
{
    cJSON *value = cJSON_CreateString(shown);

    field_error(errors, FIELD_ERROR_INVALID, path, value, "%smust be no more than %d characters",
                prefix, max);
    json_free(value);
}

/* A name may be longer than this project's own check of it allows: only its form counts. */
static bool is_subdomain(const char *value)
{
    for (const char *part = value;; part++) {
        size_t len = strspn(part, "abcdefghijklmnopqrstuvwxyz0123456789-");

        if (!len || part[0] == '-' || part[len - 1] == '-' || (part[len] && part[len] != '.'))
            return false;
        part += len;
        if (!*part)
            return true;
    }
}

static bool is_name(const char *value)
{
    size_t len = strlen(value);

    return len && strspn(value, NAME_CHARACTERS) == len && strchr(ALPHANUMERIC, value[0]) &&
           strchr(ALPHANUMERIC, value[len - 1]);
}

static void check_subdomain(struct field_errors *errors, const char *path, const char *value,
                            const char *shown, const char *prefix)
{
    if (strlen(value) > MAX_SUBDOMAIN)
        too_long(errors, path, shown, prefix, MAX_SUBDOMAIN);
    if (!is_subdomain(value)) {
        cJSON *json = cJSON_CreateString(shown);

        field_error(errors, FIELD_ERROR_INVALID, path, json, "%s%s", prefix, SUBDOMAIN_WORDS);
        json_free(json);
    }
}

void check_dns_subdomain(struct field_errors *errors, const char *path, const char *value)
{
    check_subdomain(errors, path, value, value, "");
}

void check_dns_label(struct field_errors *errors, const char *path, const char *value)
{
    if (strlen(value) > MAX_LABEL)
        too_long(errors, path, value, "", MAX_LABEL);
    if (!is_subdomain(value))
        invalid_text(errors, path, value, LABEL_WORDS);
    else if (strchr(value, '.'))
        invalid_text(errors, path, value, "must not contain dots");
}

void check_qualified_name(struct field_errors *errors, const char *path, const char *value,
                          const char *shown)
{
    const char *slash = strchr(value, '/'), *name = slash ? slash + 1 : value;
    char prefix[512];

    if (slash && strchr(name, '/')) {
        invalid_text(errors, path, shown,
                     "a qualified name " QUALIFIED_WORDS
                     " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
        return;
    }
    if (slash == value) {
        invalid_text(errors, path, shown, "prefix part must be non-empty");
    } else if (slash) {
        size_t len = (size_t)(slash - value);

        len = len < sizeof(prefix) - 1 ? len : sizeof(prefix) - 1;
        memcpy(prefix, value, len);
        prefix[len] = '\0';
        check_subdomain(errors, path, prefix, shown, "prefix part ");
    }
    if (!*name)
        invalid_text(errors, path, shown, "name part must be non-empty");
    else if (strlen(name) > MAX_LABEL)
        too_long(errors, path, shown, "name part ", MAX_LABEL);
    if (!is_name(name))
        invalid_text(errors, path, shown, "name part " QUALIFIED_WORDS);
}

void check_label_value(struct field_errors *errors, const char *path, const char *value)
{
    if (strlen(value) > MAX_LABEL)
        too_long(errors, path, value, "", MAX_LABEL);
    if (*value && !is_name(value))
        invalid_text(errors, path, value, LABEL_VALUE_WORDS);
}

void check_config_key(struct field_errors *errors, const char *path, const char *value)
{
    if (strlen(value) > MAX_SUBDOMAIN)
        too_long(errors, path, value, "", MAX_SUBDOMAIN);
    if (!*value || strspn(value, NAME_CHARACTERS) != strlen(value))
        invalid_text(errors, path, value, CONFIG_KEY_WORDS);
    if (str_equal(value, "."))
        invalid_text(errors, path, value, "must not be '.'");
    else if (str_equal(value, ".."))
        invalid_text(errors, path, value, "must not be '..'");
    else if (str_has_prefix(value, ".."))
        invalid_text(errors, path, value, "must not start with '..'");
}
