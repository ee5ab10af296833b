#include "standalone/schema/name_rules.h"

#include "common/base/str.h"

#define MAX_SUBDOMAIN 253
#define MAX_LABEL 63
#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define NAME LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_."

#define SUBDOMAIN_WORDS                                                                            \
    "must be no more than 253 characters: parts of a-z, 0-9 and '-', joined by '.', each with a "  \
    "letter or digit at both ends"
#define NAME_WORDS                                                                                 \
    "must be no more than 63 characters of A-Z, a-z, 0-9, '-', '_' and '.', with a letter or "     \
    "digit at both ends"

void invalid_text(struct field_errors *errors, const char *path, const char *value,
                  const char *message)
{
    cJSON *shown = cJSON_CreateString(value);

    field_error(errors, FIELD_ERROR_INVALID, path, shown, "%s", message);
    json_free(shown);
}

/* Not empty, of the allowed characters, with a letter or a digit at both ends. */
static bool is_made_of(const char *text, size_t len, const char *allowed)
{
    return len && strspn(text, allowed) >= len && !strchr("-_.", text[0]) &&
           !strchr("-_.", text[len - 1]);
}

static bool is_subdomain(const char *text, size_t len)
{
    for (size_t at = 0, part; at <= len; at += part + 1) {
        part = strcspn(text + at, ".");
        part = part < len - at ? part : len - at;
        if (!is_made_of(text + at, part, LOWER "-"))
            return false;
    }
    return len <= MAX_SUBDOMAIN;
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);

    return len <= MAX_LABEL && is_made_of(text, len, NAME);
}

void check_dns_subdomain(struct field_errors *errors, const char *path, const char *value)
{
    if (!is_subdomain(value, strlen(value)))
        invalid_text(errors, path, value, SUBDOMAIN_WORDS);
}

void check_dns_label(struct field_errors *errors, const char *path, const char *value)
{
    size_t len = strlen(value);

    if (len > MAX_LABEL || !is_made_of(value, len, LOWER "-"))
        invalid_text(errors, path, value,
                     "must be no more than 63 characters of a-z, 0-9 and '-', with a letter or "
                     "digit at both ends");
}

void check_qualified_name(struct field_errors *errors, const char *path, const char *value)
{
    const char *slash = strchr(value, '/');

    if (slash && !is_subdomain(value, (size_t)(slash - value)))
        invalid_text(errors, path, value, "prefix part " SUBDOMAIN_WORDS);
    else if (!is_name(slash ? slash + 1 : value))
        invalid_text(errors, path, value, "name part " NAME_WORDS);
}

void check_label_value(struct field_errors *errors, const char *path, const char *value)
{
    if (*value && !is_name(value))
        invalid_text(errors, path, value, NAME_WORDS);
}

void check_config_key(struct field_errors *errors, const char *path, const char *value)
{
    size_t len = strlen(value);

    if (!len || len > MAX_SUBDOMAIN || strspn(value, NAME) != len || str_equal(value, ".") ||
        str_has_prefix(value, ".."))
        invalid_text(errors, path, value,
                     "must be no more than 253 characters of A-Z, a-z, 0-9, '-', '_' and '.', and "
                     "neither be '.' nor begin with '..'");
}
