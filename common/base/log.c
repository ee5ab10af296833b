#include "common/base/log.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/str.h"

/* A line is cut at this length; pipes and collectors split longer ones. */
#define MAX_LINE ((size_t)16 << 10)
/* Kept free for the end of a cut line: a quote, the mark, the brace, the line feed. */
#define TAIL 32

#define MAX_FIELDS 8
#define MAX_FIELD_KEY 32
#define MAX_FIELD_VALUE 384 /* a namespace, a name and some more */

struct line {
    size_t len;
    bool cut; /* nothing more is added */
    char data[MAX_LINE];
};

struct field {
    char key[MAX_FIELD_KEY];
    char value[MAX_FIELD_VALUE];
};

static enum log_level min_level = LOG_INFO;
static enum log_format format = LOG_JSON;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct field thread_fields[MAX_FIELDS];
static _Thread_local size_t thread_field_count;

static const char *const LEVELS[] = { "trace", "debug", "info", "warn", "error" };
static const char *const TEXT_LEVELS[] = { "TRACE", "DEBUG", "INFO", "WARN", "ERROR" };

void log_configure(enum log_level level, enum log_format new_format)
{
    min_level = level;
    format = new_format;
}

bool log_level_parse(const char *name, enum log_level *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(LEVELS); i++) {
        if (str_equal(name, LEVELS[i])) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool log_enabled(enum log_level level)
{
    return level >= min_level;
}

const char *log_int(int64_t value, char ret[static 24])
{
    (void)snprintf(ret, 24, "%lld", (long long)value);
    return ret;
}

static void put(struct line *line, const char *bytes, size_t len)
{
    if (line->cut || line->len + len > MAX_LINE - TAIL) {
        line->cut = true;
        return;
    }
    memcpy(line->data + line->len, bytes, len);
    line->len += len;
}

static void put_string(struct line *line, const char *s)
{
    put(line, s, strlen(s));
}

/* The end of a line, for which there is always room. */
static void put_tail(struct line *line, const char *s)
{
    size_t len = strlen(s);

    assert(len <= MAX_LINE - line->len);
    memcpy(line->data + line->len, s, len);
    line->len += len;
}

/* One character, as it stands between the quotes of a JSON string; returns the bytes it took. */
static size_t put_char(struct line *line, const char *s, size_t len)
{
    static const char SHORT[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    size_t step = str_utf8_char(s, len);

    if (!step) {
        put_string(line, "\xef\xbf\xbd"); /* U+FFFD: not UTF-8 */
        return 1;
    }
    for (size_t i = 0; i + 1 < sizeof(SHORT) - 1; i += 2) {
        if (*s == SHORT[i]) {
            put(line, (const char[]){ '\\', SHORT[i + 1] }, 2);
            return 1;
        }
    }
    if ((unsigned char)*s < 0x20 || *s == 0x7f) {
        char escaped[8];

        (void)snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned)*s);
        put_string(line, escaped);
        return 1;
    }
    put(line, s, step);
    return step;
}

static void put_escaped(struct line *line, const char *s)
{
    size_t len = strlen(s);

    while (len && !line->cut) {
        size_t step = put_char(line, s, len);

        s += step;
        len -= step;
    }
}

/* A whole string with its quotes; closed even if it was cut. */
static void put_quoted(struct line *line, const char *s)
{
    if (line->cut)
        return;
    put_string(line, "\"");
    if (line->cut)
        return;
    put_escaped(line, s);
    put_tail(line, "\"");
}

/* The text format writes a value bare if a shell's reader would see it as one word. */
static bool is_plain(const char *s)
{
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s <= ' ' || *s == 0x7f || *s == '"' || *s == '\\' || *s == '=')
            return false;
    }
    return true;
}

/* Key and value, or nothing of both. */
static void put_field(struct line *line, const char *key, const char *value)
{
    size_t before = line->len;

    if (line->cut)
        return;
    if (format == LOG_JSON) {
        put_string(line, ",");
        put_quoted(line, key);
        put_string(line, ":");
    } else {
        put_string(line, " ");
        put_escaped(line, key);
        put_string(line, "=");
    }
    /* room for an empty value at least */
    if (line->cut || line->len + 2 > MAX_LINE - TAIL) {
        line->cut = true;
        line->len = before;
        return;
    }
    if (format == LOG_TEXT && is_plain(value))
        put_escaped(line, value);
    else
        put_quoted(line, value);
}

static void put_head(struct line *line, enum log_level level, const char *message)
{
    char time[RFC3339_LEN];

    (void)rfc3339_format_micro(clock_wall_us(&CLOCK_SYSTEM), time);
    if (format == LOG_JSON) {
        put_string(line, "{\"ts\":");
        put_quoted(line, time);
        put_string(line, ",\"level\":");
        put_quoted(line, LEVELS[level]);
        put_string(line, ",\"msg\":");
        put_quoted(line, message);
        return;
    }
    put_string(line, time);
    put_string(line, " ");
    put_string(line, TEXT_LEVELS[level]);
    put_string(line, " ");
    put_escaped(line, message);
}

/* Whoever reads stderr is gone or slow: the rest of the line is lost, not the process. */
static void write_line(const struct line *line)
{
    size_t done = 0;

    pthread_mutex_lock(&output);
    while (done < line->len) {
        ssize_t n = write(STDERR_FILENO, line->data + done, line->len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    pthread_mutex_unlock(&output);
}

void log_write(enum log_level level, const char *message, ...)
{
    if (!log_enabled(level))
        return;

    int saved_errno = errno;
    struct line line;
    line.len = 0;
    line.cut = false;
    put_head(&line, level, message);
    for (size_t i = 0; i < thread_field_count; i++)
        put_field(&line, thread_fields[i].key, thread_fields[i].value);

    va_list args;
    const char *key;

    va_start(args, message);
    while ((key = va_arg(args, const char *))) {
        const char *value = va_arg(args, const char *);

        if (value)
            put_field(&line, key, value);
    }
    va_end(args);

    if (format == LOG_JSON)
        put_tail(&line, line.cut ? ",\"cut\":\"true\"}\n" : "}\n");
    else
        put_tail(&line, line.cut ? " cut=true\n" : "\n");
    write_line(&line);
    errno = saved_errno;
}

static void copy_cut(char *ret, size_t size, const char *s)
{
    size_t len = str_utf8_cut(s, strlen(s), size - 1);

    memcpy(ret, s, len);
    ret[len] = '\0';
}

static struct field *thread_field(const char *key)
{
    for (size_t i = 0; i < thread_field_count; i++) {
        if (str_equal(thread_fields[i].key, key))
            return &thread_fields[i];
    }
    assert(thread_field_count < MAX_FIELDS); /* the keys are constants of this program */

    struct field *field = &thread_fields[thread_field_count++];
    copy_cut(field->key, sizeof(field->key), key);
    return field;
}

void log_fields_set(const char *key, ...)
{
    va_list args;

    va_start(args, key);
    for (; key; key = va_arg(args, const char *)) {
        const char *value = va_arg(args, const char *);

        if (value)
            copy_cut(thread_field(key)->value, MAX_FIELD_VALUE, value);
    }
    va_end(args);
}

void log_fields_clear(void)
{
    thread_field_count = 0;
}
