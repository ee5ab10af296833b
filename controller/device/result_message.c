#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/json/slice.h"
#include "controller/device/messages.h"

/* A repair costs three times the bytes of the message; a microcontroller sends 1 KiB. */
#define MAX_REPAIRED ((size_t)1 << 20)
/* Of a device's error the status keeps 4 KiB; a longer one than this is not decoded for them. */
#define MAX_ERROR ((size_t)1 << 20)
#define KEPT_ERROR ((size_t)16 << 10)
/* A status, and reviews and events of it, put up to six levels around a result. */
#define MAX_LEVELS (JSON_MAX_DEPTH - 10)

enum member { TASK_ID, PROPLET_ID, RESULTS, ERROR_TEXT, MEMBERS };
static const char *const MEMBER_NAMES[MEMBERS] = { "task_id", "proplet_id", "results", "error" };

struct parts {
    struct json_slice members[MEMBERS]; /* len 0: absent */
    const char *beyond; /* what of the message is JSON but not taken; NULL: nothing */
};

/* The length of the sequence at the beginning of text that is replaced; 0: nothing is replaced. */
static size_t replaced(const char *text, size_t len, const char **ret)
{
    static const char NUL_ESCAPE[] = "\\u0000";

    *ret = "\xef\xbf\xbd";
    if (!str_utf8_char(text, len))
        return 1;
    if (len >= sizeof(NUL_ESCAPE) - 1 && !memcmp(text, NUL_ESCAPE, sizeof(NUL_ESCAPE) - 1))
        return sizeof(NUL_ESCAPE) - 1;

    *ret = " ";
    return (unsigned char)*text < 0x20;
}

/* See message_result_parse. */
static char *sanitise(struct arena *arena, const char *text, size_t len, size_t *ret_len)
{
    char *clean = arena_alloc(arena, len * 3 + 1, 1);
    size_t used = 0;

    for (size_t i = 0; i < len;) {
        const char *with;
        size_t width = replaced(text + i, len - i, &with);
        if (width) {
            memcpy(clean + used, with, strlen(with));
            used += strlen(with);
        } else {
            width = str_utf8_char(text + i, len - i);
            if (text[i] == '\\' && i + 1 < len && text[i + 1] == '\\')
                width = 2; /* what follows an escaped backslash is no escape */
            memcpy(clean + used, text + i, width);
            used += width;
        }
        i += width;
    }

    *ret_len = used;
    return clean;
}

static int find_members(struct json_slice message, struct parts *ret, struct error *err)
{
    struct json_slice_iter iter = json_slice_items(message);

    if (json_slice_kind(message) != '{')
        return error_set(err, ERROR_INVALID, "a result must be an object");
    while (json_slice_next(&iter)) {
        for (size_t i = 0; i < MEMBERS; i++) {
            if (!json_slice_is_key(iter.key, MEMBER_NAMES[i]))
                continue;
            if (ret->members[i].len)
                return error_set(err, ERROR_INVALID, "key '%s' appears twice in one JSON object",
                                 MEMBER_NAMES[i]);
            ret->members[i] = iter.value;
        }
    }
    return 0;
}

/* ret: empty. */
static int take_apart(struct arena *arena, const char *text, size_t len, struct parts *ret,
                      struct error *err)
{
    struct json_slice message;
    int r = json_slice_check_legal(text, len, &message, &ret->beyond, err);

    if ((r < 0 || ret->beyond) && len <= MAX_REPAIRED) {
        size_t clean_len;
        const char *clean = sanitise(arena, text, len, &clean_len);
        r = json_slice_check_legal(clean, clean_len, &message, &ret->beyond, err);
    }
    return r < 0 ? r : find_members(message, ret, err);
}

static bool is_absent(struct json_slice value)
{
    return !value.len || json_slice_kind(value) == 'n';
}

/* NULL: absent. A string that is JSON and yet not taken is NULL, too. */
static int read_string(struct arena *arena, struct json_slice value, enum member member,
                       const char **ret, struct error *err)
{
    const cJSON *json = NULL;

    *ret = NULL;
    if (is_absent(value))
        return 0;
    if (json_slice_kind(value) != '"')
        return error_set(err, ERROR_INVALID, "'%s' must be a string or null", MEMBER_NAMES[member]);
    if (json_slice_value(arena, value, &json, NULL) == 0)
        *ret = json_string(json, NULL);
    return 0;
}

/* An identity that cannot be read is not an absent one. */
static int read_identity(struct arena *arena, struct json_slice value, const char **ret,
                         struct error *err)
{
    int r = read_string(arena, value, PROPLET_ID, ret, err);

