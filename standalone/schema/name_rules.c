#include "standalone/schema/name_rules.h"

#include "common/base/str.h"

#define MAX_SUBDOMAIN 253
#define NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

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

void check_dns_subdomain(struct field_errors *errors, const char *path, const char *value)
{
    if (!str_is_dns_subdomain(value))
        invalid_text(errors, path, value, SUBDOMAIN_WORDS);
}

void check_dns_label(struct field_errors *errors, const char *path, const char *value)
{
    if (!str_is_dns_label(value))
        invalid_text(errors, path, value,
                     "must be no more than 63 characters of a-z, 0-9 and '-', with a letter or "
                     "digit at both ends");
}

void check_qualified_name(struct field_errors *errors, const char *path, const char *value)
{
    if (!str_is_label_key(value))
        invalid_text(errors, path, value,
                     NAME_WORDS ", perhaps behind '/' and a prefix, which " SUBDOMAIN_WORDS);
}

void check_label_value(struct field_errors *errors, const char *path, const char *value)
{
    if (!str_is_label_value(value))
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
