/* model: the bytes of an aggregated model. */
#include <errno.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/blobs/model_store.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct str_list objects;
    const char *round;
    const char *to;
};

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
static const struct option OPTIONS[] = {
    { OPTION("round", OPTION_STRING, round), .value_name = "NAME",
      .help = "TrainingRound whose model is wanted; default is the newest model of the job" },
    { OPTION("to", OPTION_STRING, to), .fallback = "-", .value_name = "FILE",
      .help = "file to write; \"-\" is the standard output" },
    COMMON_FLAGS,
};

/* The reference of the model that is asked for. */
static int find_reference(struct session *session, const struct settings *settings,
                          const cJSON *job, const char **ret, struct error *err)
{
    const cJSON *object = job;
    struct object_ref ref = { .kind = NULL };
    int r = 0;

    if (settings->round)
        r = object_ref_parse(session, TAKES_ROUND, settings->round, &ref, err);
    if (r == 0 && settings->round)
        r = object_get(session, &ref, &object, err);
    if (r < 0)
        return r;
    if (settings->round && !str_equal(kube_controller_uid(object), kube_uid(job)))
        return error_set(err, ERROR_NOT_FOUND, "TrainingRound '%s' is not of this FederatedJob",
                         ref.name.name);
    *ret = json_string(json_path(object, "status", "aggregatedModelRef", NULL), "");
    return **ret ? 0 : error_set(err, ERROR_NOT_FOUND, "there is no aggregated model yet");
}

static int read_model(struct session *session, const struct object_ref *ref, const cJSON *job,
                      const char *reference, const char **ret, size_t *ret_len, struct error *err)
{
    struct model_store *store = model_store_configmap_create(session->client);
    const struct model_scope scope = { ref->kind, ref->name, kube_uid(job) };
    int r = model_store_get(store, session->arena, &scope, reference, ret, ret_len, err);

    model_store_destroy(store);
    if (r == -ERROR_NOT_FOUND)
        return error_set(err, ERROR_NOT_FOUND,
                         "no ConfigMap holds the model %s: it was removed "
                         "(spec.historyLimit), or the controller keeps models in S3",
                         reference);
    return r;
}

/* The API server has done its part, so that a file which cannot be written is wrong use. */
static int write_model(const char *path, const char *bytes, size_t len)
{
    bool is_output = str_equal(path, "-");
    FILE *file = is_output ? stdout : fopen(path, "wbe");

    if (!file) {
        output_line(stderr, "--to: file '%s': %s", path, strerrordesc_np(errno));
        return EXIT_BAD_USE;
    }
    bool is_whole = fwrite(bytes, 1, len, file) == len && fflush(file) == 0;
    if (!is_output)
        is_whole = fclose(file) == 0 && is_whole;
    if (!is_whole)
        output_line(stderr, "--to: file '%s' was not written as a whole", path);
    return is_whole ? EXIT_DONE : EXIT_BAD_USE;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    const struct settings *s = settings;
    const char *reference = "", *bytes = "";
    struct object_ref ref = { .kind = NULL };
    const cJSON *job = NULL;
    size_t len = 0;

    if (str_equal(s->to, "-") && isatty(STDOUT_FILENO))
        return error_set(err, ERROR_INVALID, "--to: a model is not for a terminal; name a file");
    int r = object_open(session, TAKES_FEDERATED, &s->objects, &ref, &job, err);

    if (r == 0)
        r = find_reference(session, s, job, &reference, err);
    if (r == 0)
        r = read_model(session, &ref, job, reference, &bytes, &len, err);
    if (r == 0)
        r = write_model(s->to, bytes, len);
    if (r == 0)
        output_line(stderr, "%s, %zu bytes", reference, len);
    return r;
}

const struct command COMMAND_MODEL =
    COMMAND("model", run, struct settings, OPTIONS, TAKES_FEDERATED,
            "Writes an aggregated model of a FederatedJob to a file.",
            ARGUMENTS(struct settings, objects, "FEDERATEDJOB"),
            EXAMPLES("model mnist --to model.bin", "model mnist --round round-3-mnist --to 3.bin"));
