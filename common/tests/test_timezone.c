#include "common/api/timezone.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "common/tests/tzif.h"

/* A database of the test: zones Good, Area/City, Etc/GMT+5; files that are no zones. */
static struct arena *arena;
static const char *database;

static void make_directory(const char *name)
{
    ck_assert_int_eq(mkdir(arena_printf(arena, "%s/%s", database, name), 0700), 0);
}

static void setup(void)
{
    arena = arena_create();
    database = temp_dir(arena);
    make_directory("Area");
    make_directory("Etc");
    make_directory("posix");
    temp_file(arena, database, "Good", "TZif2 and so on");
    temp_file(arena, database, "Local", "TZif2");
    temp_file(arena, database, "zone.tab", "# names of all");
    temp_file(arena, database, "Text", "no zone");
    temp_file(arena, database, "Short", "TZi");
    temp_file(arena, database, ".hidden", "TZif2");
    temp_file(arena, arena_printf(arena, "%s/Area", database), "City", "TZif2");
    temp_file(arena, arena_printf(arena, "%s/Etc", database), "GMT+5", "TZif2");
    ck_assert_int_eq(mkfifo(arena_printf(arena, "%s/Pipe", database), 0600), 0);
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("timezone", setup, teardown);

static const char *const KNOWN[] = { "UTC", "Good", "Area/City", "Etc/GMT+5" };

/* Nothing that leads out of the directory, waits, or is no zone. */
static const char *const HOSTILE[] = {
    "",
    "/",
    ".",
    "..",
    "../Good",
    "Area/../Good",
    "Area/..",
    "./Good",
    "/Good",
    "//Good",
    "Good/",
    "Area//City",
    "Area/./City",
    ".hidden",
    "Area",
    "posix",
    "zone.tab",
    "Text",
    "Short",
    "Pipe",
    "Nowhere",
    "good",
    "GOOD",
    "Local",
    "local",
    "LOCAL",
    "Good ",
    " Good",
    "Good\n",
    "Go od",
    "Good\\",
    "Area\\City",
    "~",
    "~root",
    "$TZ",
    "`id`",
    "Good;",
    "Good\x01",
    "Good\xff",
    "G\xc3\xb6zone",
    "%2e%2e/Good",
    ":Good",
    "UTC0",
    "EST5EDT,M3.2.0,M11.1.0",
    "<+03>-3",
    "/etc/localtime",
    "../../../etc/passwd",
    "/dev/stdin",
};

TEST_EACH(a_zone_of_the_database_is_known, KNOWN)
{
    ck_assert_int_eq(timezone_look_up(database, KNOWN[_i]), TIMEZONE_KNOWN);
}

TEST_EACH(what_names_no_zone_of_the_database_is_unknown, HOSTILE)
{
    ck_assert_msg(timezone_look_up(database, HOSTILE[_i]) == TIMEZONE_UNKNOWN, "'%s'", HOSTILE[_i]);
}

TEST(a_name_is_no_path_even_where_one_leads_to_a_zone)
{
    ck_assert_int_eq(timezone_look_up(arena_printf(arena, "%s/Area", database), "../Good"),
                     TIMEZONE_UNKNOWN);
    ck_assert_int_eq(timezone_look_up(database, arena_printf(arena, "%s/Good", database)),
                     TIMEZONE_UNKNOWN);
}

TEST(a_name_of_more_than_the_longest_is_unknown)
{
    char name[TIMEZONE_MAX_NAME + 2];

    memset(name, 'a', sizeof(name));
    name[TIMEZONE_MAX_NAME] = '\0';
    temp_file(arena, database, name, "TZif2");
    ck_assert_int_eq(timezone_look_up(database, name), TIMEZONE_KNOWN);
    name[TIMEZONE_MAX_NAME] = 'a';
    name[TIMEZONE_MAX_NAME + 1] = '\0';
    temp_file(arena, database, name, "TZif2");
    ck_assert_int_eq(timezone_look_up(database, name), TIMEZONE_UNKNOWN);
}

TEST(without_a_database_only_what_is_certain_is_said)
{
    const char *nowhere = arena_printf(arena, "%s/nowhere", database);

    ck_assert_int_eq(timezone_look_up(nowhere, "UTC"), TIMEZONE_KNOWN);
    ck_assert_int_eq(timezone_look_up(nowhere, "Europe/Paris"), TIMEZONE_CANNOT_TELL);
    ck_assert_int_eq(timezone_look_up(nowhere, "../Good"), TIMEZONE_UNKNOWN);
}

/* A file of the database with these bytes. */
static void put_zone(const char *name, const char *bytes, size_t len)
{
    FILE *file = fopen(arena_printf(arena, "%s/%s", database, name), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

TEST(a_zone_that_is_read_says_its_offsets)
{
    CLEANUP(buf_releasep) struct buf bytes = BUF_INIT(ZONE_MAX_BYTES);
    const struct zone *zone;

    tzif_write(&bytes, 0, &(const struct tzif_change){ 0, 0 }, 0, "<+0530>-5:30");
    put_zone("Area/India", bytes.data, bytes.len);
    ck_assert_int_eq(timezone_read(database, "Area/India", arena, &zone), TIMEZONE_KNOWN);
    ck_assert_int_eq(zone_span_at(zone, 0).offset_s, 19800);
    put_zone("Area/Cut", bytes.data, bytes.len - 1);
    ck_assert_int_eq(timezone_read(database, "Area/Cut", arena, &zone), TIMEZONE_UNKNOWN);
    ck_assert_ptr_null(zone);
}

TEST(what_cannot_be_read_is_told_apart)
{
    const char *nowhere = arena_printf(arena, "%s/nowhere", database);
    const struct zone *zone;

    ck_assert_int_eq(timezone_read(nowhere, "UTC", arena, &zone), TIMEZONE_KNOWN);
    ck_assert_ptr_null(zone);
    ck_assert_int_eq(timezone_read(nowhere, "Europe/Paris", arena, &zone), TIMEZONE_CANNOT_TELL);
    ck_assert_int_eq(timezone_read(database, "../Good", arena, &zone), TIMEZONE_UNKNOWN);
    ck_assert_int_eq(timezone_read(database, "zone.tab", arena, &zone), TIMEZONE_UNKNOWN);
}

TEST(no_descriptor_is_left_open)
{
    const struct zone *zone;
    int before = dup(0);

    close(before);
    for (size_t i = 0; i < ARRAY_LEN(HOSTILE); i++)
        (void)timezone_look_up(database, HOSTILE[i]);
    (void)timezone_look_up(database, "Good");
    (void)timezone_read(database, "Good", arena, &zone);
    (void)timezone_read(database, "Text", arena, &zone);

    int after = dup(0);
    close(after);
    ck_assert_int_eq(before, after);
}
