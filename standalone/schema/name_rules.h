/* k8s.io/apimachinery/pkg/util/validation: what is wrong with names, in its words. */
#pragma once

#include "common/schema/field_errors.h"

/* Each adds an error of type Invalid at path for every rule that value breaks. */
void check_dns_subdomain(struct field_errors *errors, const char *path, const char *value);
void check_dns_label(struct field_errors *errors, const char *path, const char *value);
/* "name" or "prefix.example/name"; shown: what the error repeats. */
void check_qualified_name(struct field_errors *errors, const char *path, const char *value,
                          const char *shown);
void check_label_value(struct field_errors *errors, const char *path, const char *value);
/* path: with the key in brackets */
void check_config_key(struct field_errors *errors, const char *path, const char *value);

/* As field_error, of type Invalid, for a text. */
void invalid_text(struct field_errors *errors, const char *path, const char *value,
                  const char *message);
