/* propeller-graph: what a file of resources means, and what requests would get of it */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/version.h"
#include "common/json/yaml.h"
#include "common/runtime/options_completion.h"
#include "common/runtime/program.h"
#include "graph/report.h"

#define PROGRAM "propeller-graph"

enum { EXIT_BAD_FILE = 1, EXIT_BAD_USE = 2, EXIT_REFUSED = 3 };

/* A ConfigMap has the file with indentation and with what else belongs to an object. */
#define MAX_FILE (4u * GRAPH_MAX_TEXT)

struct settings {
    struct str_list files; /* one */
    const char *nodes, *proplets;
    const char *format;
    struct str_list requests, held;
    const char *home;
};

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)

static const char *const FORMATS[] = { "json", "jgf", NULL };

static const struct option CHECK_OPTIONS[] = {
    { OPTION("nodes", OPTION_STRING, nodes), .value_name = "FILE",
      .help = "manifests of the Nodes that may be parents, as kubectl get prints them" },
    { OPTION("proplets", OPTION_STRING, proplets), .value_name = "FILE",
      .help = "manifests of the Proplets that may be parents" },
    { OPTION("format", OPTION_CHOICE, format), .fallback = "json", .choices = FORMATS,
      .help = "format of the output; jgf is JSON Graph Format" },
};

static const struct option MATCH_OPTIONS[] = {
    { OPTION("request", OPTION_STRINGS, requests), .whole = true, .value_name = "REQUEST",
      .help =
          "class and units, then attributes and names that the resource must and must not have: "
          "CLASS[=N][,KEY=VALUE][,!NAME]" },
    { OPTION("held", OPTION_STRINGS, held), .whole = true, .value_name = "PATH=N",
      .help = "units of a resource that are in use" },
    { OPTION("home", OPTION_STRING, home), .value_name = "NAME",
      .help = "NAMESPACE/PROPLET or Node that requests; others do not get its local resources" },
};

/* --- files ------------------------------------------------------------------------------------ */

static int print_errors(const struct field_errors *errors)
{
    size_t kept = json_len(field_errors_causes(errors));

    json_for_each (cause, field_errors_causes(errors))
        (void)printf("%s: %s\n", json_get_string(cause, "field"),
                     json_get_string(cause, "message"));
    if (field_errors_count(errors) > kept)
        (void)printf("and %zu more\n", field_errors_count(errors) - kept);
    return EXIT_BAD_FILE;
}

/* The file itself, or what a ConfigMap in it has below the key resources.yaml. */
static const char *content_of(struct arena *arena, const char *text)
{
    const cJSON *documents;

    if (yaml_parse_all(arena, text, strlen(text), &documents, NULL) < 0)
        return text;
    json_for_each (document, documents) {
        const char *inner =
            json_string(json_get(json_get(document, "data"), "resources.yaml"), NULL);

        if (inner && str_equal(json_get_string(document, "kind"), "ConfigMap"))
            return inner;
    }
    return text;
}

/* Returns an exit status, with the errors printed; 0: *ret is the graph. */
static int read_graph(struct arena *arena, const char *path, struct graph **ret,
                      struct field_errors *errors, struct error *err)
{
    const char *text;

    int r = file_read_text(arena, path, MAX_FILE, NULL, &text, err);
    if (r < 0)
        return r;
    text = content_of(arena, text);
    return graph_parse(text, strlen(text), ret, errors) ? 0 : print_errors(errors);
}

/* Of yaml_read: notes "<namespace>/<name>", or the name alone. */
struct names {
    struct map *map;
    struct arena *arena;
    const char *kind;
};

static int take_name(void *ctx, const struct yaml_place *place UNUSED, cJSON *object,
                     struct error *err UNUSED)
{
    struct names *names = ctx;
    const cJSON *metadata = json_get(object, "metadata");
    const char *ns = json_get_string(metadata, "namespace");
    const char *name = json_get_string(metadata, "name");

    if (str_equal(json_get_string(object, "kind"), names->kind))
        map_set(names->map, arena_printf(names->arena, "%s%s%s", ns, *ns ? "/" : "", name),
                names->map);
    return 0;
}

static int read_names(struct names *names, const char *path, struct error *err)
{
    if (!path)
        return 0;

    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, ERROR_INVALID, "cannot open '%s'", path);

    int r = yaml_read(file, take_name, names, err);
    (void)fclose(file);
    return r < 0 ? error_wrap(err, "read '%s'", path) : 0;
}

/* --- commands --------------------------------------------------------------------------------- */

static void check_homes(const struct graph *graph, const struct map *known,
                        struct field_errors *errors, struct arena *arena)
{
    size_t top = 0;

