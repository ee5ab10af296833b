#include <ctype.h>
#include <string.h>

#include "common/api/validate_internal.h"
#include "common/api/vmafx.h"

/* The scheme ends before the colon: a letter, then letters, digits, "+", "-" and ".". */
static size_t scheme_len(const char *text)
{
    size_t len = 0;

    while (isalnum((unsigned char)text[len]) || (len && text[len] && strchr("+-.", text[len])))
        len++;
    return isalpha((unsigned char)text[0]) ? len : 0;
}

static bool is_uri(const char *text)
{
    size_t len = scheme_len(text);
    const char *rest = text + len;

    if (!len || strncmp(rest, "://", 3) != 0 || !rest[3])
        return false;
    for (rest += 3; *rest; rest++) {
        if (isspace((unsigned char)*rest) || iscntrl((unsigned char)*rest))
            return false;
        if (*rest == '%' &&
            (!isxdigit((unsigned char)rest[1]) || !isxdigit((unsigned char)rest[2])))
            return false;
    }
    return true;
}

void vmafxjob_validate(const struct validation *validation)
{
    static const char *const FIELDS[] = { "reference", "distorted" };
    const struct spec_view view = spec_view_of(validation);

    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        if (!is_uri(json_string(spec_json(&view, FIELDS[i]), "")))
            field_error(validation->errors, FIELD_ERROR_INVALID, spec_path(&view, FIELDS[i]),
                        spec_json(&view, FIELDS[i]), "must be a URI such as s3://bucket/video.yuv");
    }
}
