#include "plugin/cli/output.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/yaml_write.h"

#define MAX_DOCUMENT (64u << 20)
#define GAP 3 /* blanks between columns */

const char *const OUTPUT_FORMATS[] = { "table", "wide", "name", "json", "yaml", NULL };
const char *const ENV_FORMATS[] = { "table", "wide", "name", "json", "yaml", "env", NULL };

cJSON *output_document(struct arena *arena, const char *kind)
{
    cJSON *document = json_object(arena);

    json_set_string(document, "apiVersion", CLI_API_VERSION);
    json_set_string(document, "kind", kind);
    return document;
}

static const char *age_text(struct arena *arena, const char *time, int64_t now_us)
{
    int64_t time_us;

    if (!rfc3339_parse(time, &time_us))
        return "";
    if (time_us > now_us)
        return arena_printf(arena, "in %s", duration_text(arena, time_us - now_us));
    return duration_text(arena, now_us - time_us);
}

static const char *value_text(struct arena *arena, const cJSON *value)
{
    const char *text = "";

    if (!value || cJSON_IsNull(value))
        return "";
    if (cJSON_IsString(value))
        return json_string(value, "");
    if (!cJSON_IsArray(value))
        return json_text(arena, value, NULL);
    json_for_each (item, value)
        text = arena_printf(arena, "%s%s%s", text, *text ? "," : "", value_text(arena, item));
    return text;
}

const char *output_cell(struct arena *arena, const struct column *column, const cJSON *row,
                        int64_t now_us)
{
    const char *text = value_text(arena, json_get(row, column->key));

    return column->type == COLUMN_AGE ? age_text(arena, text, now_us) : text;
}

/* Characters that a terminal acts on, that change the direction of the text around them, or that are not seen. */
static const struct {
    uint32_t first, last;
} UNSAFE[] = {
    { 0x00, 0x08 },     { 0x0a, 0x1f },     { 0x7f, 0x9f },       { 0x061c, 0x061c },
    { 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
    { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
};

#define REPLACEMENT 0xfffdu /* of bytes that are no character */

static bool is_unsafe(uint32_t point)
{
    for (size_t i = 0; i < ARRAY_LEN(UNSAFE); i++) {
        if (point >= UNSAFE[i].first && point <= UNSAFE[i].last)
            return true;
    }
    return false;
}

/* The character at the text, whose sequence has `width` bytes. */
static uint32_t point_at(const char *text, size_t width)
{
    static const unsigned char MASKS[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t point = (unsigned char)text[0] & MASKS[width];

    for (size_t i = 1; i < width; i++)
        point = point << 6 | ((unsigned char)text[i] & 0x3f);
    return point;
}

/* Returns the bytes of the next character, at least 1. */
static size_t next_char(const char *text, size_t len, uint32_t *ret_point, bool *ret_is_unsafe)
{
    size_t width = str_utf8_char(text, len);

    *ret_point = width ? point_at(text, width) : REPLACEMENT;
    *ret_is_unsafe = !width || is_unsafe(*ret_point);
    return width ? width : 1;
}

static const char *cleaned(struct arena *arena, const char *text)
{
    size_t len = strlen(text);
    char *clean = arena_strdup(arena, text);

    for (size_t i = 0; i < len;) {
        uint32_t point;
        bool unsafe;
        size_t width = next_char(text + i, len - i, &point, &unsafe);

        if (unsafe)
            memset(clean + i, '?', width);
        i += width;
    }
    return clean;
}

/* JSON text with \uXXXX in place of such characters, which stand in strings alone. */
static void print_escaped(FILE *file, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len;) {
        uint32_t point;
        bool unsafe;
        size_t width = next_char(text + i, len - i, &point, &unsafe);

        if (!unsafe)
            (void)fwrite(text + i, 1, width, file);
        else if (point > 0xffff)
            (void)fprintf(file, "\\u%04x\\u%04x", 0xd7c0 + (point >> 10), 0xdc00 + (point & 0x3ff));
        else
            (void)fprintf(file, "\\u%04x", point);
        i += width;
    }
}

/* In a text whose line ends are its own. */
static bool has_unsafe(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len;) {
        uint32_t point;
        bool unsafe;

        i += next_char(text + i, len - i, &point, &unsafe);
        if (unsafe && point != '\n')
            return true;
    }
    return false;
}

/* Characters, not bytes: what begins a UTF-8 sequence. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void PRINTF_LIKE(3, 0)
    print_line(FILE *file, const char *before, const char *format, va_list args)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    (void)fprintf(file, "%s%s\n", before, cleaned(arena, arena_vprintf(arena, format, args)));
}

void output_line(FILE *file, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(file, "", format, args);
    va_end(args);
}

void output_paragraph(FILE *file, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(file, "\n", format, args);
    va_end(args);
}

void output_text(FILE *file, const char *text)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        (void)fprintf(file, "%s\n", cleaned(arena, arena_strndup(arena, line, len)));
        line += len + (line[len] == '\n');
    }
    if (!*text)
        (void)fputc('\n', file);
}

bool output_is_whole(FILE *file)
{
    struct pollfd fd = { .fd = fileno(file), .events = POLLOUT };

    if (fflush(file) == 0 && !ferror(file))
        return true;
    (void)poll(&fd, 1, 0);
    return fd.revents & POLLERR; /* a pipe without a reader */
}

