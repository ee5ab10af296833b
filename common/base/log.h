/* Structured log lines on stderr: JSON or text, one line an entry, written whole. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_JSON, LOG_TEXT };

/* Called once, before any thread. Default: info, JSON. */
void log_configure(enum log_level level, enum log_format format);
bool log_level_parse(const char *name, enum log_level *ret); /* "trace" … "error" */
bool log_enabled(enum log_level level);

/*
 * A constant message and pairs of key and value (strings; a NULL value is left out), ended by NULL.
 * The fields of the thread (log_fields_set) come first. Any thread.
 */
void log_write(enum log_level level, const char *message, ...) NULL_TERMINATED;
#define log_trace(...) log_write(LOG_TRACE, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)

/* A number as a log value: "attempt", LOG_INT(attempt). Lives to the end of the full expression's
 * block. */
#define LOG_INT(value) log_int((value), (char[24]){ 0 })
const char *log_int(int64_t value, char ret[static 24]);

/* Pairs that every line of this thread carries from now on, besides those set before; copied (keys
 * up to 31 bytes, values up to 383). A key set again gets the new value. At most 8 keys;
 * log_fields_clear() ends them all. */
void log_fields_set(const char *key, ...) NULL_TERMINATED;
void log_fields_clear(void);
