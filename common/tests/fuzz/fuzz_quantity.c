/* quantity_parse: a sign changes nothing but the sign, ten times as much is not less. */
#include "common/api/quantity.h"
#include "common/tests/fuzz/target.h"

/* The text with a prefix; freed by the caller. */
static char *prefixed(const char *prefix, const uint8_t *bytes, size_t len)
{
    size_t start = strlen(prefix);
    char *text = calloc(1, start + len + 1);

    REQUIRE(text);
    memcpy(text, prefix, start);
    memcpy(text + start, bytes, len);
    return text;
}

static bool parse(const char *prefix, const uint8_t *bytes, size_t len, struct quantity *ret)
{
    char *text = prefixed(prefix, bytes, len);
    bool good = quantity_parse(text, ret);

    free(text);
    REQUIRE(!good || (ret->whole >= 0 && ret->nano >= 0 && ret->nano < 1000000000));
    return good;
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    struct quantity plain;
    struct quantity other;

    if (!parse("", bytes, len, &plain) || len == 0 || len + 1 > QUANTITY_MAX_TEXT)
        return;
    if (bytes[0] == '-' || bytes[0] == '+') {
        REQUIRE(!parse("-", bytes, len, &other));
        return;
    }
    REQUIRE(!plain.negative);
    REQUIRE(parse("-", bytes, len, &other));
    REQUIRE(other.whole == plain.whole && other.nano == plain.nano);
    REQUIRE(other.negative == (plain.whole || plain.nano));
    REQUIRE(parse("1", bytes, len, &other)); /* one digit more in front */
    REQUIRE(other.whole > plain.whole || other.whole == INT64_MAX ||
            (other.whole == plain.whole && other.nano >= plain.nano));
}