bool output_is_structured(const struct output *output)
{
    return output->format == OUTPUT_JSON || output->format == OUTPUT_YAML;
}

static void print_json(FILE *file, const cJSON *item, int indent);

static void print_text(FILE *file, const cJSON *item)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    print_escaped(file, json_text(arena, item, NULL));
}

/* As kubectl prints it: members on lines of their own, two blanks a level. */
static void print_members(FILE *file, const cJSON *container, int indent)
{
    bool is_object = cJSON_IsObject(container);

    (void)fputs(is_object ? "{\n" : "[\n", file);
    json_for_each (item, container) {
        (void)fprintf(file, "%*s", indent + 2, "");
        if (is_object) {
            cJSON *key = cJSON_CreateStringReference(item->string);

            print_text(file, key);
            (void)fputs(": ", file);
            json_free(key);
        }
        print_json(file, item, indent + 2);
        (void)fputs(item->next ? ",\n" : "\n", file);
    }
    (void)fprintf(file, "%*s%s", indent, "", is_object ? "}" : "]");
}

/* No deeper than JSON_MAX_DEPTH: the parser made the parts, and a document adds a few levels. */
static void print_json(FILE *file, const cJSON *item, int indent)
{
    if (json_len(item))
        print_members(file, item, indent);
    else
        print_text(file, item);
}

void output_whole(const struct output *output, const cJSON *document)
{
    struct buf text = BUF_INIT(MAX_DOCUMENT);
    bool is_yaml = output->format == OUTPUT_YAML && yaml_write(&text, document);

    if (is_yaml && !has_unsafe(buf_string(&text))) {
        (void)fputs(buf_string(&text), output->file);
    } else { /* JSON is YAML too, and can escape every character */
        print_json(output->file, document, 0);
        (void)fputc('\n', output->file);
    }
    buf_release(&text);
}

struct grid {
    struct arena *arena;
    const struct output *output;
    const struct column *columns;
    size_t len;
    size_t *widths;
};

static bool is_shown(const struct grid *grid, size_t column)
{
    return !grid->columns[column].wide || grid->output->format == OUTPUT_WIDE;
}

static void measure(struct grid *grid, const cJSON *rows)
{
    for (size_t i = 0; i < grid->len; i++)
        grid->widths[i] = grid->output->no_headers ? 0 : width_of(grid->columns[i].header);
    json_for_each (row, rows) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        for (size_t i = 0; i < grid->len; i++) {
            size_t width =
                width_of(output_cell(arena, &grid->columns[i], row, grid->output->now_us));

            grid->widths[i] = width > grid->widths[i] ? width : grid->widths[i];
        }
    }
}

static void print_row(const struct grid *grid, const cJSON *row)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t owed = 0; /* blanks before the next text */

    for (size_t i = 0; i < grid->len; i++) {
        if (!is_shown(grid, i))
            continue;
        const char *cell = row ? output_cell(arena, &grid->columns[i], row, grid->output->now_us)
                               : grid->columns[i].header;

        if (*cell) {
            (void)fprintf(grid->output->file, "%*s%s", (int)owed, "", cleaned(arena, cell));
            owed = 0;
        }
        owed += grid->widths[i] - width_of(cell) + GAP;
    }
    (void)fputc('\n', grid->output->file);
}

void output_rows(const struct output *output, const cJSON *document, const cJSON *rows,
                 const struct column *columns, size_t len)
{
    if (output_is_structured(output)) {
        output_whole(output, document);
        return;
    }
    if (output->format == OUTPUT_NAME) {
        json_for_each (row, rows)
            output_line(output->file, "%s", json_string(json_get(row, "object"), ""));
        return;
    }

    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct grid grid = { .arena = arena,
                         .output = output,
                         .columns = columns,
                         .len = len,
                         .widths = arena_array(arena, size_t, len) };

    measure(&grid, rows);
    if (!output->no_headers)
        print_row(&grid, NULL);
    json_for_each (row, rows)
        print_row(&grid, row);
}
