#include "standalone/schema/times.h"

#include <stdint.h>
#include <string.h>

#include "common/base/civil.h"
#include "common/base/clock.h"
#include "common/base/compiler.h"

#define DAY_S 86400
#define YEARS 9999
/* Of what was sent, in a message. */
#define MAX_QUOTED 200

enum part_type { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, FRACTION, OFFSET, PARTS };

/* Of a layout of Go: what stands before it, and what it is called in errors. */
struct part {
    enum part_type type;
    const char *before;
    const char *name;
    const char *range; /* of a number that is too large: "month", as errors say it */
    bool short_too;    /* one digit will do */
    int least, most;
};

static const struct part LAYOUT[] = {
    { .type = YEAR, .before = "", .name = "2006" },
    { MONTH, "-", "01", "month", false, 1, 12 },
    { .type = DAY,
      .before = "-",
      .name = "02" }, /* its range is that of the month, which comes last */
    { HOUR, "T", "15", "hour", true, 0, 23 },
    { MINUTE, ":", "04", "minute", false, 0, 59 },
    { SECOND, ":", "05", "second", false, 0, 59 },
    { .type = FRACTION, .before = "", .name = ".000000" },
    { .type = OFFSET, .before = "", .name = "Z07:00" },
};

struct reader {
    const char *text;
    bool micro;
    const char *at;
    int values[PARTS]; /* of OFFSET: seconds; of FRACTION: microseconds */
    struct error *err;
};

/* As Go's package time does it, which knows nothing of characters that can be printed. */
static const char *quoted(const char *text, char ret[static 4 * MAX_QUOTED + 3])
{
    static const char HEX[] = "0123456789abcdef";
    char *to = ret;

    *to++ = '"';
    for (size_t i = 0; i < MAX_QUOTED && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= ' ' && c < 0x80) {
            if (c == '"' || c == '\\')
                *to++ = '\\';
            *to++ = (char)c;
            continue;
        }
        *to++ = '\\';
        *to++ = 'x';
        *to++ = HEX[c >> 4];
        *to++ = HEX[c & 15];
    }
    *to++ = '"';
    *to = '\0';
    return ret;
}

static int refuse_part(const struct reader *reader, const char *at, const char *name)
{
    char text[4 * MAX_QUOTED + 3], rest[4 * MAX_QUOTED + 3];

    return error_set(
        reader->err, ERROR_INVALID,
        "parsing time %s as \"2006-01-02T15:04:05%sZ07:00\": cannot parse %s as \"%s\"",
        quoted(reader->text, text), reader->micro ? ".000000" : "", quoted(at, rest), name);
}

static int refuse_range(const struct reader *reader, const char *what)
{
    char text[4 * MAX_QUOTED + 3];

    return error_set(reader->err, ERROR_INVALID, "parsing time %s: %s out of range",
                     quoted(reader->text, text), what);
}

static size_t digits_at(const char *at, size_t max)
{
    size_t len = 0;

    while (len < max && at[len] >= '0' && at[len] <= '9')
        len++;
    return len;
}

static int number_at(const char *at, size_t len)
{
    int value = 0;

    for (size_t i = 0; i < len; i++)
        value = value * 10 + (at[i] - '0');
    return value;
}

static bool is_fraction(const char *at)
{
    return (at[0] == '.' || at[0] == ',') && digits_at(at + 1, 1);
}

/* Of MicroTime six digits are wanted; else any number of them is skipped. */
static int read_fraction(struct reader *reader, const struct part *part)
{
    if (!reader->micro) {
        if (is_fraction(reader->at))
            reader->at += 1 + digits_at(reader->at + 1, SIZE_MAX);
        return 0;
    }
    if (!is_fraction(reader->at) || digits_at(reader->at + 1, 6) != 6)
        return refuse_part(reader, reader->at, part->name);
    reader->values[FRACTION] = number_at(reader->at + 1, 6);
    reader->at += 7;
    return 0;
}

