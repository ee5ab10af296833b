#include "common/api/quantity.h"

#include "common/base/str.h"

#define NANO 1000000000
/* Digits behind the point that count: enough for the largest unit, 2^60. */
#define FRACTION_DIGITS 18
#define FRACTION_UNIT 1000000000000000000 /* 10^18 */
/* Larger exponents say nothing else: everything is zero or too large by then. */
#define MAX_EXPONENT 1000

__extension__ typedef unsigned __int128 wide;

struct unit {
    const char *name;
    int exponent; /* of ten */
    int shift;    /* exponent of two */
};

static const struct unit UNITS[] = {
    { "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
    { "k", 3, 0 },   { "M", 6, 0 },   { "G", 9, 0 },   { "T", 12, 0 },
    { "P", 15, 0 },  { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
    { "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
};

/* The digits of a number without its sign, and how many of them are before the point. */
struct number {
    uint8_t digits[QUANTITY_MAX_TEXT];
    int len;
    int point;
};

static const char *take_digits(const char *at, struct number *number)
{
    for (; *at >= '0' && *at <= '9'; at++)
        number->digits[number->len++] = (uint8_t)(*at - '0');
    return at;
}

/* Exponents like "e3" and "E-3", or one of UNITS. */
static bool parse_unit(const char *text, struct unit *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++) {
        if (str_equal(UNITS[i].name, text)) {
            *ret = UNITS[i];
            return true;
        }
    }
    if (*text != 'e' && *text != 'E')
        return false;

    int64_t exponent;
    const char *digits = text + 1 + (text[1] == '+');

    if ((text[1] == '+' && text[2] == '-') || !str_to_int64(digits, &exponent))
        return false;
    if (exponent > MAX_EXPONENT)
        exponent = MAX_EXPONENT;
    if (exponent < -MAX_EXPONENT)
        exponent = -MAX_EXPONENT;
    *ret = (struct unit){ .exponent = (int)exponent };
    return true;
}

static uint8_t digit_at(const struct number *number, int position)
{
    return position >= 0 && position < number->len ? number->digits[position] : 0;
}

static int64_t whole_part(const struct number *number)
{
    int64_t whole = 0;

    for (int i = 0; i < number->point; i++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, digit_at(number, i), &whole))
            return INT64_MAX;
    }
    return whole;
}

static int64_t fraction_part(const struct number *number, bool *ret_more)
{
    int64_t fraction = 0;

    for (int i = 0; i < FRACTION_DIGITS; i++)
        fraction = fraction * 10 + digit_at(number, number->point + i);
    *ret_more = false;
    for (int i = number->point + FRACTION_DIGITS; i < number->len; i++)
        *ret_more = *ret_more || digit_at(number, i) != 0;
    return fraction;
}

static struct quantity scale(const struct number *number, int shift)
{
    bool more;
    wide fraction = (wide)fraction_part(number, &more) << shift;
    wide whole = ((wide)whole_part(number) << shift) + fraction / FRACTION_UNIT;
    uint64_t rest = (uint64_t)(fraction % FRACTION_UNIT);
    uint64_t nano = rest / NANO + (rest % NANO || more ? 1 : 0);

    whole += nano / NANO;
    if (whole >= INT64_MAX)
        return (struct quantity){ .whole = INT64_MAX };
    return (struct quantity){ .whole = (int64_t)whole, .nano = (int32_t)(nano % NANO) };
}

bool quantity_parse(const char *text, struct quantity *ret)
{
    struct number number = { .len = 0 };
    bool negative = *text == '-';
    struct unit unit;

    if (strnlen(text, QUANTITY_MAX_TEXT + 1) > QUANTITY_MAX_TEXT)
        return false;

    const char *at = take_digits(text + (*text == '-' || *text == '+'), &number);
    number.point = number.len;
    if (*at == '.')
        at = take_digits(at + 1, &number);
    if (!number.len || !parse_unit(at, &unit))
        return false;

    number.point += unit.exponent;
    *ret = scale(&number, unit.shift);
    ret->negative = negative && (ret->whole || ret->nano);
    return true;
}

bool quantity_of(const cJSON *value, struct quantity *ret)
{
    const char *text = json_string(value, NULL);

    if (text)
        return quantity_parse(text, ret);

    int64_t number = json_int(value, 0);

    if (number != json_int(value, 1))
        return false;
    *ret = (struct quantity){ .negative = number < 0,
                              .whole = number < -INT64_MAX ? INT64_MAX
                                       : number < 0        ? -number
                                                           : number };
    return true;
}
