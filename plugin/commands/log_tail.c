#include "plugin/commands/log_tail.h"

#include <stdbool.h>
#include <string.h>

/* The length of the time at the beginning of a line; 0: there is none, as in a line that was cut. */
static size_t time_len(const char *line, size_t len)
{
    const char *blank = memchr(line, ' ', len);
    size_t ret = blank ? (size_t)(blank - line) : len;

    return ret < LOG_TIME_LEN && memchr(line, 'T', ret) ? ret : 0;
}

/* Whether the line is a new one; `same` counts those of the call that have the time of the last call's newest. */
static bool is_new(struct log_tail *tail, const char *time, size_t *same, bool *is_later)
{
    int order = strcmp(time, tail->last);

    if (order > 0) {
        (void)memcpy(tail->last, time, strlen(time) + 1);
        tail->same = 1;
        *is_later = true;
        return true;
    }
    if (order < 0)
        return false;
    if (!*is_later && ++*same <= tail->same)
        return false;
    tail->same++;
    return true;
}

const char *log_tail_take(struct log_tail *tail, struct arena *arena, const char *text)
{
    char *ret = arena_strdup(arena, text), *to = ret;
    bool is_later = false;
    size_t same = 0;

    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        size_t whole = len + (line[len] == '\n');
        size_t time = time_len(line, len);
        size_t skip = time + (time < len && line[time] == ' ');
        const char *at = arena_strndup(arena, line, time);

        if (!time || is_new(tail, at, &same, &is_later)) {
            (void)memmove(to, line + skip, whole - skip);
            to += whole - skip;
        }
        line += whole;
    }
    *to = '\0';
    return ret;
}

const char *log_tail_since(const struct log_tail *tail, struct arena *arena)
{
    const char *dot = strchr(tail->last, '.');
    const char *zone = dot ? dot + 1 + strspn(dot + 1, "0123456789") : "";

    if (!*tail->last)
        return NULL;
    return dot ? arena_printf(arena, "%.*s%s", (int)(dot - tail->last), tail->last, zone)
               : arena_strdup(arena, tail->last);
}
