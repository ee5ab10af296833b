#include "common/json/yaml_write.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/str.h"
#include "common/json/scan.h"

/* A key that is longer is written with "? ": readers look 1,024 characters ahead for its colon. */
#define MAX_SIMPLE_KEY 128
#define STEP 2

static bool write_value(struct buf *buf, const cJSON *item, int indent);

static bool write_indent(struct buf *buf, int indent)
{
    return buf_printf(buf, "%*s", indent, "");
}

/* --- strings --- */

/* Plain, these would be something else to some reader. */
static bool is_word(const char *text)
{
    static const char *const WORDS[] = {
        "y", "n", "yes", "no", "on", "off", "true", "false", "null"
    };

    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        if (strcasecmp(text, WORDS[i]) == 0)
            return true;
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Begins with a letter, so that it is no number, date or indicator, and has no character that means
 * something anywhere. */
static bool is_plain(const char *text)
{
    size_t len = strlen(text);

    if ((!is_letter(text[0]) && text[0] != '/' && text[0] != '_') || is_word(text))
        return false;
    if (text[len - 1] == ' ' || text[len - 1] == ':')
        return false;
    for (const char *at = text; *at; at++) {
        if (!is_letter(*at) && !strchr("0123456789_-./+@()=:, ", *at))
            return false;
        if (*at == ':' && at[1] == ' ')
            return false;
    }
    return true;
}

/* Of the UTF-8 character with so many bytes. */
static unsigned code_point(const char *at, size_t step)
{
    const unsigned char *byte = (const unsigned char *)at;
    unsigned code = step == 1 ? byte[0] : byte[0] & (0xffu >> (step + 1));

    for (size_t i = 1; i < step; i++)
        code = code << 6 | (byte[i] & 0x3fu);
    return code;
}

/* Bytes of the next character that can stand in a text as it is; 0: it must be escaped. */
static size_t printable_len(const char *at, size_t len)
{
    static const struct {
        unsigned first, last;
    } HIDDEN[] = {
        { 0, 0x1f },        { 0x7f, 0x9f },     /* controls, NEL among them */
        { 0x2028, 0x2029 }, { 0xfeff, 0xfeff }, /* separators, byte order mark */
        { 0xfffe, 0xffff },
    };
    size_t step = str_utf8_char(at, len);
    unsigned code = code_point(at, step ? step : 1);

    for (size_t i = 0; i < ARRAY_LEN(HIDDEN); i++) {
        if (code >= HIDDEN[i].first && code <= HIDDEN[i].last)
            return 0;
    }
    return step;
}

/* Several lines that all print, without blanks at their ends, the first beginning with something:
 * what a literal block holds as it is. At most one newline at the end. */
static bool is_block(const char *text)
{
    size_t len = strlen(text);

    if (!strchr(text, '\n') || *text == ' ' || *text == '\n' || str_has_suffix(text, "\n\n"))
        return false;
    for (const char *at = text; *at;) {
        if (*at == '\n' && at[-1] == ' ')
            return false;
        size_t step = *at == '\n' ? 1 : printable_len(at, len - (size_t)(at - text));
        if (!step)
            return false;
        at += step;
    }
    return text[len - 1] != ' ';
}

static bool write_block(struct buf *buf, const char *text, int indent)
{
    bool fits = buf_append_string(buf, str_has_suffix(text, "\n") ? "|" : "|-");

    while (fits && *text) {
        size_t len = strcspn(text, "\n");

        fits = buf_append_string(buf, "\n") && (!len || write_indent(buf, indent)) &&
               buf_append(buf, text, len);
        text += len + (text[len] == '\n');
    }
    return fits;
}

static bool write_escape(struct buf *buf, const char *at, size_t step)
{
    unsigned code = code_point(at, step);

    if (code == '\n')
        return buf_append_string(buf, "\\n");
    if (code == '\t')
        return buf_append_string(buf, "\\t");
    return buf_printf(buf, code < 0x80 ? "\\x%02X" : "\\u%04X", code);
}

static bool write_quoted(struct buf *buf, const char *text)
{
    const char *end = text + strlen(text), *plain = text;
    bool fits = buf_append_string(buf, "\"");

    for (const char *at = text; fits && at < end;) {
        size_t step = printable_len(at, (size_t)(end - at));

        if (step && *at != '"' && *at != '\\') {
            at += step;
            continue;
        }
        fits = buf_append(buf, plain, (size_t)(at - plain));
        if (fits && step) {
            fits = buf_append(buf, (char[]){ '\\', *at }, 2);
        } else if (fits) {
            step = str_utf8_char(at, (size_t)(end - at));
            step = step ? step : 1;
            fits = write_escape(buf, at, step);
        }
        at += step;
        plain = at;
    }
    return fits && buf_append(buf, plain, (size_t)(end - plain)) && buf_append_string(buf, "\"");
}

static bool write_string(struct buf *buf, const char *text, int indent)
{
    if (is_plain(text))
        return buf_append_string(buf, text);
    return is_block(text) ? write_block(buf, text, indent) : write_quoted(buf, text);
}

/* --- the rest --- */

static bool write_scalar(struct buf *buf, const cJSON *item, int indent)
{
    if (cJSON_IsString(item))
        return write_string(buf, item->valuestring, indent);
    if (cJSON_IsArray(item))
        return buf_append_string(buf, "[]");
    if (cJSON_IsObject(item))
        return buf_append_string(buf, "{}");

    char *text = cJSON_PrintUnformatted(item);
    bool fits = buf_append_string(buf, text);

    free(text);
    return fits;
}

static bool write_key(struct buf *buf, const char *key, int indent)
{
    bool is_simple = strlen(key) <= MAX_SIMPLE_KEY;
    bool fits = is_simple || buf_append_string(buf, "? ");

    fits = fits && (is_plain(key) ? buf_append_string(buf, key) : write_quoted(buf, key));
    if (!is_simple)
        fits = fits && buf_append_string(buf, "\n") && write_indent(buf, indent);
    return fits && buf_append_string(buf, ":");
}

/* What stands behind "key:": a list at the key's own indentation, as kubectl does. */
static bool write_member_value(struct buf *buf, const cJSON *value, int indent)
{
    if (!value->child)
        return buf_append_string(buf, " ") && write_scalar(buf, value, indent + STEP) &&
               buf_append_string(buf, "\n");
    indent += cJSON_IsObject(value) ? STEP : 0;
    return buf_append_string(buf, "\n") && write_indent(buf, indent) &&
           write_value(buf, value, indent);
}

static bool write_object(struct buf *buf, const cJSON *object, int indent)
{
    size_t len;
    const cJSON **members = json_sorted_members(object, &len);
    bool fits = true;

    for (size_t i = 0; fits && i < len; i++)
        fits = (i == 0 || write_indent(buf, indent)) &&
               write_key(buf, members[i]->string, indent) &&
               write_member_value(buf, members[i], indent);
    free(members);
    return fits;
}

static bool write_array(struct buf *buf, const cJSON *array, int indent)
{
    json_for_each (item, array) {
        if (item != array->child && !write_indent(buf, indent))
            return false;
        if (!buf_append_string(buf, "- ") || !write_value(buf, item, indent + STEP))
            return false;
    }
    return true;
}

/* From where the text stands, which is at this indentation. */
static bool write_value(struct buf *buf, const cJSON *item, int indent)
{
    if (!item->child) /* a block of lines is indented, also as a whole document */
        return write_scalar(buf, item, indent ? indent : STEP) && buf_append_string(buf, "\n");
    return cJSON_IsObject(item) ? write_object(buf, item, indent) : write_array(buf, item, indent);
}

bool yaml_write(struct buf *buf, const cJSON *item)
{
    return write_value(buf, item, 0);
}
