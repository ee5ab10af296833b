#include "controller/federated/aggregator.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/json/numbers.h"

struct fl_round {
    const struct fl_aggregation *aggregation;
    size_t len;      /* parameters */
    size_t *culprit; /* see fl_aggregate */
};

/* The source's update, of the right shape. */
static int fl_round_read(struct fl_round *round, struct arena *arena, size_t index,
                         struct fl_update *ret, struct error *err)
{
    const struct fl_source *source = round->aggregation->source;

    *round->culprit = index;

    int r = source->read(source->ctx, arena, index, ret, err);
    if (r < 0)
        return r;
    if (round->aggregation->shape) {
        assert(ret->shape && ret->values);
        r = fl_shape_check(round->aggregation->shape, ret->shape, err);
        if (r < 0)
            return error_wrap(err, "update");
    }
    *round->culprit = FL_NOBODY;
    return 0;
}

/* ret: round->len values. */
typedef int fl_mean_fn(struct fl_round *round, double *ret, struct error *err);

/*
 * The same parameters of all updates at once, as many as FL_BLOCK_BYTES hold, from the first block to
 * the last. values[p * stride + c]: of update p the parameter first + c.
 */
struct fl_block {
    const double *values;
    size_t stride;
    size_t first;
    size_t len;
};
typedef void fl_block_fn(void *ctx, const struct fl_block *block);

/* A sum in twice double precision: Dekker (1971), Knuth (TAOCP 2, 4.2.2); Ogita, Rump, Oishi, Accurate
 * Sum and Dot Product, SIAM J. Sci. Comput. 26 (2005). No reordering, so no -ffast-math. */
struct fl_sum {
    double high;
    double low;
};

static void fl_sum_add(struct fl_sum *sum, double value)
{
    double high = sum->high + value;
    double part = high - sum->high;

    sum->low += (sum->high - (high - part)) + (value - part);
    sum->high = high;
}

/* The sum over by. A mean is no larger than the largest of its values, so what rounding would make
 * infinite is the largest double. */
static double fl_sum_divide(struct fl_sum sum, double by)
{
    double quotient = sum.high / by;
    double rest = fma(-quotient, by, sum.high) + sum.low;
    double result = quotient + rest / by;

    return isfinite(result) ? result : copysign(DBL_MAX, sum.high);
}

static int read_part(struct fl_round *round, size_t index, const struct fl_block *block,
                     double *values, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct fl_update update;
    int r = fl_round_read(round, arena, index, &update, err);

    if (r < 0)
        return r;
    memcpy(values, update.values + block->first, block->len * sizeof(*values));
    return 0;
}

static int fl_blocks_walk(struct fl_round *round, fl_block_fn *function, void *ctx,
                          struct error *err)
{
    size_t updates = round->aggregation->source->len;
    size_t bytes =
        round->aggregation->block_bytes ? round->aggregation->block_bytes : FL_BLOCK_BYTES;
    size_t fit = bytes / sizeof(double) / updates;
    size_t most = fit ? fit : 1;
    size_t stride = most < round->len ? most : round->len;
    double *values = xcalloc(updates * stride, sizeof(*values));
    int r = 0;

    for (size_t first = 0; r == 0 && first < round->len; first += stride) {
        size_t left = round->len - first;
        struct fl_block block = {
            .values = values,
            .stride = stride,
            .first = first,
            .len = left < stride ? left : stride,
        };

        for (size_t i = 0; r == 0 && i < updates; i++)
            r = read_part(round, i, &block, values + i * stride, err);
        if (r == 0)
            function(ctx, &block);
    }
    free(values);
    return r;
}

/* A power of two over all weights together, FL_MAX_PARTICIPANTS * AGGREGATOR_MAX_SAMPLES: divided by
 * it, which is exact, the weights cannot make a sum overflow. */
#define SCALE 0x1p-50
_Static_assert(AGGREGATOR_MAX_SAMPLES <= (INT64_C(1) << 50) / FL_MAX_PARTICIPANTS, "scale");

/* What is added is the exact product: its rounded value, and the error of that (Veltkamp, Dekker;
 * here by one fused operation). */
static void add(struct fl_sum *sums, const struct fl_update *update, double weight)
{
    for (size_t i = 0; i < update->len; i++) {
        double product = weight * update->values[i];

        fl_sum_add(&sums[i], product);
        sums[i].low += fma(weight, update->values[i], -product);
    }
}

