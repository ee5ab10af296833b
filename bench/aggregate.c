/* One aggregation, for whoever compares its result or measures its memory:
 *
 *   aggregate '{"algorithm":"krum","config":{}}' BASE FILE...    the model of these envelopes on stdout;
 *                                                                BASE: a model, or - for none
 *   aggregate '{"algorithm":"krum"}' --made PARTICIPANTS NUMBERS of updates that are made as they are
 *                                                                read, as from a store; nothing on stdout
 *
 * On stderr: "peak-kib N", the most memory that the process had (VmHWM). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "controller/federated/aggregator.h"

#define MAX_FILE ((size_t)128 << 20)

struct input {
    struct aggregator_settings settings;
    const struct fl_model *base; /* NULL: none */
    char **files;                /* NULL: made */
    size_t len;                  /* numbers of an update that is made */
    const char *shape;
};

static const char *const ME = "aggregate";

_Noreturn static void die(const char *what, const struct error *err)
{
    (void)fprintf(stderr, "%s: %s%s%s\n", ME, what, err ? ": " : "", err ? err->message : "");
    exit(1);
}

static char *read_file(struct arena *arena, const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "re");
    struct buf bytes = BUF_INIT(MAX_FILE);
    char part[65536];
    size_t len;

    if (!file)
        die("cannot read a file", NULL);
    while ((len = fread(part, 1, sizeof(part), file))) {
        if (!buf_append(&bytes, part, len))
            die("file is too large", NULL);
    }
    (void)fclose(file);
    *ret_len = bytes.len;
    return arena_own(arena, bytes.data, free);
}

static int read_update(void *ctx, struct arena *arena, size_t index, struct fl_update *ret,
                       struct error *err)
{
    const struct input *input = ctx;
    const struct fl_expected expected = {
        .max_samples = input->settings.max_samples,
        .default_samples = 1,
        .opaque = fl_is_opaque(&input->settings),
    };
    struct fl_envelope envelope;
    size_t len;
    const char *text = read_file(arena, input->files[index], &len);
    int r = fl_envelope_parse(arena, text, len, &expected, &envelope, err);

    if (r < 0)
        return r;
    if (!expected.opaque)
        return fl_update_decode(arena, &envelope, input->base, ret, err);
    fl_update_opaque(&envelope, ret);
    return 0;
}

/* The packed bytes, and then the update that they are: both are in memory, as when a store gives them. */
static int make_update(void *ctx, struct arena *arena, size_t index, struct fl_update *ret,
                       struct error *err)
{
    const struct input *input = ctx;
    double *values = arena_array(arena, double, input->len);
    struct fl_update update = { .shape = input->shape, .values = values, .len = input->len };
    struct fl_envelope envelope = { .format = FL_FORMAT_PACKED_F64 };

    for (size_t i = 0; i < input->len; i++)
        values[i] = (double)((i * 2654435761u + index * 40503u) % 1000003u) / 1000003.0;

    CLEANUP(arena_destroyp) struct arena *other = arena_create();
    const char *packed = fl_update_pack(other, &update, &envelope.payload_len);
    envelope.payload = packed;
    envelope.num_samples = (int64_t)index + 1;
    return fl_update_decode(arena, &envelope, NULL, ret, err);
}

static void print_peak(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long long kib = 0;

    while (file && fgets(line, sizeof(line), file)) {
        if (str_has_prefix(line, "VmHWM:"))
            kib = strtoll(line + strlen("VmHWM:"), NULL, 10);
    }
    if (file)
        (void)fclose(file);
    (void)fprintf(stderr, "peak-kib %lld\n", kib);
}

static const char *shape_of_first(struct arena *arena, struct input *input)
{
    struct error err = { 0 };
    struct fl_update update;

    if (fl_is_opaque(&input->settings))
        return NULL;
    if (input->base)
        return input->base->shape;

    CLEANUP(arena_destroyp) struct arena *own = arena_create();
    if (read_update(input, own, 0, &update, &err) < 0)
        die("first update", &err);
    return arena_strdup(arena, update.shape);
}

static void run(struct arena *arena, const struct input *input, size_t participants)
{
    const struct fl_source source = {
        .ctx = (void *)(uintptr_t)input,
        .len = participants,
        .read = input->files ? read_update : make_update,
    };
    const struct fl_aggregation aggregation = {
        .settings = &input->settings,
        .source = &source,
        .shape = input->shape,
    };
    struct error err = { 0 };
    struct fl_model model;
    size_t culprit;

    if (fl_aggregate(arena, &aggregation, &model, &culprit, &err) < 0)
        die(culprit == FL_NOBODY ? "refused" : arena_printf(arena, "refused %zu", culprit), &err);
    if (input->files)
        (void)fwrite(model.bytes, 1, model.bytes_len, stdout);
    print_peak();
}

int main(int argc, char **argv)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct aggregator aggregator = { 0 };
    struct input input = { 0 };
    struct error err = { 0 };
    struct fl_model base;
    const cJSON *json;

    json_init();
    if (argc < 4)
        die("usage: aggregate AGGREGATOR BASE|--made FILE...|PARTICIPANTS NUMBERS", NULL);
    if (json_parse(arena, argv[1], strlen(argv[1]), &json, &err) < 0 ||
        json_decode(arena, &AGGREGATOR, json, &aggregator, &err) < 0)
        die("aggregator", &err);
    aggregator_settings_read(arena, &aggregator, NULL, NULL, &input.settings);

    if (str_equal(argv[2], "--made")) {
        int64_t participants, len;
        if (argc != 5 || !str_to_int64(argv[3], &participants) || !str_to_int64(argv[4], &len) ||
            participants < 1 || participants > FL_MAX_PARTICIPANTS || len < 1)
            die("--made PARTICIPANTS NUMBERS", NULL);
        input.len = (size_t)len;
        input.shape = arena_printf(arena, "[#%zu]", input.len);
        run(arena, &input, (size_t)participants);
        return 0;
    }
    if (!str_equal(argv[2], "-")) {
        size_t len;
        const char *text = read_file(arena, argv[2], &len);
        if (fl_model_parse(arena, text, len, &base, &err) < 0)
            die("base", &err);
        input.base = &base;
    }
    input.files = argv + 3;
    input.shape = shape_of_first(arena, &input);
    run(arena, &input, (size_t)argc - 3);
    return 0;
}
