/* Errors of the fields of an object, in the form of the API server. */
#pragma once

#include "common/json/json.h"

/* As in k8s.io/apimachinery/pkg/util/validation/field. */
enum field_error_type {
    FIELD_ERROR_REQUIRED,
    FIELD_ERROR_INVALID,
    FIELD_ERROR_TYPE,
    FIELD_ERROR_NOT_SUPPORTED,
    FIELD_ERROR_DUPLICATE,
    FIELD_ERROR_FORBIDDEN,
    FIELD_ERROR_TOO_LONG,
    FIELD_ERROR_TOO_MANY,
};

/* Of one object; further ones are counted, not kept. */
#define FIELD_ERRORS_MAX 64
#define FIELD_WARNINGS_MAX 32
/* Bytes of a string that an error repeats; the API server cuts warnings at 256 characters. */
#define FIELD_VALUE_MAX 256
#define FIELD_WARNING_MAX 256

struct field_errors;
struct field_errors *field_errors_create(struct arena *arena);

/*
 * value: the present one, a string, number or boolean that may be repeated; NULL for secrets and
 * for one that is long or has members. Required, Forbidden, Type and Too long never show it.
 */
void field_error(struct field_errors *errors, enum field_error_type type, const char *path,
                 const cJSON *value, const char *format, ...) PRINTF_LIKE(5, 6);
/* The same where the type says it all: "spec.name: Required value". */
void field_error_plain(struct field_errors *errors, enum field_error_type type, const char *path,
                       const cJSON *value);
/* It runs, and is probably not what was meant. The first of equal texts is kept. */
void field_warning(struct field_errors *errors, const char *path, const char *format, ...)
    PRINTF_LIKE(3, 4);

size_t field_errors_count(const struct field_errors *errors); /* with those not kept */
/* Strings, in the order they came; NULL: none. */
const cJSON *field_errors_warnings(const struct field_errors *errors);

/* A cause of the Status for each error that was kept: {"reason", "message", "field"}. */
const cJSON *field_errors_causes(const struct field_errors *errors);

/*
 * The Status of apierrors.NewInvalid: code 422, reason Invalid, the causes, and the message
 * `Task.group "x" is invalid: spec.a: Required value`, several in brackets. group and name may be
 * "". In the arena.
 */
cJSON *field_errors_status(const struct field_errors *errors, const char *group, const char *kind,
                           const char *name);

/* Appends text as Go's %q prints it: in double quotes, nothing in it that a terminal would act on.
 */
struct buf;
bool buf_append_quoted(struct buf *buf, const char *text, size_t len) MUST_CHECK;