static int add_update(struct fl_round *round, size_t index, struct fl_sum *sums, double *total,
                      struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct fl_update update;
    int r = fl_round_read(round, arena, index, &update, err);

    if (r < 0)
        return r;

    double weight = fl_update_weight(&update) * SCALE;
    add(sums, &update, weight);
    *total += weight;
    return 0;
}

static int fl_fedavg(struct fl_round *round, double *ret, struct error *err)
{
    struct fl_sum *sums = xcalloc(round->len, sizeof(*sums));
    double total = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < round->aggregation->source->len; i++)
        r = add_update(round, i, sums, &total, err);
    for (size_t i = 0; r == 0 && i < round->len; i++)
        ret[i] = fl_sum_divide(sums[i], total);
    free(sums);
    return r;
}

/* 0.29 of 100 is 29, though not in binary. */
#define ROUNDING 1e-9

struct columns {
    double *ret;
    size_t updates;
    size_t trim; /* not counted at each end */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Divided before they are added: none of the sums is larger than the largest of them. */
static double mean(const double *values, size_t len)
{
    struct fl_sum sum = { 0 };
    double scale = 1;

    while (scale * (double)len > 1) /* a power of two: exact */
        scale /= 2;
    for (size_t i = 0; i < len; i++)
        fl_sum_add(&sum, values[i] * scale);
    return fl_sum_divide(sum, (double)len * scale);
}

static void trimmed_take_block(void *ctx, const struct fl_block *block)
{
    const struct columns *columns = ctx;
    double column[FL_MAX_PARTICIPANTS];

    assert(columns->updates <= FL_MAX_PARTICIPANTS);
    for (size_t c = 0; c < block->len; c++) {
        for (size_t p = 0; p < columns->updates; p++)
            column[p] = block->values[p * block->stride + c];
        qsort(column, columns->updates, sizeof(*column), by_value);
        columns->ret[block->first + c] =
            mean(column + columns->trim, columns->updates - 2 * columns->trim);
    }
}

static int trimmed(struct fl_round *round, size_t trim, double *ret, struct error *err)
{
    struct columns columns = {
        .ret = ret,
        .updates = round->aggregation->source->len,
        .trim = trim,
    };

    return fl_blocks_walk(round, trimmed_take_block, &columns, err);
}

/* The one or two in the middle. */
static int fl_median(struct fl_round *round, double *ret, struct error *err)
{
    return trimmed(round, (round->aggregation->source->len - 1) / 2, ret, err);
}

static int fl_trimmed_mean(struct fl_round *round, double *ret, struct error *err)
{
    const struct fl_aggregation *aggregation = round->aggregation;
    size_t most = (aggregation->source->len - 1) / 2;
    size_t trim =
        (size_t)(aggregation->settings->trim * (double)aggregation->source->len + ROUNDING);

    return trimmed(round, trim < most ? trim : most, ret, err);
}

/* Independent chains of additions, which the processor does side by side. */
#define LANES 4

struct distances {
    double *squared; /* [a * updates + b], both ways */
    size_t updates;
};

static double distance(const double *a, const double *b, size_t len)
{
    double lanes[LANES] = { 0 };

    for (size_t i = 0; i + LANES <= len; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            double difference = a[i + k] - b[i + k];
            lanes[k] += difference * difference;
        }
    }
    for (size_t i = len - len % LANES; i < len; i++)
        lanes[0] += (a[i] - b[i]) * (a[i] - b[i]);
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

static void krum_take_block(void *ctx, const struct fl_block *block)
{
    struct distances *distances = ctx;
    size_t updates = distances->updates;

    for (size_t a = 0; a < updates; a++) {
        for (size_t b = a + 1; b < updates; b++) {
            double part = distance(block->values + a * block->stride,
                                   block->values + b * block->stride, block->len);
            distances->squared[a * updates + b] += part;
            distances->squared[b * updates + a] += part;
        }
    }
}

/* Among n updates the f that may be hostile, as many as n allows: n >= 2f + 3. */
static size_t hostile(const struct fl_aggregation *aggregation)
{
    size_t updates = aggregation->source->len;
    size_t most = updates < 3 ? 0 : (updates - 3) / 2;
    int64_t wanted = aggregation->settings->byzantine;

    return wanted < 0 || (size_t)wanted > most ? most : (size_t)wanted;
}

/* The sum of the squared distances to the nearest. Sorts the row. */
static double score(struct distances *distances, size_t index, size_t nearest)
{
    double *row = distances->squared + index * distances->updates;
    double sum = 0;

    /* its own, 0, goes to the end */
    row[index] = row[distances->updates - 1];
    qsort(row, distances->updates - 1, sizeof(*row), by_value);
    for (size_t i = 0; i < nearest; i++)
        sum += row[i]; /* may be infinite: what is so far away is not chosen */
    return sum;
}

static size_t choose(const struct fl_aggregation *aggregation, struct distances *distances)
{
    size_t updates = distances->updates, best = 0;
    size_t beside = hostile(aggregation) + 2;
    size_t nearest = updates > beside ? updates - beside : updates - 1;
    double least = INFINITY;

    for (size_t i = 0; i < updates; i++) {
        double sum = score(distances, i, nearest);
        if (sum < least) {
            best = i;
            least = sum;
        }
    }
    return best;
}

static int copy(struct fl_round *round, size_t index, double *ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct fl_update update;
    int r = fl_round_read(round, arena, index, &update, err);

    if (r == 0)
        memcpy(ret, update.values, update.len * sizeof(*ret));
    return r;
}

static int fl_krum(struct fl_round *round, double *ret, struct error *err)
{
    size_t updates = round->aggregation->source->len;
    struct distances distances = {
        .squared = xcalloc(updates * updates, sizeof(double)),
        .updates = updates,
    };
    int r = fl_blocks_walk(round, krum_take_block, &distances, err);

    if (r == 0)
        r = copy(round, choose(round->aggregation, &distances), ret, err);
    free(distances.squared);
    return r;
}

/* Of the Go operator for the same kinds. */
#define CONCAT_DELIMITER "\n---PROP-UPDATE---\n"

static int add_payload(struct fl_round *round, size_t index, struct buf *into, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct fl_update update;
    int r = fl_round_read(round, arena, index, &update, err);

    if (r < 0)
        return r;
    if ((index && !buf_append_string(into, CONCAT_DELIMITER)) ||
        !buf_append(into, update.payload, update.payload_len))
        return error_set(err, ERROR_TOO_LARGE, "updates have more than %zu bytes in all",
                         FL_MAX_MODEL_TEXT);
    return 0;
}

static int concat(struct fl_round *round, struct arena *arena, struct fl_model *ret,
                  struct error *err)
{
    struct buf text = BUF_INIT(FL_MAX_MODEL_TEXT);
    int r = 0;

