#include "standalone/process/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "certs/make.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "common/net/http_listen.h"
#include "common/runtime/options_completion.h"
#include "controller/shared/options.h"

#define PROGRAM "propeller-standalone"

static const char *const ROLES_TO_GIVE[] = { "admin", "edit", "view", NULL };

#define OPTION(flag, kind, member, value)                                                          \
    .name = (flag), .type = (kind), .offset = offsetof(struct standalone_settings, member),        \
    .fallback = (value)
#define DATA_DIR                                                                                   \
    {                                                                                              \
        OPTION("data-dir", OPTION_STRING, data_dir, NULL),                                         \
            .value_name = "DIR",                                                                   \
            .help = "directory of all data; default is /var/lib/propeller for root, otherwise "    \
                    "$HOME/.local/share/propeller"                                                 \
    }
#define ADDRESS                                                                                    \
    {                                                                                              \
        OPTION("address", OPTION_STRING, address, "127.0.0.1:6443"),                               \
            .value_name = "ADDRESS",                                                               \
            .help = "address of the API, HOST:PORT or [IPV6]:PORT; \":6443\" is every address of " \
                    "the machine"                                                                  \
    }
#define EXTRA_NAME                                                                                 \
    {                                                                                              \
        OPTION("extra-name", OPTION_STRINGS, extra_names, NULL),                                   \
            .value_name = "HOST", .help = "additional host name or IP address for the certificate" \
    }
static const struct option INIT_OPTIONS[] = { DATA_DIR, ADDRESS, EXTRA_NAME };
static const struct option SERVE_OPTIONS[] = {
    DATA_DIR,
    ADDRESS,
    EXTRA_NAME,
    { OPTION("controller", OPTION_BOOL, controller, "true"),
      .help =
          "run the controller in this process; accepts all flags of propeller-controller --help" },
    { OPTION("strict-store", OPTION_BOOL, strict_store, "false"),
      .help = "refuse to start if the store has lost acknowledged writes; otherwise the server "
              "continues with higher revisions" },
    POLICY_OPTIONS(struct standalone_settings),
};
static const struct option USER_OPTIONS[] = {
    DATA_DIR,
    { OPTION("address", OPTION_STRING, address, NULL), .value_name = "ADDRESS",
      .help = "HOST:PORT of the API for the user; default is that of admin.kubeconfig" },
    { OPTION("name", OPTION_STRING, name, ""), .value_name = "NAME",
      .help = "name of the new user" },
    { OPTION("role", OPTION_CHOICE, role, "view"), .choices = ROLES_TO_GIVE,
      .help = "rights of the user" },
};
static const struct option EXPORT_OPTIONS[] = {
    DATA_DIR,
    { OPTION("namespace", OPTION_STRING, ns, NULL), .value_name = "NAME",
      .help = "namespace to export with its objects; default is everything" },
    { OPTION("output", OPTION_STRING, output, "-"), .letter = 'o', .value_name = "FILE",
      .help = "file to write as a whole; \"-\" is the standard output" },
    { OPTION("status", OPTION_BOOL, status, "false"),
      .help =
          "include finished Tasks, jobs and rounds with their status; import keeps them finished" },
    { OPTION("all", OPTION_BOOL, all, "false"),
      .help = "include finished Tasks, jobs and rounds without their status; they run again" },
};
static const struct option IMPORT_OPTIONS[] = {
    DATA_DIR,
    { OPTION("file", OPTION_STRING, file, ""), .letter = 'f', .value_name = "FILE",
      .help = "manifests of export or of kubectl get -o yaml; \"-\" is the standard input" },
};
static const struct option BACKUP_OPTIONS[] = {
    DATA_DIR,
    { OPTION("to", OPTION_STRING, to, ""), .value_name = "FILE",
      .help = "path of the copy, which must not exist" },
};

