#include "common/tests/suite.h"
#include "controller/device/trend.h"

#define STEP_US (TREND_STEP_S * INT64_C(1000000))
#define NOW_US (INT64_C(59842000) * STEP_US)

static struct arena *arena;
static struct trend trend;

static void set_up(void)
{
    arena = arena_create();
    trend = (struct trend){ 0 };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("trend", set_up, tear_down);

static void add(int64_t step, int64_t cpu, int64_t memory)
{
    const struct sample sample = { .cpu_milli_percent = cpu, .memory_milli_percent = memory };

    trend_add(&trend, &sample, NOW_US + step * STEP_US + 1);
}

/* The numbers of `name` from the half minute `first` of the twenty on. */
static void expect(int64_t step, const char *name, size_t first, const char *numbers)
{
    cJSON *holder = json_object(arena), *tail = json_array(arena);

    trend_show(&trend, NOW_US + step * STEP_US, holder);
    const cJSON *all = json_path(holder, "load", name, NULL);
    ck_assert_uint_eq(json_len(all), TREND_LEN);
    for (size_t i = 0; i < TREND_LEN; i++) {
        const cJSON *value = cJSON_GetArrayItem(all, (int)i);

        if (i < first)
            ck_assert(cJSON_IsNull(value));
        else
            cJSON_AddItemToArray(tail, json_copy(value));
    }
    ck_assert_str_eq(json_text(arena, tail, NULL), numbers);
}

TEST(each_half_minute_has_its_last_sample_and_a_hole_is_null)
{
    add(0, 10999, 500);
    add(0, 20000, -1);
    add(3, 99000, 40000);
    expect(3, "cpu", 16, "[20,null,null,99]");
    expect(3, "memory", 19, "[40]");
    expect(4, "cpu", 15, "[20,null,null,99,null]");
}

TEST(ten_minutes_later_the_half_minute_has_gone)
{
    for (int64_t i = 0; i <= TREND_LEN; i++)
        add(i, i * 1000, -1);
    expect(TREND_LEN, "cpu", 0, "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]");
    add(TREND_LEN + 2, 22000, -1);
    expect(TREND_LEN + 2, "cpu", 0, "[3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,null,22]");
}

TEST(silence_of_ten_minutes_shows_nothing)
{
    cJSON *holder = json_object(arena);

    trend_show(&trend, NOW_US, holder);
    ck_assert_uint_eq(json_len(holder), 0);
    add(0, 1000, 1000);
    trend_show(&trend, NOW_US + TREND_LEN * STEP_US, holder);
    ck_assert_uint_eq(json_len(holder), 0);
    add(TREND_LEN, 7000, 1000);
    expect(TREND_LEN, "cpu", 19, "[7]");
}

TEST(a_clock_that_goes_back_a_little_keeps_the_last_half_minute)
{
    add(0, 1000, -1);
    add(1, 2000, -1);
    add(0, 3000, -1);
    expect(0, "cpu", 18, "[1,3]");
}

TEST(a_clock_that_goes_back_by_a_year_begins_anew)
{
    add(1051200, 2000, -1);
    add(0, 3000, -1);
    expect(0, "cpu", 19, "[3]");
}

TEST(a_share_beyond_all_sense_has_a_limit)
{
    add(0, SAMPLE_MAX_PERCENT * INT64_C(1000), 0);
    expect(0, "cpu", 19, "[250]");
    expect(0, "memory", 19, "[0]");
}
