#include "common/tests/tzif.h"

#include <check.h>
#include <string.h>

#include "common/base/clock.h"

static void put(struct buf *buf, uint64_t value, size_t len)
{
    for (size_t i = len; i > 0; i--) {
        char byte = (char)(value >> (8 * (i - 1)) & 0xff);
        ck_assert(buf_append(buf, &byte, 1));
    }
}

/* isutcnt isstdcnt leapcnt timecnt typecnt charcnt */
static void put_header(struct buf *buf, size_t changes)
{
    static const char RESERVED[15];
    size_t types = changes + 1;

    ck_assert(buf_append(buf, "TZif2", 5) && buf_append(buf, RESERVED, sizeof(RESERVED)));
    put(buf, 0, 4);
    put(buf, 0, 4);
    put(buf, 0, 4);
    put(buf, changes, 4);
    put(buf, types, 4);
    put(buf, 1, 4);
}

void tzif_write(struct buf *ret, int32_t first_s, const struct tzif_change *changes, size_t len,
                const char *rule)
{
    put_header(ret, 0);
    put(ret, 0, 6 + 1); /* one type of offset 0, one character */
    put_header(ret, len);
    for (size_t i = 0; i < len; i++)
        put(ret, (uint64_t)changes[i].at_s, 8);
    for (size_t i = 0; i < len; i++)
        put(ret, i + 1, 1);
    for (size_t i = 0; i <= len; i++) {
        put(ret, (uint32_t)(i ? changes[i - 1].offset_s : first_s), 4);
        put(ret, 0, 2);
    }
    put(ret, 0, 1);
    ck_assert(buf_append(ret, "\n", 1) && buf_append(ret, rule, strlen(rule)) &&
              buf_append(ret, "\n", 1));
}

const struct zone *tzif_zone(struct arena *arena, const char *rule)
{
    CLEANUP(buf_releasep) struct buf bytes = BUF_INIT(ZONE_MAX_BYTES);
    static const struct tzif_change NONE[1];
    const struct zone *zone;
    struct error err = { 0 };

    tzif_write(&bytes, 0, NONE, 0, rule);
    ck_assert_msg(zone_parse(arena, bytes.data, bytes.len, &zone, &err) == 0, "%s: %s", rule,
                  err.message);
    return zone;
}

int64_t tzif_time_us(const char *text)
{
    int64_t us;

    ck_assert_msg(rfc3339_parse(text, &us), "%s", text);
    return us;
}
