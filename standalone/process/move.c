#include "standalone/process/move.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/str.h"
#include "standalone/moving/export.h"
#include "standalone/moving/import.h"
#include "standalone/process/data_dir.h"
#include "standalone/server/in_process.h"

/* A write waits for the disk, and for others that write. */
#define REQUEST_TIMEOUT_MS 60000

/* --- what both tell --- */

static void tell(const struct manifest_counts *counts)
{
    for (size_t i = 0; i < MANIFEST_VERDICTS; i++) {
        if (counts->left_out[i])
            (void)fprintf(stderr, "left out: %zu %s%s\n", counts->left_out[i], MANIFEST_WORDS[i],
                          i == MANIFEST_FINISHED
                              ? " (--status takes them along for import, --all to run again)"
                              : "");
    }
    if (counts->without_owners)
        (void)fprintf(stderr,
                      "%zu without the owners that they had: nothing deletes them with these\n",
                      counts->without_owners);
}

/* --- export --- */

static int write_export(struct arena *arena, const struct standalone_settings *settings, FILE *file,
                        struct error *err)
{
    const struct export_options options = { .ns = settings->ns,
                                            .status = settings->status,
                                            .all = settings->all };
    CLEANUP(kv_reader_closep) struct kv_reader *reader = NULL;
    CLEANUP(resources_destroyp) struct resources *resources = NULL;
    struct manifest_counts counts = { .made = 0 };

    int r = kv_reader_open(data_dir_path(arena, settings->data_dir, DATA_DIR_STORE), &reader, err);
    if (r == 0)
        r = resources_create(&resources, err);
    if (r == 0)
        r = export_write(arena, reader, resources, &options, file, &counts, err);
    if (r == 0 && fflush(file) != 0)
        r = error_set(err, ERROR_UNAVAILABLE, "write: %s", strerrordesc_np(errno));
    if (r < 0 && ferror(file))
        return error_wrap(err, "%s",
                          file == stdout ? "the standard output"
                                         : arena_printf(arena, "'%s'", settings->output));
    if (r < 0)
        return r;
    (void)fprintf(stderr, "exported %zu objects\n", counts.made);
    tell(&counts);
    return 0;
}

/* On the disk under its name, or not there. */
int move_export(struct arena *arena, const struct standalone_settings *settings, struct error *err)
{
    if (str_is_empty(settings->output) || str_equal(settings->output, "-"))
        return write_export(arena, settings, stdout, err);

    const char *new = arena_printf(arena, "%s.new", settings->output);
    int fd =
        open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); /* there are Secrets in it */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (!file)
        return error_set(err, ERROR_INVALID, "'%s': %s", new, strerrordesc_np(errno));
    int r = write_export(arena, settings, file, err);
    if (r == 0)
        r = fsync(fileno(file)) < 0 || rename(new, settings->output) < 0
                ? error_set(err, ERROR_UNAVAILABLE, "'%s': %s", settings->output,
                            strerrordesc_np(errno))
                : file_sync_folder_of(settings->output, err);
    (void)fclose(file);
    if (r < 0)
        (void)unlink(new);
    return r;
}

/* --- import --- */

/* The one that answers: the store itself, or the server that has it. */
struct target {
    struct kv *kv;
    struct in_process inner; /* of the store */
    struct kube_config *config;
    struct transport *transport;
    struct resources *resources;
};

static void target_release(struct target *target)
{
    api_destroy(target->inner.api);
    kv_close(target->kv);
    transport_destroy(target->transport);
    kube_config_destroy(target->config);
    resources_destroy(target->resources);
}
DEFINE_CLEANUP_OF(struct target, target_release)

static int connect_to_server(struct arena *arena, const struct standalone_settings *settings,
                             struct target *target, struct error *err)
{
    int r = kube_config_load(data_dir_path(arena, settings->data_dir, DATA_DIR_ADMIN),
                             &target->config, err);

    const struct http_request request = { .method = "GET", .path = "/version" };
    struct http_response response;

    if (r < 0)
        return error_wrap(err, "another process has the store, so import asks a server");
    target->transport = transport_create(target->config, REQUEST_TIMEOUT_MS);
    r = transport_roundtrip(target->transport, arena, &request, &response, err);
    if (r == -ERROR_UNAVAILABLE)
        return error_wrap(err, "another process has the store, and cannot be asked as a server: if "
                               "it is an import or a backup, wait for its end");
    return r; /* what a server says is told with what it is asked */
}

/* The store, or its API when another process has it open. */
static int open_target(struct arena *arena, const struct standalone_settings *settings,
                       struct target *target, struct import_options *options, struct error *err)
{
    const struct kv_options kv = {
        .path = data_dir_path(arena, settings->data_dir, DATA_DIR_STORE),
    };

    int r = resources_create(&target->resources, err);
    if (r < 0)
        return r;
    options->resources = target->resources;
    r = kv_open(&kv, &target->kv, err);
    if (r == 0) {
        const struct api_options api = { .kv = target->kv,
                                         .resources = target->resources,
                                         .clock = &CLOCK_SYSTEM };

        target->inner = (struct in_process){
            .api = api_create(&api),
            .user = { .name = "propeller-standalone", .role = ROLE_ADMIN },
            .user_agent = "propeller-standalone",
        };
        options->roundtrip = in_process_roundtrip;
        options->ctx = &target->inner;
        return 0;
    }
    if (r != -ERROR_UNAVAILABLE || !str_has_suffix(err->message, KV_IN_USE))
        return r;
    r = connect_to_server(arena, settings, target, err);
    options->roundtrip = transport_roundtrip;
    options->ctx = target->transport;
    return r;
}

static void tell_refused(void *ctx UNUSED, const char *text)
{
    (void)fprintf(stderr, "refused: %s\n", text);
}

static int import_file(struct arena *arena, const struct standalone_settings *settings, FILE *file,
                       struct error *err)
{
    CLEANUP(target_releasep) struct target target = { .kv = NULL };
    struct import_options options = { .refused = tell_refused,
                                      .source = file == stdin ? "stdin" : settings->file };
    struct manifest_counts counts;

    (void)signal(SIGPIPE, SIG_IGN);
    int r = open_target(arena, settings, &target, &options, err);
    if (r < 0)
        return r;
    r = import_read(file, &options, &counts, err);
    printf("created %zu, unchanged %zu, refused %zu\n", counts.made, counts.unchanged,
           counts.refused);
    (void)fflush(stdout);
    tell(&counts);
    if (r < 0)
        return error_wrap(err,
                          "ended before the end of the file; what was made stays, and can be run "
                          "over again");
    return counts.refused ? error_set(err, ERROR_INVALID,
                                      "%zu objects were refused, the others are "
                                      "there",
                                      counts.refused)
                          : 0;
}

int move_import(struct arena *arena, const struct standalone_settings *settings, struct error *err)
{
    if (str_equal(settings->file, "-"))
        return import_file(arena, settings, stdin, err);

    FILE *file = fopen(settings->file, "re");

    if (!file)
        return error_set(err, ERROR_INVALID, "'%s': %s", settings->file, strerrordesc_np(errno));
    int r = import_file(arena, settings, file, err);
    (void)fclose(file);
    return r;
}

/* --- backup --- */

int move_backup(struct arena *arena, const struct standalone_settings *settings, struct error *err)
{
    int r = kv_backup(data_dir_path(arena, settings->data_dir, DATA_DIR_STORE), settings->to, err);

    if (r == 0)
        printf("the store is in '%s'\n", settings->to);
    return r;
}
