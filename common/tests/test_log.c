#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/tests/suite.h"

/* stderr of a forked test, in memory. */
static int capture;
static struct arena *arena;

static void setup(void)
{
    json_init();
    arena = arena_create();
    capture = memfd_create("stderr", 0);
    ck_assert_int_ge(capture, 0);
    ck_assert_int_eq(fcntl(capture, F_SETFL, O_APPEND), 0);
    ck_assert_int_eq(dup2(capture, STDERR_FILENO), STDERR_FILENO);
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("log", setup, teardown);

static char *logged(void)
{
    struct stat info;

    ck_assert_int_eq(fstat(capture, &info), 0);
    char *text = arena_alloc(arena, (size_t)info.st_size + 1, 1);
    ck_assert_int_eq(pread(capture, text, (size_t)info.st_size, 0), info.st_size);
    return text;
}

/* The only line so far, as JSON. */
static const cJSON *line(void)
{
    const char *text = logged();
    const cJSON *json = NULL;
    struct error err;

    ck_assert_uint_eq(strcspn(text, "\n") + 1, strlen(text));
    ck_assert_msg(json_parse(arena, text, strlen(text), &json, &err) == 0, "%s: %s", err.message,
                  text);
    return json;
}

static const char *field(const char *key)
{
    return json_string(json_get(line(), key), NULL);
}

TEST(a_line_is_json_with_time_level_message_and_fields)
{
    int64_t before_us = clock_wall_us(&CLOCK_SYSTEM);
    int64_t at_us;

    log_info("task dispatched", "task", "default/a", "proplet", NULL, "attempt", LOG_INT(-3), NULL);
    ck_assert_str_eq(field("level"), "info");
    ck_assert_str_eq(field("msg"), "task dispatched");
    ck_assert_str_eq(field("task"), "default/a");
    ck_assert_str_eq(field("attempt"), "-3");
    ck_assert_ptr_null(json_get(line(), "proplet")); /* a NULL value is left out */
    ck_assert_uint_eq(json_len(line()), 5);
    ck_assert(rfc3339_parse(field("ts"), &at_us));
    ck_assert_int_ge(at_us, before_us);
    ck_assert_uint_eq(strlen(field("ts")), strlen("2026-11-21T10:00:00.000000Z"));
}

TEST(whatever_the_bytes_are_the_line_is_json)
{
    char every[256] = { 0 };

    for (int i = 1; i < 256; i++)
        every[i - 1] = (char)i;
    log_warn(every, every, every, "quote", "\"\\\n\r\t\b\f/", "utf8", "\xc3\xa4\xf0\x9f\x98\x80",
             "broken", "a\xc3", NULL);
    ck_assert_str_eq(field("quote"), "\"\\\n\r\t\b\f/");
    ck_assert_str_eq(field("utf8"), "\xc3\xa4\xf0\x9f\x98\x80");
    ck_assert_str_eq(field("broken"), "a\xef\xbf\xbd");
    ck_assert_int_eq(memcmp(field("msg"), every, 0x7f), 0);
}

TEST(lines_below_the_level_are_not_written)
{
    log_configure(LOG_WARN, LOG_JSON);
    ck_assert(!log_enabled(LOG_INFO) && log_enabled(LOG_WARN) && log_enabled(LOG_ERROR));
    log_info("no", NULL);
    log_debug("no", NULL);
    log_trace("no", NULL);
    ck_assert_str_eq(logged(), "");
    log_error("yes", NULL);
    ck_assert_str_eq(field("level"), "error");
}

TEST(info_is_the_default_level)
{
    ck_assert(log_enabled(LOG_INFO) && !log_enabled(LOG_DEBUG));
}

TEST(levels_have_names)
{
    static const char *const NAMES[] = { "trace", "debug", "info", "warn", "error" };
    enum log_level level;

    for (int i = 0; i < 5; i++) {
        ck_assert(log_level_parse(NAMES[i], &level));
        ck_assert_int_eq(level, i);
    }
    ck_assert(!log_level_parse("INFO", &level));
    ck_assert(!log_level_parse("", &level));
    ck_assert_int_eq(level, LOG_ERROR);
}

TEST(text_quotes_what_is_more_than_a_word)
{
    log_configure(LOG_TRACE, LOG_TEXT);
    log_trace("two words\n", "plain", "default/a:1", "empty", "", "space", "a b", "equals", "a=b",
              "quote", "a\"b", NULL);

    const char *text = logged();
    int64_t us;

    ck_assert_str_eq(text + strlen("2026-11-21T10:00:00.000000Z"),
                     " TRACE two words\\n plain=default/a:1 empty=\"\" space=\"a b\" "
                     "equals=\"a=b\" quote=\"a\\\"b\"\n");
    ck_assert(rfc3339_parse(arena_strndup(arena, text, strcspn(text, " ")), &us));
}

TEST(fields_of_the_thread_come_first_until_they_are_cleared)
{
    char name[] = "default/a";

    log_fields_set("controller", "task", "object", name, "absent", NULL, NULL);
    name[0] = 'X'; /* copied */
    log_fields_set("object", "default/b", NULL);
    log_info("m", "own", "1", NULL);
    ck_assert_ptr_nonnull(strstr(logged(), "\"msg\":\"m\",\"controller\":\"task\","
                                           "\"object\":\"default/b\",\"own\":\"1\"}\n"));
    log_fields_clear();
    ck_assert_int_eq(ftruncate(capture, 0), 0);
    log_info("m", NULL);
    ck_assert_uint_eq(json_len(line()), 3);
}

static void *log_of_another_thread(void *unused UNUSED)
{
    log_info("other", NULL);
    return NULL;
}

TEST(fields_of_a_thread_are_its_own)
{
    pthread_t thread;

    log_fields_set("mine", "1", NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, log_of_another_thread, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_ptr_null(json_get(line(), "mine"));
}

TEST(a_long_field_of_the_thread_is_cut_at_a_character)
{
    char value[1000] = { 0 };

    for (size_t i = 0; i + 2 < sizeof(value); i += 2)
        memcpy(value + i, "\xc3\xa4", 2);
    log_fields_set("object", value, NULL);
    log_info("m", NULL);
    ck_assert_uint_eq(strlen(field("object")), 382);
    ck_assert_int_eq(memcmp(field("object"), value, 382), 0);
}

/* The value ends at every place around the limit of a line. */
TEST_TIMES(a_line_too_long_is_cut_and_still_json, 2)
{
    enum { LIMIT = 16 << 10 };
    static char value[LIMIT + 1];

    for (int len = LIMIT - 150; len < LIMIT; len++) {
        memset(value, _i ? '"' : 'x', sizeof(value) - 1);
        value[_i ? len / 2 : len] = '\0';
        log_info("m", "value", value, "next", "a rather long value that follows", NULL);
        ck_assert_uint_le(strlen(logged()), LIMIT);
        (void)line();
        if (!json_get(line(), "next"))
            ck_assert_str_eq(field("cut"), "true");
        ck_assert_int_eq(ftruncate(capture, 0), 0);
    }
}

TEST(a_message_too_long_is_cut_and_still_json)
{
    char *message = arena_printf(arena, "%0100000d", 1);

    log_info(message, "key", "value", NULL);
    ck_assert_str_eq(field("cut"), "true");
    ck_assert_uint_gt(strlen(field("msg")), 16000);
    ck_assert_uint_le(strlen(logged()), 16384);
}

enum { WRITERS = 4, LINES = 500 };

static void *write_lines(void *ctx)
{
    const char *name = ctx;

    log_fields_set("writer", name, NULL);
    for (int i = 0; i < LINES; i++)
        log_info("line", "number", LOG_INT(i), "filler", "................................", NULL);
    return NULL;
}

TEST(lines_of_many_threads_stay_whole)
{
    static char names[WRITERS][2] = { "0", "1", "2", "3" };
    int next[WRITERS] = { 0 };
    pthread_t threads[WRITERS];

    for (int i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
    for (int i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);

    for (const char *at = logged(); *at; at += strcspn(at, "\n") + 1) {
        const cJSON *json;
        int64_t number;

        ck_assert_int_eq(json_parse(arena, at, strcspn(at, "\n"), &json, NULL), 0);
        int writer = json_string(json_get(json, "writer"), "?")[0] - '0';
        ck_assert(str_to_int64(json_string(json_get(json, "number"), ""), &number));
        ck_assert_int_eq(number, next[writer]++);
    }
    for (int i = 0; i < WRITERS; i++)
        ck_assert_int_eq(next[i], LINES);
}

TEST(nobody_needs_to_read)
{
    ck_assert_int_eq(close(STDERR_FILENO), 0);
    log_error("lost", NULL);
}
