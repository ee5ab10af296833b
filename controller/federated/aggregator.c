#include "controller/federated/aggregator.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/buf.h"
#include "controller/federated/blocks.h"

/* Of the Go operator for the same kinds. */
#define CONCAT_DELIMITER "\n---PROP-UPDATE---\n"

int fl_round_read(struct fl_round *round, struct arena *arena, size_t index, struct fl_update *ret,
                  struct error *err)
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