/* The command's name is that of the program behind PROGRAM. */
static const struct {
    const char *name;
    struct option_program program;
    const struct option *options;
    size_t len;
} TABLE[COMMANDS] = {
#define COMMAND(text, about_text, first, second, table)                                            \
    {                                                                                              \
        text,                                                                                      \
            { .name = PROGRAM " " text,                                                            \
              .about = (about_text),                                                               \
              .examples = { PROGRAM " " text " " first, PROGRAM " " text " " second },             \
              .manual = PROGRAM "(1)" },                                                           \
            (table), ARRAY_LEN(table)                                                              \
    }
    [COMMAND_INIT] =
        COMMAND("init", "Creates certificates, a token and a kubeconfig.", "--data-dir ~/propeller",
                "--data-dir ~/propeller --address :6443 --extra-name pi.example", INIT_OPTIONS),
    [COMMAND_SERVE] = COMMAND(
        "serve",
        "Serves the API and runs the controller. Listens on this machine only, unless --address is "
        "set.",
        "--data-dir ~/propeller --mqtt-address tcp://broker:1883 --client-key-file key",
        "--data-dir ~/propeller --address :6443 --controller=false", SERVE_OPTIONS),
    [COMMAND_ADD_USER] = COMMAND(
        "add-user",
        "Creates a token for a user and prints a kubeconfig. Takes effect immediately, without a "
        "restart.",
        "--data-dir ~/propeller --name eve >eve.kubeconfig",
        "--data-dir ~/propeller --name eve --role edit --address pi.example:6443", USER_OPTIONS),
    [COMMAND_EXPORT] = COMMAND(
        "export",
        "Writes all objects of users as YAML, for kubectl apply or import. The server may run.",
        "--data-dir ~/propeller -o objects.yaml",
        "--data-dir ~/propeller --namespace lab --status -o lab.yaml", EXPORT_OPTIONS),
    [COMMAND_IMPORT] = COMMAND(
        "import", "Creates the objects of a file, through the API if the server runs.",
        "--data-dir ~/propeller -f objects.yaml", "--data-dir ~/propeller -f -", IMPORT_OPTIONS),
    [COMMAND_BACKUP] = COMMAND(
        "backup", "Copies the store. The server may run.", "--data-dir ~/propeller --to monday.db",
        "--data-dir /var/lib/propeller --to /mnt/usb/monday.db", BACKUP_OPTIONS),
#undef COMMAND
};

static void print_commands(FILE *file)
{
    fprintf(file, "Usage: " PROGRAM " COMMAND [flags]\n\n"
                  "Serves the Propeller API and runs the controller, without Kubernetes.\n\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(file, "  %-10s %s\n", TABLE[i].name, TABLE[i].program.about);
    fprintf(file, "\n'" PROGRAM " COMMAND --help' prints the flags of a command, '" PROGRAM
                  " --completion bash|zsh|fish' a script for a shell.\n");
}

/* serve accepts most flags of the controller. */
static bool is_for_serve(const struct option *option)
{
    static const char *const REFUSED[] = { "kubeconfig", "uninstall", "uninstall-timeout",
                                           "enable-scheduled-machines" };

    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        if (str_equal(option->name, REFUSED[i]))
            return false;
    }
    return true;
}

static int print_completion(struct arena *arena, const char *shell, struct error *err)
{
    struct option_command commands[COMMANDS];

    for (size_t i = 0; i < COMMANDS; i++)
        commands[i] = (struct option_command){ TABLE[i].name, TABLE[i].options, TABLE[i].len };

    struct option_command *serve = &commands[COMMAND_SERVE];
    size_t more;
    const struct option *controller = controller_options_list(arena, &more);
    struct option *all = arena_array(arena, struct option, serve->len + more);

    memcpy(all, serve->table, serve->len * sizeof(*all));
    serve->table = all;
    for (size_t i = 0; i < more; i++) {
        if (is_for_serve(&controller[i]))
            all[serve->len++] = controller[i];
    }
    return options_print_completion(shell, PROGRAM, commands, COMMANDS, err);
}

static int find_command(const char *name, enum standalone_command *ret, struct error *err)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (str_equal(TABLE[i].name, name)) {
            *ret = (enum standalone_command)i;
            return 0;
        }
    }
    if (str_equal(name, "--help") || str_equal(name, "-h")) {
        print_commands(stdout);
        return 1;
    }
    if (str_equal(name, "--version")) {
        printf(PROGRAM " %s\n", version_name());
        return 1;
    }
    if (str_is_empty(name))
        print_commands(stderr);
    return error_set(err, ERROR_INVALID,
                     "the first argument must be a command: init, serve, add-user, export, import, "
                     "backup");
}

