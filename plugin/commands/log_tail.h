/*
 * This module finds what is new in a log that is read again and again.
 *
 * The API server has no stream that this program could end and resume without losing or repeating lines. So the log is
 * asked for with times, from the second of the last line on, and the lines that were there are left out. Pure.
 */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"

#define LOG_TIME_LEN 64

struct log_tail {
    char last[LOG_TIME_LEN]; /* the time of the newest line; "": there was none */
    size_t same;             /* lines with this time that were taken */
};

/* Returns the lines of the text that were not taken before, without their times, in the arena. Each line of the text
 * begins with a time as the kubelet writes it: RFC 3339 with nine digits, which are in order as text. */
const char *log_tail_take(struct log_tail *tail, struct arena *arena, const char *text);
/* Returns the second of the last line, for sinceTime, in the arena; NULL: there was no line. */
const char *log_tail_since(const struct log_tail *tail, struct arena *arena);
