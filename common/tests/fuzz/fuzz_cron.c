/* cron_parse: what it accepts has a time to come, and no value that no clock shows. */
#include "common/api/timetable.h"
#include "common/tests/fuzz/target.h"

static void check(const struct cron *cron)
{
    const struct timetable table = { .cron = *cron };
    int64_t next_us;

    REQUIRE(timetable_next(&table, 0, &next_us) ? next_us > 0 : cron->every_ms > 0);
    if (cron->every_ms) {
        REQUIRE(cron->every_ms >= 1000 && cron->every_ms % 1000 == 0 && !cron->minutes);
        return;
    }
    REQUIRE(cron->minutes && cron->minutes >> 60 == 0);
    REQUIRE(cron->hours && cron->hours >> 24 == 0);
    REQUIRE(cron->days && (cron->days & 1) == 0);
    REQUIRE(cron->months && (cron->months & 1) == 0 && cron->months >> 13 == 0);
    REQUIRE(cron->weekdays && cron->weekdays >> 7 == 0);
    REQUIRE(!cron->any_day || cron->days == 0xfffffffe);
    REQUIRE(!cron->any_weekday || cron->weekdays == 0x7f);
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    char *text = calloc(1, len + 1);
    struct error err = { 0 };
    struct cron cron;

    REQUIRE(text);
    memcpy(text, bytes, len);
    if (cron_parse(text, &cron, &err) == 0)
        check(&cron);
    else
        REQUIRE(err.code == ERROR_INVALID && err.message[0]);
    free(text);
}