static const struct option *find_option(size_t command, const char *arg)
{
    size_t len = strcspn(arg, "=");

    for (size_t i = 0; i < TABLE[command].len; i++) {
        const char *name = TABLE[command].options[i].name;

        if (str_has_prefix(arg, "--") && strlen(name) == len - 2 &&
            memcmp(name, arg + 2, len - 2) == 0)
            return &TABLE[command].options[i];
    }
    return NULL;
}

/* Flags of this table, and what goes with them, into own; the others into rest. */
struct split {
    char **own, **rest;
    int own_len, rest_len;
};

static struct split split_arguments(struct arena *arena, int argc, char *const *argv)
{
    struct split ret = { .own = arena_array(arena, char *, (size_t)argc + 1),
                         .rest = arena_array(arena, char *, (size_t)argc + 1) };

    ret.own[ret.own_len++] = argv[0];
    ret.rest[ret.rest_len++] = argv[0];
    for (int i = 2; i < argc; i++) {
        const struct option *option = find_option(COMMAND_SERVE, argv[i]);
        bool is_help = str_equal(argv[i], "--help") || str_equal(argv[i], "-h") ||
                       str_equal(argv[i], "--version");

        if (!option && !is_help) {
            ret.rest[ret.rest_len++] = argv[i];
            continue;
        }
        ret.own[ret.own_len++] = argv[i];
        if (option && option->type != OPTION_BOOL && !strchr(argv[i], '=') && i + 1 < argc)
            ret.own[ret.own_len++] = argv[++i];
    }
    return ret;
}

/* Refuses empty values: a script whose variable is not set gets an error, not the default. A flag whose default is ""
 * is required. */
static int check(enum standalone_command command, const struct standalone_settings *settings,
                 struct error *err)
{
    struct http_address address;

    if (settings->address &&
        (http_address_parse(settings->address, &address, NULL) < 0 || !address.port ||
         (*address.host && !cert_name_is_valid(address.host))))
        return error_set(err, ERROR_INVALID,
                         "--address: '%.100s' is not HOST:PORT, [IPV6]:PORT or :PORT with a port "
                         "of 1 to 65535",
                         settings->address);
    if (command == COMMAND_EXPORT && settings->status && settings->all)
        return error_set(err, ERROR_INVALID, "--status and --all: one of them");
    for (size_t i = 0; i < TABLE[command].len; i++) {
        const struct option *option = &TABLE[command].options[i];
        const char *const *value = (const void *)((const char *)settings + option->offset);

        if (option->type == OPTION_STRING && *value && !**value)
            return error_set(err, ERROR_INVALID, "--%s: must not be empty", option->name);
    }
    return admission_policy_check(&settings->policy, err);
}

int standalone_settings_parse(struct arena *arena, int argc, char *const *argv,
                              enum standalone_command *ret_command, struct standalone_settings *ret,
                              char *const **ret_rest, int *ret_rest_len, struct error *err)
{
    if (argc > 1 && str_equal(argv[1], "--completion"))
        return print_completion(arena, argc > 2 ? argv[2] : "", err);

    int r = find_command(argc > 1 ? argv[1] : "", ret_command, err);
    if (r != 0)
        return r;

    const char *home = getenv("HOME");
    struct split split = { .own_len = argc - 1 };
    char *const *own = argv + 1;

    if (*ret_command == COMMAND_SERVE) {
        split = split_arguments(arena, argc, argv);
        own = split.own;
    }
    *ret_rest = split.rest;
    *ret_rest_len = split.rest_len;
    r = options_parse(arena, &TABLE[*ret_command].program, TABLE[*ret_command].options,
                      TABLE[*ret_command].len, split.own_len, own, ret, err);
    if (r == 0 && !ret->data_dir)
        ret->data_dir = geteuid() == 0 || str_is_empty(home)
                            ? "/var/lib/propeller"
                            : arena_printf(arena, "%s/.local/share/propeller", home);
    return r == 0 ? check(*ret_command, ret, err) : r;
}