    if (r == 0 && !*ret && !is_absent(value))
        return error_set(err, ERROR_INVALID, "'%s' has no legal text", MEMBER_NAMES[PROPLET_ID]);
    return r;
}

static int read_sender(struct arena *arena, const struct parts *parts, const char **ret,
                       struct error *err)
{
    struct json_slice results = parts->members[RESULTS];
    struct json_slice_iter iter = json_slice_items(results);
    int r = read_identity(arena, parts->members[PROPLET_ID], ret, err);

    if (r < 0 || *ret || !results.len || json_slice_kind(results) != '{')
        return r;
    while (json_slice_next(&iter)) { /* training on the Linux device: inside results */
        if (json_slice_is_key(iter.key, MEMBER_NAMES[PROPLET_ID]))
            return read_identity(arena, iter.value, ret, err);
    }
    return 0;
}

static int read_error(struct arena *arena, const struct parts *parts, const char **ret,
                      struct error *err)
{
    struct json_slice value = parts->members[ERROR_TEXT];

    *ret = NULL;
    if (value.len <= MAX_ERROR) {
        int r = read_string(arena, value, ERROR_TEXT, ret, err);
        if (r < 0 || *ret || is_absent(value)) {
            *ret = str_is_empty(*ret) ? NULL : *ret;
            return r;
        }
    }
    *ret = arena_printf(arena, "the device reports an error of %zu bytes, which is not stored",
                        value.len);
    return 0;
}

static enum result_refusal refuse(struct arena *arena, const struct parts *parts,
                                  struct json_slice value, const char **ret_why)
{
    char digest[SHA256_HEX_LEN];

    if (value.len > RESULT_MAX_SENT) {
        *ret_why =
            arena_printf(arena, "the result has %zu bytes, %zu are taken from a device; sha256 %s",
                         value.len, RESULT_MAX_SENT, sha256_hex(value.text, value.len, digest));
        return RESULT_TOO_LARGE;
    }
    if (json_slice_levels(value) > MAX_LEVELS) {
        *ret_why = arena_printf(arena, "the result has more than %d levels", MAX_LEVELS);
        return RESULT_UNREADABLE;
    }
    *ret_why = arena_printf(arena, "the result is JSON that cannot be stored: it must have %s",
                            parts->beyond ? parts->beyond : "fewer values");
    return RESULT_UNREADABLE;
}

/* A device's own error is why it fails, whatever its results are. */
static void read_results(struct arena *arena, const struct parts *parts, struct result_message *ret)
{
    struct json_slice value = parts->members[RESULTS];

    if (!value.len || (value.len <= RESULT_MAX_SENT && json_slice_levels(value) <= MAX_LEVELS &&
                       json_slice_value(arena, value, &ret->results, NULL) == 0))
        return;
    if (!ret->error)
        ret->refusal = refuse(arena, parts, value, &ret->error);
}

int message_result_parse(struct arena *arena, const char *text, size_t len,
                         struct result_message *ret, struct error *err)
{
    struct result_message message = { 0 };
    struct parts parts = { .beyond = NULL };
    int r = take_apart(arena, text, len, &parts, err);

    if (r < 0)
        return r;
    r = read_string(arena, parts.members[TASK_ID], TASK_ID, &message.task_id, err);
    if (r == 0 && str_is_empty(message.task_id))
        r = error_set(err, ERROR_INVALID, "'task_id' must be a string that is not empty");
    if (r == 0)
        r = read_sender(arena, &parts, &message.proplet_id, err);
    if (r == 0)
        r = read_error(arena, &parts, &message.error, err);
    if (r < 0)
        return r;
    read_results(arena, &parts, &message);
    *ret = message;
    return 0;
}

int message_result_shorten(struct arena *arena, const char *text, size_t len,
                           struct short_result *ret, struct error *err)
{
    struct result_message message;
    int r = message_result_parse(arena, text, len, &message, err);
    if (r < 0)
        return r;

    cJSON *json = json_object(arena);
    json_set_string(json, "task_id", message.task_id);
    json_set_string(json, "proplet_id", message.proplet_id);
    json_set_string(json, "error",
                    message.error ? arena_strndup(arena, message.error,
                                                  str_utf8_cut(message.error, strlen(message.error),
                                                               KEPT_ERROR))
                                  : NULL);
    if (!message.error)
        json_set_copy(json, "results", message.results);
    *ret = (struct short_result){ .task_id = message.task_id, .refusal = message.refusal };
    ret->text = json_text(arena, json, &ret->len);
    return 0;
}