    for (size_t i = 0; i < graph->len; i = graph->vertices[i].end, top++) {
        const char *home = graph->vertices[i].home;

        if (home && !map_get(known, home))
            field_error(errors, FIELD_ERROR_INVALID,
                        arena_printf(arena, "resources[%zu].parent", top),
                        arena_own(arena, cJSON_CreateString(home), json_free),
                        "is none of the Proplets of --proplets and Nodes of --nodes");
    }
}

static int print_json(struct arena *arena, const cJSON *json)
{
    (void)printf("%s\n", json_text(arena, json, NULL));
    return EXIT_SUCCESS;
}

static int check(struct arena *arena, const struct settings *settings, struct error *err)
{
    CLEANUP(graph_unrefp) struct graph *graph = NULL;
    struct field_errors *errors = field_errors_create(arena);
    struct names names = { .map = map_of_arena(arena), .arena = arena, .kind = "Node" };

    int r = read_names(&names, settings->nodes, err);
    names.kind = "Proplet";
    if (r == 0)
        r = read_names(&names, settings->proplets, err);
    if (r == 0)
        r = read_graph(arena, settings->files.items[0], &graph, errors, err);
    if (r != 0)
        return r;
    check_homes(graph, names.map, errors, arena);
    if (field_errors_count(errors))
        return print_errors(errors);
    return print_json(arena, str_equal(settings->format, "jgf") ? report_jgf(arena, graph)
                                                                : report_graph(arena, graph));
}

/* "KEY=VALUE" or "!NAME"; false: neither. */
static bool add_constraint(struct arena *arena, char *text, struct graph_request *request)
{
    char *value = strchr(text, '=');

    if (*text == '!' && text[1]) {
        request->exclude.items[request->exclude.len++] = text + 1;
        return true;
    }
    if (!value || !value[1])
        return false;

    struct graph_pair *require = arena_array(arena, struct graph_pair, request->require_len + 1);

    *value++ = '\0';
    if (request->require_len)
        memcpy(require, request->require, request->require_len * sizeof(*require));
    require[request->require_len++] = (struct graph_pair){ text, value };
    request->require = require;
    return graph_is_key(text);
}

static int read_request(struct arena *arena, const char *text, struct graph_request *ret,
                        struct error *err)
{
    char *rest = arena_strdup(arena, text);
    char *class = strtok_r(rest, ",", &rest);
    char *count = class ? strchr(class, '=') : NULL;
    bool is_fine = class != NULL;

    *ret = (struct graph_request){ .class = class, .count = 1 };
    ret->exclude.items = arena_array(arena, const char *, strlen(text));
    if (count) {
        *count++ = '\0';
        is_fine = str_to_int64(count, &ret->count) && ret->count >= 1;
    }
    is_fine = is_fine && graph_is_class(class);
    for (char *part; is_fine && (part = strtok_r(rest, ",", &rest)) != NULL;)
        is_fine = add_constraint(arena, part, ret);
    return is_fine ? 0
                   : error_set(err, ERROR_INVALID,
                               "--request: '%.100s' is not CLASS[=N][,KEY=VALUE][,!NAME]", text);
}

static int hold(struct arena *arena, const struct str_list *list, struct graph_use *use,
                struct error *err)
{
    struct graph_held *held = arena_array(arena, struct graph_held, list->len);

    for (size_t i = 0; i < list->len; i++) {
        char *path = arena_strdup(arena, list->items[i]);
        char *count = strrchr(path, '=');

        if (!count || !str_to_int64(count + 1, &held[i].count) || held[i].count < 1 ||
            held[i].count > GRAPH_MAX_UNITS)
            return error_set(err, ERROR_INVALID, "--held: '%.100s' is not PATH=N", list->items[i]);
        *count = '\0';
        held[i].path = path;
    }
    graph_use_hold(use, "--held", held, list->len);
    return 0;
}

static int match(struct arena *arena, const struct settings *settings, struct error *err)
{
    CLEANUP(graph_unrefp) struct graph *graph = NULL;
    CLEANUP(graph_use_destroyp) struct graph_use *use = NULL;
    size_t len = settings->requests.len;
    struct graph_request *requests = arena_array(arena, struct graph_request, len);
    struct graph_grant *grants = arena_array(arena, struct graph_grant, len);
    int r = len ? 0 : error_set(err, ERROR_INVALID, "--request: say what is requested");

    for (size_t i = 0; r == 0 && i < len; i++)
        r = read_request(arena, settings->requests.items[i], &requests[i], err);
    if (r == 0)
        r = read_graph(arena, settings->files.items[0], &graph, field_errors_create(arena), err);
    if (r != 0)
        return r;
    use = graph_use_create(graph);
    r = hold(arena, &settings->held, use, err);
    if (r < 0)
        return r;

    struct graph_answer answer =
        graph_match(arena, graph, use, requests, len, settings->home, grants);

    (void)print_json(arena, report_answer(arena, graph, requests, grants, len, &answer));
    return answer.verdict == GRAPH_FOUND ? EXIT_SUCCESS : EXIT_REFUSED;
}

