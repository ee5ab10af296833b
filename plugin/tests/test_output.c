/* Tables and documents. */
#include "plugin/cli/output.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static struct output output;
static char *text;
static size_t text_len;

static void set_up(void)
{
    arena_set_up();
    output = (struct output){ .format = OUTPUT_TABLE, .file = open_memstream(&text, &text_len) };
    rfc3339_parse("2026-01-02T00:00:00Z", &output.now_us);
}

static void tear_down(void)
{
    free(text);
    text = NULL;
    arena_tear_down();
}

TEST_GROUP("output", set_up, tear_down);

static const char *printed(void)
{
    ck_assert_int_eq(fclose(output.file), 0);
    return text;
}

static const struct column COLUMNS[] = {
    { .header = "NAME", .key = "name" },
    { .header = "HIDDEN", .key = "hidden", .wide = true },
    { .header = "AGE", .key = "time", .type = COLUMN_AGE },
    { .header = "TAGS", .key = "tags" },
};

#define ROWS                                                                                       \
    "[{\"object\":\"task/a\",\"name\":\"a\",\"hidden\":1,\"time\":\"2026-01-01T23:59:15Z\","       \
    "\"tags\":[\"x\",\"y\"]},"                                                                     \
    "{\"object\":\"task/bé\",\"name\":\"bé\",\"time\":\"2026-01-02T01:00:00Z\",\"tags\":true}]"

static void print(void)
{
    const cJSON *rows = parsed(arena, ROWS);
    cJSON *document = output_document(arena, "Rows");

    json_set_copy(document, "rows", rows);
    output_rows(&output, document, rows, COLUMNS, ARRAY_LEN(COLUMNS));
}

TEST(a_table_is_aligned_by_characters)
{
    print();
    ck_assert_str_eq(printed(), "NAME   AGE      TAGS\n"
                                "a      45s      x,y\n"
                                "bé     in 60m   true\n");
}

TEST(wide_shows_more_and_headers_can_be_left_out)
{
    output.format = OUTPUT_WIDE;
    output.no_headers = true;
    print();
    ck_assert_str_eq(printed(), "a    1   45s      x,y\n"
                                "bé       in 60m   true\n");
}

TEST(names_are_a_line_each)
{
    output.format = OUTPUT_NAME;
    print();
    ck_assert_str_eq(printed(), "task/a\ntask/bé\n");
}

TEST(json_is_the_whole_document)
{
    output.format = OUTPUT_JSON;
    output_whole(&output, parsed(arena, "{\"a\":{\"b\":[1,\"x\\n\"]},\"c\":[]}"));
    ck_assert_str_eq(printed(), "{\n"
                                "  \"a\": {\n"
                                "    \"b\": [\n"
                                "      1,\n"
                                "      \"x\\n\"\n"
                                "    ]\n"
                                "  },\n"
                                "  \"c\": []\n"
                                "}\n");
}

TEST(yaml_is_the_same_document)
{
    output.format = OUTPUT_YAML;
    output_whole(&output, parsed(arena, "{\"a\":{\"b\":[1]}}"));
    ck_assert_str_eq(printed(), "a:\n  b:\n  - 1\n");
}

/* Text of a device must not reach the terminal as a command. */
static const struct {
    const char *said, *shown;
} HOSTILE[] = {
    { "\x1b[2Jgone", "?[2Jgone" },
    { "a tab\tis harmless", "a tab\tis harmless" },
    { "bad\nWhat to do: pay", "bad?What to do: pay" }, /* no line of its own */
    { "\xe2\x80\x9cquoted\xe2\x80\x9d", "\xe2\x80\x9cquoted\xe2\x80\x9d" },
    { "\xd8\x9cx", "??x" },           /* Arabic letter mark */
    { "\xef\xbb\xbfx", "???x" },      /* byte order mark */
    { "\xf3\xa0\x81\x81x", "????x" }, /* a tag character */
    { "a\xc2\x9b"
      "31m",
      "a??31m" }, /* CSI as a C1 control */
    { "\xe2\x80\xae"
      "evil",
      "???evil" },               /* right-to-left override */
    { "\xe2\x81\xa6x", "???x" }, /* left-to-right isolate */
    { "bad \xff", "bad ?" },
    { "plain \xc3\xa9 \xe2\x82\xac", "plain \xc3\xa9 \xe2\x82\xac" },
};

TEST_EACH(no_control_character_reaches_the_terminal, HOSTILE)
{
    output_line(output.file, "%s", HOSTILE[_i].said);
    ck_assert_str_eq(printed(), arena_printf(arena, "%s\n", HOSTILE[_i].shown));
}

TEST(a_text_keeps_its_lines)
{
    output_text(output.file, "one\ntwo\x1b");
    output_text(output.file, "");
    output_paragraph(output.file, "%s", "three");
    ck_assert_str_eq(printed(), "one\ntwo?\n\n\nthree\n");
}

/* Other programs get every character, and a terminal gets none of them as it is. */
#define UNSAFE "{\"a\":\"\xe2\x80\xae\x7f\xf3\xa0\x81\x81\xc3\xa9\"}"
#define ESCAPED "{\n  \"a\": \"\\u202e\\u007f\\udb40\\udc41\xc3\xa9\"\n}\n"

TEST(documents_have_such_characters_escaped)
{
    output.format = OUTPUT_JSON;
    output_whole(&output, parsed(arena, UNSAFE));
    output.format = OUTPUT_YAML;
    output_whole(&output, parsed(arena, UNSAFE));
    ck_assert_str_eq(printed(), ESCAPED ESCAPED);
}

TEST(a_full_disk_is_told_and_a_closed_pipe_is_not)
{
    FILE *full = fopen("/dev/full", "w");
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    (void)signal(SIGPIPE, SIG_IGN);
    FILE *closed = fdopen(ends[1], "w");
    (void)close(ends[0]);
    output_line(full, "lost");
    output_line(closed, "not wanted");
    ck_assert(!output_is_whole(full));
    ck_assert(output_is_whole(closed));
    ck_assert(output_is_whole(output.file));
    (void)fclose(full);
    (void)fclose(closed);
}