    for (size_t i = 0; r == 0 && i < round->aggregation->source->len; i++)
        r = add_payload(round, i, &text, err);
    if (r < 0) {
        buf_release(&text);
        return r;
    }
    fl_model_opaque(arena_own(arena, text.data, free), text.len, ret);
    return 0;
}

bool fl_is_opaque(const struct aggregator_settings *settings)
{
    return settings->algorithm == AGGREGATOR_CONCAT;
}

int fl_aggregate(struct arena *arena, const struct fl_aggregation *aggregation,
                 struct fl_model *ret, size_t *ret_culprit, struct error *err)
{
    static fl_mean_fn *const MEANS[] = {
        [AGGREGATOR_FEDAVG] = fl_fedavg,
        [AGGREGATOR_MEDIAN] = fl_median,
        [AGGREGATOR_TRIMMED_MEAN] = fl_trimmed_mean,
        [AGGREGATOR_KRUM] = fl_krum,
    };
    struct fl_round round = { .aggregation = aggregation, .culprit = ret_culprit };

    assert(aggregation->source->len && aggregation->source->len <= FL_MAX_PARTICIPANTS);
    *ret_culprit = FL_NOBODY;
    if (fl_is_opaque(aggregation->settings))
        return concat(&round, arena, ret, err);

    assert(aggregation->shape);
    if (!json_numbers_count(aggregation->shape, &round.len) || round.len > FL_MAX_PARAMETERS)
        return error_set(err, ERROR_INVALID, "shape of the model cannot be read");

    struct fl_model model = {
        .shape = arena_strdup(arena, aggregation->shape),
        .values = arena_array(arena, double, round.len),
        .len = round.len,
    };
    int r = MEANS[aggregation->settings->algorithm](&round, model.values, err);
    if (r == 0)
        r = fl_model_print(arena, &model, err);
    if (r == 0)
        *ret = model;
    return r;
}
