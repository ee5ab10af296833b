#include "common/api/cron.h"

#include <string.h>
#include <strings.h>

#include "common/base/str.h"

#define FIELDS 5
enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY };

static const char *const MONTHS[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul",
                                      "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const WEEKDAYS[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL };

static const struct field {
    const char *name;
    int min;
    int max;
    const char *const *names; /* of min and what follows; NULL: none */
} FIELD[FIELDS] = {
    [MINUTE] = { "minute", 0, 59, NULL },
    [HOUR] = { "hour", 0, 23, NULL },
    [DAY] = { "day of the month", 1, 31, NULL },
    [MONTH] = { "month", 1, 12, MONTHS },
    [WEEKDAY] = { "day of the week", 0, 7, WEEKDAYS },
};

static const struct {
    const char *name;
    const char *text;
} ALIASES[] = {
    { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
    { "@weekly", "0 0 * * 0" }, { "@daily", "0 0 * * *" },    { "@midnight", "0 0 * * *" },
    { "@hourly", "0 * * * *" },
};

struct parser {
    const struct field *field;
    const char *text; /* of the field, for messages */
    int len;
    const char *at;
    struct error *err;
};

/* What one field says. */
struct values {
    uint64_t bits;
    bool any; /* * or ?, without steps */
};

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int refuse(const struct parser *parser, const char *problem)
{
    return error_set(parser->err, ERROR_INVALID, "%s '%.*s' %s", parser->field->name, parser->len,
                     parser->text, problem);
}

/* A decimal number below 1000, which is more than any field takes. */
static bool take_number(const char **at, int *ret)
{
    const char *start = *at;
    int number = 0;

    while (**at >= '0' && **at <= '9' && number < 1000)
        number = number * 10 + *(*at)++ - '0';
    *ret = number;
    return *at > start && number < 1000;
}

static bool take_name(struct parser *parser, int *ret)
{
    const char *const *names = parser->field->names;

    for (int i = 0; names && names[i]; i++) {
        size_t len = strlen(names[i]);

        if (strncasecmp(parser->at, names[i], len) == 0) {
            parser->at += len;
            *ret = parser->field->min + i;
            return true;
        }
    }
    return false;
}

static int take_value(struct parser *parser, int *ret)
{
    if (!take_name(parser, ret) && !take_number(&parser->at, ret))
        return refuse(parser, "has no value that can be read");
    if (*ret < parser->field->min || *ret > parser->field->max)
        return error_set(parser->err, ERROR_INVALID, "%s '%.*s' must be between %d and %d",
                         parser->field->name, parser->len, parser->text, parser->field->min,
                         parser->field->max);
    return 0;
}

/* The last value that is not another name of the first. */
static int end_of(const struct field *field)
{
    return field == &FIELD[WEEKDAY] ? 6 : field->max;
}

/* "*", "5", "5-10"; *ret_open: a step goes on to the end of the field's values. */
static int take_range(struct parser *parser, int *ret_first, int *ret_last, bool *ret_open)
{
    if (*parser->at == '*' || *parser->at == '?') {
        parser->at++;
        *ret_first = parser->field->min;
        *ret_last = end_of(parser->field);
        *ret_open = true;
        return 0;
    }

    int r = take_value(parser, ret_first);
    if (r < 0)
        return r;

    *ret_last = *ret_first;
    *ret_open = *parser->at != '-';
    if (*ret_open)
        return 0;
    parser->at++;
    r = take_value(parser, ret_last);
    if (r < 0)
        return r;
    return *ret_last < *ret_first ? refuse(parser, "has a range that ends before it begins") : 0;
}

/* One element of the list. */
static int take_element(struct parser *parser, struct values *values)
{
    bool any = *parser->at == '*' || *parser->at == '?';
    int step = 1;
    int first;
    int last;
    bool open;

    int r = take_range(parser, &first, &last, &open);
    if (r < 0)
        return r;

    if (*parser->at == '/') {
        parser->at++;
        if (!take_number(&parser->at, &step) || step == 0)
            return refuse(parser, "has no step above 0");
        if (open && !any && first < end_of(parser->field))
            last = end_of(parser->field);
    }
    for (int value = first; value <= last; value += step)
        values->bits |= (uint64_t)1 << value;
    values->any = values->any || (any && step == 1);
    return 0;
}

static int parse_field(struct parser *parser, struct values *ret)
{
    *ret = (struct values){ 0 };
    for (;;) {
        int r = take_element(parser, ret);
        if (r < 0)
            return r;
        if (parser->at == parser->text + parser->len)
            return 0;
        if (*parser->at++ != ',')
            return refuse(parser, "has something that is no value, range or step");
    }
}

static bool has_a_date(const struct cron *cron)
{
    static const int LENGTHS[] = { 0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    if (!cron->any_day && !cron->any_weekday)
        return true; /* a day of the week is enough */
    for (int month = 1; month <= 12; month++) {
        uint32_t exist = (uint32_t)(((uint64_t)2 << LENGTHS[month]) - 1);

        if (cron->months >> month & 1 && cron->days & exist)
            return true;
    }
    return false;
}

static int parse_fields(const char *text, struct cron *ret, struct error *err)
{
    struct values values[FIELDS];
    const char *at = text;
    int count = 0;

    for (;; count++) {
        while (is_blank(*at))
            at++;
        if (!*at || count == FIELDS)
            break;

        struct parser parser = { .field = &FIELD[count], .text = at, .at = at, .err = err };
        while (at[parser.len] && !is_blank(at[parser.len]))
            parser.len++;
        int r = parse_field(&parser, &values[count]);
        if (r < 0)
            return r;
        at += parser.len;
    }
    if (count < FIELDS || *at)
        return error_set(err, ERROR_INVALID,
                         "must have five fields: minute, hour, day, month, day of the week");

    uint32_t weekdays = (uint32_t)values[WEEKDAY].bits;
    struct cron cron = { .minutes = values[MINUTE].bits,
                         .hours = (uint32_t)values[HOUR].bits,
                         .days = (uint32_t)values[DAY].bits,
                         .months = (uint32_t)values[MONTH].bits,
                         .weekdays = (weekdays | weekdays >> 7) & 0x7f,
                         .any_day = values[DAY].any,
                         .any_weekday = values[WEEKDAY].any };

    if (!has_a_date(&cron))
        return error_set(err, ERROR_INVALID, "never comes: none of its months has such a day");
    *ret = cron;
    return 0;
}

static int parse_every(const char *text, struct cron *ret, struct error *err)
{
    int64_t ms;

    while (is_blank(*text))
        text++;
    if (!str_to_duration_ms(text, &ms))
        return error_set(err, ERROR_INVALID, "'@every' needs a duration, for example @every 1h30m");
    *ret = (struct cron){ .every_ms = ms < 1000 ? 1000 : ms - ms % 1000 };
    return 0;
}

int cron_parse(const char *text, struct cron *ret, struct error *err)
{
    if (strnlen(text, CRON_MAX_TEXT + 1) > CRON_MAX_TEXT)
        return error_set(err, ERROR_INVALID, "must not be longer than %d bytes", CRON_MAX_TEXT);
    if (strncmp(text, "TZ=", 3) == 0 || strncmp(text, "CRON_TZ=", 8) == 0)
        return error_set(err, ERROR_INVALID, "must not name a time zone, which is set by timezone");
    if (strncmp(text, "@every", 6) == 0 && is_blank(text[6]))
        return parse_every(text + 6, ret, err);
    if (*text != '@')
        return parse_fields(text, ret, err);
    for (size_t i = 0; i < ARRAY_LEN(ALIASES); i++) {
        if (str_equal(ALIASES[i].name, text))
            return parse_fields(ALIASES[i].text, ret, err);
    }
    return error_set(err, ERROR_INVALID, "'%s' is no name of a schedule, for example @hourly",
                     text);
}
