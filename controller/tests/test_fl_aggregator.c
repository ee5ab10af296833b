#include <float.h>
#include <math.h>

#include "common/base/str.h"
#include "common/tests/suite.h"
#include "controller/federated/aggregator.h"

#define MAX_UPDATES 200

static struct arena *arena;
static struct error err;

/* Updates in memory, and how often each was read. */
struct world {
    struct fl_update updates[MAX_UPDATES];
    unsigned reads[MAX_UPDATES];
    size_t fails; /* index + 1 */
    size_t block_bytes;
    struct fl_source source;
    struct aggregator_settings settings;
};
static struct world world;

static int read_update(void *ctx, struct arena *into, size_t index, struct fl_update *ret,
                       struct error *error)
{
    struct world *self = ctx;

    if (self->fails == index + 1)
        return error_set(error, ERROR_UNAVAILABLE, "no connection");
    self->reads[index]++;
    *ret = self->updates[index];
    if (ret->values) { /* memory that is gone afterwards */
        double *copy = arena_array(into, double, ret->len);
        memcpy(copy, ret->values, ret->len * sizeof(*copy));
        ret->values = copy;
    }
    return 0;
}

static void set_up(void)
{
    json_init();
    arena = arena_create();
    err = (struct error){ 0 };
    world = (struct world){ .source = { .ctx = &world, .read = read_update } };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("all", set_up, tear_down);

static void algorithm(const char *name, const char *config)
{
    struct aggregator aggregator = { .algorithm = name };

    if (config)
        ck_assert_int_eq(json_parse(arena, config, strlen(config), &aggregator.config, &err), 0);
    aggregator_settings_read(arena, &aggregator, NULL, NULL, &world.settings);
}

static void add(const char *text, int64_t samples)
{
    struct fl_model model;

    ck_assert_int_eq(fl_model_parse(arena, text, strlen(text), &model, &err), 0);
    world.updates[world.source.len++] = (struct fl_update){
        .shape = model.shape,
        .values = model.values,
        .len = model.len,
        .num_samples = samples,
    };
}

static int aggregate(struct fl_model *ret, size_t *ret_culprit)
{
    const struct fl_aggregation aggregation = {
        .settings = &world.settings,
        .source = &world.source,
        .block_bytes = world.block_bytes,
        .shape = world.updates[0].shape,
    };

    return fl_aggregate(arena, &aggregation, ret, ret_culprit, &err);
}

static const char *result(void)
{
    struct fl_model model;
    size_t culprit;
    int r = aggregate(&model, &culprit);

    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert(culprit == FL_NOBODY);
    return arena_strndup(arena, model.bytes, model.bytes_len);
}

TEST(fedavg_is_the_mean_weighted_by_samples)
{
    algorithm("fedavg", NULL);
    add("{\"w\":[1,10],\"b\":-1}", 1);
    add("{\"w\":[2,20],\"b\":-2}", 3);
    ck_assert_str_eq(result(), "{\"b\":-1.75,\"w\":[1.75,17.5]}");
    ck_assert_uint_eq(world.reads[0], 1);
    ck_assert_uint_eq(world.reads[1], 1);
}

TEST(fedavg_loses_nothing_to_cancellation)
{
    algorithm("fedavg", NULL);
    add("[1e16]", 3);
    add("[1]", 3);
    add("[-1e16]", 3);
    ck_assert_str_eq(result(), "[0.3333333333333333]");
}

/* In binary 3 * 0.1 is not 0.3, and rounded it is neither. */
TEST(fedavg_rounds_no_product)
{
    algorithm("fedavg", NULL);
    add("[0.1]", 3);
    add("[-0.3]", 1);
    ck_assert_str_eq(result(), "[6.938893903907228e-18]");
}

TEST(fedavg_of_the_largest_numbers_is_finite)
{
    algorithm("fedavg", "{\"maxSamples\":1000000000000}");
    for (int i = 0; i < 3; i++)
        add("[1.7976931348623157e308,-1.7976931348623157e308,1e-250]", 999999999989);
    ck_assert_str_eq(result(), "[1.7976931348623157e+308,-1.7976931348623157e+308,1e-250]");
}

static const char *const ALGORITHMS[] = { "fedavg", "median", "trimmed-mean", "krum" };

TEST_EACH(one_participant_is_the_model_bit_by_bit, ALGORITHMS)
{
    algorithm(ALGORITHMS[_i], NULL);
    add("{\"a\":[0.1,0.3,1e-200,-123456.789],\"b\":7}", 999983);
    ck_assert_str_eq(result(), "{\"a\":[0.1,0.3,1e-200,-123456.789],\"b\":7}");
}

TEST_EACH(equal_updates_are_the_model_whatever_their_weights, ALGORITHMS)
{
    algorithm(ALGORITHMS[_i], NULL);
    for (int i = 0; i < 7; i++)
        add("[0.1,1e300,-3]", i + 1);
    ck_assert_str_eq(result(), "[0.1,1e+300,-3]");
}

TEST(the_median_is_the_middle_or_the_mean_of_the_two_there)
{
    algorithm("median", NULL);
    add("[1,5,1e308]", 100);
    add("[2,5,1e308]", 1);
    add("[9,-4,-1]", 1);
    ck_assert_str_eq(result(), "[2,5,1e+308]");
    add("[4,7,1e308]", 1);
    ck_assert_str_eq(result(), "[3,5,1e+308]");
}

TEST(the_trimmed_mean_leaves_out_both_ends)
{
    algorithm("trimmed-mean", "{\"trim\":0.2}");
    add("[1e300]", 1000);
    add("[1]", 1);
    add("[2]", 1);
    add("[6]", 1);
    ck_assert_str_eq(arena_printf(arena, "%.3s", result()), "[2."); /* 0.8 of one: nobody */
    add("[-1e300]", 1);
    ck_assert_str_eq(result(), "[3]");
}

TEST(a_share_that_is_whole_in_decimal_is_whole)
{
    algorithm("trimmed-mean", "{\"trim\":0.29}");
    for (int i = 0; i < 29; i++)
        add("[1e300]", 1);
    for (int i = 0; i < 71; i++)
        add("[5]", 1);
    ck_assert_str_eq(result(), "[5]");
}

TEST(krum_chooses_who_is_nearest_to_the_others_and_of_equals_the_first)
{
    algorithm("krum", "{\"byzantine\":1}");
    add("[100,100]", 1);
    add("[0,0]", 1);
    add("[1,0]", 1);
    add("[0,1]", 1);
    add("[1,1]", 1);
    ck_assert_str_eq(result(), "[0,0]");
    add("[0.5,0.5]", 1);
    ck_assert_str_eq(result(), "[0.5,0.5]");
}

TEST(krum_never_chooses_who_is_infinitely_far_away)
{
    algorithm("krum", NULL);
    add("[1.7e308,-1.7e308]", 1);
    add("[-1.7e308,1.7e308]", 1);
    for (int i = 0; i < 5; i++)
        add(arena_printf(arena, "[%d,0]", i), 1);
    ck_assert_str_eq(result(), "[1,0]"); /* as near to its three as [2,0] */
}

TEST(krum_of_two_is_the_first)
{
    algorithm("krum", "{\"byzantine\":10}");
    add("[2]", 1);
    add("[1]", 1);
    ck_assert_str_eq(result(), "[2]");
}

TEST(concat_puts_the_payloads_behind_one_another)
{
    struct fl_model model;
    size_t culprit;

    algorithm("concat", NULL);
    world.updates[0] = (struct fl_update){ .payload = "a\0b", .payload_len = 3 };
    world.updates[1] = (struct fl_update){ .payload = "", .payload_len = 0 };
    world.updates[2] = (struct fl_update){ .payload = "c", .payload_len = 1 };
    world.source.len = 3;
    ck_assert(fl_is_opaque(&world.settings));
    ck_assert_int_eq(aggregate(&model, &culprit), 0);
    ck_assert_uint_eq(model.bytes_len, 42);
    ck_assert_mem_eq(model.bytes, "a\0b\n---PROP-UPDATE---\n\n---PROP-UPDATE---\nc", 42);
    ck_assert_ptr_null(model.shape);
    ck_assert_str_eq(fl_model_format(&model), "concat");
}

TEST_EACH(who_has_another_shape_or_cannot_be_read_is_named, ALGORITHMS)
{
    struct fl_model model;
    size_t culprit = 7;

    algorithm(ALGORITHMS[_i], NULL);
    add("[1,2]", 1);
    add("[1,2]", 1);
    add("[1,2,3]", 1);
    ck_assert_int_eq(aggregate(&model, &culprit), -ERROR_INVALID);
    ck_assert_uint_eq(culprit, 2);
    ck_assert_str_eq(err.message, "update: has the shape [#3], must have [#2]");

    world.fails = 2;
    ck_assert_int_eq(aggregate(&model, &culprit), -ERROR_UNAVAILABLE);
    ck_assert_uint_eq(culprit, 1);
}

/* Several blocks, and a last one that is not full. */
#define LARGE_UPDATES 9
#define LARGE_LEN 1003
#define SMALL_BLOCK (LARGE_UPDATES * 100 * sizeof(double))

TEST_EACH(what_does_not_fit_into_a_block_is_read_again, ALGORITHMS)
{
    double *rows = arena_array(arena, double, LARGE_LEN *LARGE_UPDATES);
    const char *shape = arena_printf(arena, "[#%d]", LARGE_LEN);
    struct fl_model model;
    size_t culprit;

    algorithm(ALGORITHMS[_i], NULL);
    for (size_t p = 0; p < LARGE_UPDATES; p++) {
        double *row = rows + p * LARGE_LEN;
        for (size_t i = 0; i < LARGE_LEN; i++)
            row[i] = (double)i + (double)p - (LARGE_UPDATES - 1) / 2.0;
        world.updates[p] = (struct fl_update){ shape, row, LARGE_LEN, .num_samples = 3 };
    }
    world.source.len = LARGE_UPDATES;
    world.block_bytes = SMALL_BLOCK;
    ck_assert_msg(aggregate(&model, &culprit) == 0, "%s", err.message);
    ck_assert_uint_eq(model.len, LARGE_LEN);
    for (size_t i = 0; i < LARGE_LEN;
         i++) /* krum: the first with two of its four nearest on each side */
        ck_assert_double_eq(model.values[i], (double)i - (_i == 3 ? 2 : 0));
    ck_assert_uint_eq(world.reads[0], _i == 0 ? 1 : 11);
}

/* What every answer in another order would change if sums were kept as they come. */
TEST(the_result_is_the_correctly_rounded_mean_in_every_order)
{
    static const char *const VALUES[] = { "[0.1]",   "[1e17]", "[0.7]",
                                          "[-1e17]", "[3e-5]", "[12345.678]" };
    const char *first = NULL;

    for (size_t shift = 0; shift < ARRAY_LEN(VALUES); shift++) {
        world.source.len = 0;
        algorithm("fedavg", NULL);
        for (size_t i = 0; i < ARRAY_LEN(VALUES); i++)
            add(VALUES[(i + shift) % ARRAY_LEN(VALUES)], 1);
        const char *text = result();
        first = first ? first : text;
        ck_assert_str_eq(text, first);
    }
    ck_assert_str_eq(first, "[2057.7463383333334]");
}

static void note_problem(void *ctx, const char *field, const char *message UNUSED)
{
    const char **fields = ctx;

    *fields = arena_printf(arena, "%s %s", *fields, field);
}

TEST(settings_that_cannot_be_used_are_the_defaults_and_said)
{
    static const char CONFIG[] = "{\"maxSamples\":0,\"trim\":0.5,\"byzantine\":1.5,\"mu\":\"x\"}";
    struct aggregator aggregator = { .algorithm = "best" };
    struct aggregator_settings settings;
    const char *fields = "";

    ck_assert_int_eq(json_parse(arena, CONFIG, strlen(CONFIG), &aggregator.config, &err), 0);
    aggregator_settings_read(arena, &aggregator, note_problem, &fields, &settings);
    ck_assert_str_eq(fields, " algorithm config.maxSamples config.trim config.byzantine config.mu");
    ck_assert_int_eq(settings.algorithm, AGGREGATOR_FEDAVG);
    ck_assert_int_eq(settings.max_samples, AGGREGATOR_DEFAULT_MAX_SAMPLES);
    ck_assert_double_eq(settings.trim, AGGREGATOR_DEFAULT_TRIM);
    ck_assert_int_eq(settings.byzantine, -1);
    ck_assert_ptr_null(settings.proximal_mu);
}

TEST(settings_are_read_as_written)
{
    static const char CONFIG[] = "{\"maxSamples\":500,\"trim\":0,\"byzantine\":2,\"mu\":0.10}";
    struct aggregator aggregator = { .algorithm = "krum" };
    struct aggregator_settings settings;
    const char *fields = "";

    ck_assert_int_eq(json_parse(arena, CONFIG, strlen(CONFIG), &aggregator.config, &err), 0);
    aggregator_settings_read(arena, &aggregator, note_problem, &fields, &settings);
    ck_assert_str_eq(fields, "");
    ck_assert_int_eq(settings.algorithm, AGGREGATOR_KRUM);
    ck_assert_int_eq(settings.max_samples, 500);
    ck_assert_double_eq(settings.trim, 0);
    ck_assert_int_eq(settings.byzantine, 2);
    ck_assert_str_eq(settings.proximal_mu, "0.10");
}
