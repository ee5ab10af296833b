/* For schedules.py: a line "expression <tab> zone <tab> after <tab> count" on stdin is answered by a
 * line with that many next times, all in seconds since 1970, or "refused: why". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/timetable.h"
#include "common/api/timezone.h"
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
        if (cron_parse(fields[0], &table.cron, &err) < 0)
            printf("refused: %s\n", err.message);
        else if (timezone_read(NULL, fields[1], arena, &table.zone) != TIMEZONE_KNOWN)
            printf("refused: unknown zone\n");
        else
            answer(&table, after_s, count);
    }
    return EXIT_SUCCESS;
}
