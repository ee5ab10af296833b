/*
 * This module writes structured log lines, JSON or text, to standard error; an entry is one line.
 *
 * Values are strings, borrowed for the call. Any thread may log. Lines of several threads never
 * mix, so a call blocks while standard error does. A line that cannot be written is lost; no
 * function fails.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_JSON, LOG_TEXT };

/* Called at most once, before other threads exist. The default is info and JSON. */
void log_configure(enum log_level level, enum log_format format);
bool log_level_parse(const char *name, enum log_level *ret); /* "trace" … "error" */
bool log_enabled(enum log_level level);

/*
 * Takes a constant message, and pairs of key and value that NULL ends. A pair whose value is NULL
 * is omitted. The fields of the thread (log_fields_set) come first.
 */
void log_write(enum log_level level, const char *message, ...) NULL_TERMINATED;
#define log_trace(...) log_write(LOG_TRACE, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)

/* Makes a log value of a number: "attempt", LOG_INT(attempt). It lives until the end of the
 * block. */
#define LOG_INT(value) log_int((value), (char[24]){ 0 })
const char *log_int(int64_t value, char ret[static 24]);

/* Adds pairs to every further line of this thread. They are copied (keys up to 31 bytes, values up
 * to 383). A key that is set again gets the new value. A thread has at most 8 keys;
 * log_fields_clear removes them all. */
void log_fields_set(const char *key, ...) NULL_TERMINATED;
void log_fields_clear(void);