/* Sometimes people write offsets of 24 hours or 60 minutes, which Go allows for. */
static int read_offset(struct reader *reader, const struct part *part)
{
    const char *at = reader->at;

    if (*at == 'Z') {
        reader->at++;
        return 0;
    }
    if (strlen(at) < 6 || at[3] != ':')
        return refuse_part(reader, at, part->name);

    bool hours = digits_at(at + 1, 2) == 2, minutes = digits_at(at + 4, 2) == 2;

    /* a minute is read after the hour, and a number that is too large told before all else */
    if (hours && minutes && number_at(at + 4, 2) > 60)
        return refuse_range(reader, "time zone offset minute");
    if (hours && number_at(at + 1, 2) > 24)
        return refuse_range(reader, "time zone offset hour");
    if (!hours || !minutes || (*at != '+' && *at != '-'))
        return refuse_part(reader, at, part->name);
    reader->values[OFFSET] = (number_at(at + 1, 2) * 60 + number_at(at + 4, 2)) * 60;
    if (*at == '-')
        reader->values[OFFSET] = -reader->values[OFFSET];
    reader->at += 6;
    return 0;
}

static int read_number(struct reader *reader, const struct part *part)
{
    size_t wanted = part->type == YEAR ? 4 : 2, len = digits_at(reader->at, wanted);

    if (len < wanted && !(part->short_too && len))
        return refuse_part(reader, reader->at, part->name);
    reader->values[part->type] = number_at(reader->at, len);
    if (part->range &&
        (reader->values[part->type] < part->least || reader->values[part->type] > part->most))
        return refuse_range(reader, part->range);
    reader->at += len;
    return 0;
}

static int read_part(struct reader *reader, const struct part *part)
{
    if (*part->before && *reader->at != *part->before)
        return refuse_part(reader, reader->at, part->before);
    if (*part->before)
        reader->at++;
    if (part->type == FRACTION)
        return read_fraction(reader, part);
    return part->type == OFFSET ? read_offset(reader, part) : read_number(reader, part);
}

static int read_time(struct reader *reader)
{
    for (size_t i = 0; i < ARRAY_LEN(LAYOUT); i++) {
        int r = read_part(reader, &LAYOUT[i]);
        if (r < 0)
            return r;
    }
    if (*reader->at) {
        char text[4 * MAX_QUOTED + 3], rest[4 * MAX_QUOTED + 3];

        return error_set(reader->err, ERROR_INVALID, "parsing time %s: extra text: %s",
                         quoted(reader->text, text), quoted(reader->at, rest));
    }
    if (reader->values[DAY] < 1 ||
        reader->values[DAY] > civil_month_length(reader->values[YEAR], reader->values[MONTH]))
        return refuse_range(reader, "day");
    return 0;
}

int time_rewrite(struct arena *arena, const char *text, bool micro, const char **ret,
                 struct error *err)
{
    struct reader reader = { .text = text, .micro = micro, .at = text, .err = err };
    const int *values = reader.values;
    char *written = arena_alloc(arena, RFC3339_LEN, 1);

    int r = read_time(&reader);
    if (r < 0)
        return r;

    int64_t seconds = civil_days(values[YEAR], values[MONTH], values[DAY]) * DAY_S +
                      (values[HOUR] * 60 + values[MINUTE]) * 60 + values[SECOND] - values[OFFSET];

    if (seconds < civil_days(0, 1, 1) * DAY_S || seconds >= civil_days(YEARS + 1, 1, 1) * DAY_S)
        return refuse_range(&reader, "year");
    *ret = "";
    if (seconds != civil_days(1, 1, 1) * DAY_S || values[FRACTION])
        *ret = (micro ? rfc3339_format_micro : rfc3339_format)(seconds * 1000000 + values[FRACTION],
                                                               written);
    return 0;
}
