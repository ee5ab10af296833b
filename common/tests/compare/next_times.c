/* For schedules.py: a line "expression <tab> zone <tab> after <tab> count" on stdin is answered by a
 * line with that many next times, all in seconds since 1970, or "refused: why".
 *
 * The expression may also be "grid DAYS|HOURS" or "windows DAYS|FROM|UNTIL;...". The answer is "OPEN NEXT LAST": 0 or 1,
 * and the next and the last change, or "-". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/timetable.h"
#include "common/api/timezone.h"
#include "common/api/windows.h"
#include "common/base/str.h"

#define MAX_LINE 1024
#define FIELDS 4
#define US_PER_S 1000000

static bool split(char *line, char *fields[static FIELDS])
{
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = line;
        line = line ? strchr(line, '\t') : NULL;
        if (line)
            *line++ = '\0';
    }
    return fields[FIELDS - 1] && !line;
}

static void answer(const struct timetable *table, int64_t after_s, int64_t count)
{
    int64_t at_us = after_s * US_PER_S;
    const char *blank = "";

    for (int64_t i = 0; i < count && timetable_next(table, at_us, &at_us); i++, blank = " ")
        printf("%s%" PRId64, blank, at_us / US_PER_S);
    printf("\n");
}

static void read_grid(char *text, struct windows *ret)
{
    struct error err = { 0 };
    char *hours = strchr(text, '|');

    *hours++ = '\0';
    if (windows_parse_days(text, &ret->days, &err) < 0 ||
        windows_parse_hours(hours, &ret->hours, &err) < 0)
        abort();
}

static void read_windows(char *text, struct windows *ret)
{
    struct error err = { 0 };

    for (char *item; (item = strtok_r(text, ";", &text)) != NULL && ret->len < WINDOWS_MAX;) {
        struct window *window = &ret->items[ret->len++];
        char *days = strtok_r(item, "|", &item);
        char *from = strtok_r(item, "|", &item);

        if (windows_parse_days(days, &window->days, &err) < 0 ||
            !windows_parse_time(from, &window->from) || !windows_parse_until(item, window))
            abort();
    }
}

typedef bool change_fn(const struct windows *windows, const struct zone *zone, int64_t at_us,
                       int64_t *ret_us);

static void print_change(change_fn *change, const struct windows *windows, const struct zone *zone,
                         int64_t at_us)
{
    int64_t change_us;

    if (change(windows, zone, at_us, &change_us))
        printf(" %" PRId64, change_us / US_PER_S);
    else
        printf(" -");
}

/* False: the expression is none of windows. */
static bool answer_windows(char *expression, const struct zone *zone, int64_t at_s)
{
    struct windows windows = { 0 };
    int64_t at_us = at_s * US_PER_S;

    if (str_has_prefix(expression, "grid "))
        read_grid(strchr(expression, ' ') + 1, &windows);
    else if (str_has_prefix(expression, "windows "))
        read_windows(strchr(expression, ' ') + 1, &windows);
    else
        return false;
    printf("%d", windows_open(&windows, zone, at_us));
    print_change(windows_next, &windows, zone, at_us);
    print_change(windows_last, &windows, zone, at_us);
    printf("\n");
    return true;
}

int main(void)
{
    char line[MAX_LINE];

    while (fgets(line, sizeof(line), stdin)) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct timetable table = { 0 };
        struct error err = { 0 };
        char *fields[FIELDS];
        int64_t after_s;
        int64_t count;

        if (!split(line, fields) || !str_to_int64(fields[2], &after_s) ||
            !str_to_int64(fields[3], &count)) {
            fprintf(stderr, "a line that is no question\n");
            return EXIT_FAILURE;
        }
        table.anchor_us = after_s * US_PER_S;
        if (timezone_read(NULL, fields[1], arena, &table.zone) != TIMEZONE_KNOWN)
            printf("refused: unknown zone\n");
        else if (answer_windows(fields[0], table.zone, after_s))
            continue;
        else if (cron_parse(fields[0], &table.cron, &err) < 0)
            printf("refused: %s\n", err.message);
        else
            answer(&table, after_s, count);
    }
    return EXIT_SUCCESS;
}
