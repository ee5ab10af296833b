/* The rules of Kubernetes for names, labels and keys. */
#pragma once

#include "common/schema/field_errors.h"

/* Each adds at most one error, of type Invalid, at path. */
void check_dns_subdomain(struct field_errors *errors, const char *path, const char *value);
void check_dns_label(struct field_errors *errors, const char *path, const char *value);
/* "name" or "prefix.example/name" */
void check_qualified_name(struct field_errors *errors, const char *path, const char *value);
void check_label_value(struct field_errors *errors, const char *path, const char *value);
/* path: with the key in brackets */
void check_config_key(struct field_errors *errors, const char *path, const char *value);

/* As field_error, of type Invalid, for a text. */
void invalid_text(struct field_errors *errors, const char *path, const char *value,
                  const char *message);
