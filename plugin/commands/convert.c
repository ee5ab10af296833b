/* convert: manifests of the Go operator's newer API group as those of this operator, without a cluster. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/kube/object.h"
#include "plugin/commands/commands.h"
#include "plugin/commands/convert_manifest.h"

struct settings {
    struct common_flags common;
    struct str_list files;
};

static const struct option OPTIONS[] = {
    { .name = "filename",
      .type = OPTION_STRINGS,
      .offset = offsetof(struct settings, files),
      .letter = 'f',
      .value_name = "FILE",
      .help = "manifests; \"-\" is the standard input" },
    COMMON_FLAGS,
};

/* All objects are in memory, so that nothing is printed of files with a mistake. */
#define MAX_OBJECTS 10000
#define MAX_BYTES (64u << 20)

struct converting {
    struct session *session;
    struct convert_schemas schemas;
    const char *file; /* as messages name it */
    cJSON *items;
    size_t count, bytes;
    bool is_lossy; /* a field could not be expressed */
};

/* "document 2, item 1" */
static const char *place_text(struct arena *arena, const struct yaml_place *place)
{
    const char *item = place->item ? arena_printf(arena, ", item %zu", place->item) : "";

    return arena_printf(arena, "document %zu%s", place->document, item);
}

static void print_notes(struct converting *converting, const char *where, const cJSON *object,
                        const cJSON *notes)
{
    const char *kind = json_string(json_get(object, "kind"), "");
    const char *name = json_string(json_path(object, "metadata", "name", NULL), "");

    json_for_each (note, notes) {
        output_line(stderr, "%s, %s: %s '%s': %s: %s", converting->file, where, kind, name,
                    json_string(json_get(note, "field"), ""),
                    json_string(json_get(note, "text"), ""));
        converting->is_lossy = converting->is_lossy || json_bool(json_get(note, "lost"), false);
    }
}

static int keep(struct converting *converting, const cJSON *object, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t len = 0;

    (void)json_text(arena, object, &len);
    converting->bytes += len;
    if (++converting->count > MAX_OBJECTS || converting->bytes > MAX_BYTES)
        return error_set(err, ERROR_TOO_LARGE,
                         "more than %d objects or %u MiB: convert fewer files at once", MAX_OBJECTS,
                         MAX_BYTES >> 20);
    json_add(converting->items, json_copy(object));
    return 0;
}

static int take(void *ctx, const struct yaml_place *place, cJSON *object, struct error *err)
{
    struct converting *converting = ctx;
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *where = place_text(arena, place);
    const char *kind = json_string(json_get(object, "kind"), "");
    cJSON *notes = json_array(arena);

    if (str_has_suffix(kind, "List") && cJSON_IsArray(json_get(object, "items")))
        return 0; /* its items came before */
    if (!*kind || str_is_empty(json_string(json_get(object, "apiVersion"), NULL)))
        return error_set(err, ERROR_INVALID, "%s: has no apiVersion or no kind", where);
    int r = convert_manifest(&converting->schemas, arena, object, notes, err);
    if (r < 0)
        return error_wrap(err, "%s: %.60s '%.120s'", where, kind,
                          json_string(json_path(object, "metadata", "name", NULL), ""));
    print_notes(converting, where, object, notes);
    return r == CONVERT_OMITTED ? 0 : keep(converting, object, err);
}

static int read_file(struct converting *converting, const char *path, struct error *err)
{
    bool is_input = str_equal(path, "-");
    FILE *file = is_input ? stdin : fopen(path, "re");
    struct stat about;

    if (!file)
        return error_set(err, ERROR_INVALID, "--filename: file '%s': %s", path,
                         strerrordesc_np(errno));
    converting->file = is_input ? "standard input" : path;
    int r = fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)
                ? error_set(err, ERROR_INVALID, "is a directory, and files are needed")
                : yaml_read(file, take, converting, err);
    if (!is_input)
        (void)fclose(file);
    return r < 0 ? error_wrap(err, "--filename: '%s'", path) : 0;
}

static void print(const struct converting *converting)
{
    struct output output = converting->session->output;
    cJSON *list = json_object(converting->session->arena);

    if (output.format == OUTPUT_JSON) {
        json_set_string(list, "apiVersion", "v1");
        json_set_string(list, "kind", "List");
        json_set_copy(list, "items", converting->items);
        output_whole(&output, list);
        return;
    }
    output.format = OUTPUT_YAML;
    json_for_each (item, converting->items) {
        (void)fputs("---\n", output.file);
        output_whole(&output, item);
    }
}

static int run(struct session *session, const void *settings_of, struct error *err)
{
    const struct settings *settings = settings_of;
    struct converting converting = { .session = session,
                                     .schemas = { .arena = session->arena },
                                     .items = json_array(session->arena) };

    if (session->output.format == OUTPUT_NAME || session->output.format == OUTPUT_WIDE)
        return error_set(err, ERROR_INVALID, "--output: convert prints yaml or json");
    if (!settings->files.len)
        return error_set(err, ERROR_INVALID, "--filename: name a file, or - for standard input");
    for (size_t i = 0; i < settings->files.len; i++) {
        int r = read_file(&converting, settings->files.items[i], err);
        if (r < 0)
            return r;
    }
    print(&converting);
    return converting.is_lossy ? EXIT_NO : EXIT_DONE;
}

const struct command COMMAND_CONVERT =
    COMMAND("convert", run, struct settings, OPTIONS, 0,
            "Rewrites manifests of the Go operator's group propeller.propeller.absmach.eu for this "
            "operator.",
            EXAMPLES("convert -f manifests.yaml", "convert -f - -o json"));