/* --- the program ------------------------------------------------------------------------------ */

#define ABOUT(command, text, first, second)                                                        \
    {                                                                                              \
        .name = PROGRAM " " command, .about = (text),                                              \
        .examples = { PROGRAM " " command " " first, PROGRAM " " command " " second },             \
        .manual = PROGRAM "(1)", .arguments = "FILE",                                              \
        .arguments_offset = offsetof(struct settings, files), .only_flags = true                   \
    }

static const struct command {
    const char *name;
    struct option_program program;
    const struct option *table;
    size_t len;
    /* Returns an exit status, or an error of the command line or of a file that cannot be read. */
    int (*run)(struct arena *arena, const struct settings *settings, struct error *err);
} COMMANDS[] = {
    { "check",
      ABOUT("check", "Prints what a file of resources means, or each of its errors on a line.",
            "resources.yaml", "resources.yaml --proplets proplets.yaml --format jgf"),
      CHECK_OPTIONS, ARRAY_LEN(CHECK_OPTIONS), check },
    { "match",
      ABOUT("match", "Prints which resources of a file answer requests together.",
            "resources.yaml --request qpu,vendor=ibm,!ibm_fez",
            "resources.yaml --request qubit=10 --held /cluster/ibm_fez/qpu0/qubit0=150"),
      MATCH_OPTIONS, ARRAY_LEN(MATCH_OPTIONS), match },
};

static void print_usage(FILE *file)
{
    (void)fprintf(file, "Usage: " PROGRAM " COMMAND FILE [flags]\n\n"
                        "Checks files of resources, and says what requests would get of them.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        (void)fprintf(file, "  %-10s  %s\n", COMMANDS[i].name, COMMANDS[i].program.about);
    (void)fprintf(file,
                  "\nFILE is the text of resources.yaml, or a ConfigMap with that key.\n"
                  "'" PROGRAM " COMMAND --help' prints the flags of a command.\n"
                  "Exit status: 0 done, 1 the file is refused, 2 wrong use, 3 the requests are "
                  "refused.\n");
}

static int print_completion(const char *shell)
{
    struct option_command commands[ARRAY_LEN(COMMANDS)];
    struct error err = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        commands[i] =
            (struct option_command){ COMMANDS[i].name, COMMANDS[i].table, COMMANDS[i].len };
    return program_end_of_options(
        PROGRAM, options_print_completion(shell, PROGRAM, commands, ARRAY_LEN(commands), &err),
        &err);
}

static int without_command(const char *name, const char *next)
{
    if (str_equal(name, "--help") || str_equal(name, "-h") || str_equal(name, "help")) {
        print_usage(stdout);
        return EXIT_SUCCESS;
    }
    if (str_equal(name, "--version")) {
        (void)printf(PROGRAM " %s\n", version_name());
        return EXIT_SUCCESS;
    }
    if (str_equal(name, "--completion") && next)
        return print_completion(next);
    if (str_is_empty(name))
        print_usage(stderr);
    else
        (void)fprintf(stderr, PROGRAM ": there is no command '%.60s' (--help lists all)\n", name);
    return EXIT_BAD_USE;
}

static int run(struct arena *arena, const struct command *command, int argc, char **argv)
{
    struct settings settings = { .home = NULL };
    struct error err = { 0 };
    int r = options_parse(arena, &command->program, command->table, command->len, argc, argv,
                          &settings, &err);

    if (r == 0 && settings.files.len != 1)
        r = error_set(&err, ERROR_INVALID, "name one FILE");
    if (r != 0)
        return program_end_of_options(PROGRAM, r, &err);
    r = command->run(arena, &settings, &err);
    if (r < 0) {
        (void)fprintf(stderr, PROGRAM ": %s\n", err.message);
        return EXIT_BAD_USE;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fprintf(stderr, PROGRAM ": standard output was not written as a whole\n");
        return EXIT_BAD_FILE;
    }
    return r;
}

int main(int argc, char **argv)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *name = argc > 1 ? argv[1] : "";

    (void)signal(SIGPIPE, SIG_IGN); /* `| head` is no error */
    alloc_init();
    json_init();
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++) {
        if (str_equal(COMMANDS[i].name, name))
            return run(arena, &COMMANDS[i], argc - 1, argv + 1);
    }
    return without_command(name, argc > 2 ? argv[2] : NULL);
}
