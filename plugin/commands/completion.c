/* completion: scripts for shells, and the words that they ask for. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct str_list words; /* "bash"; or "words" and the command line so far */
};

static const struct option OPTIONS[] = { COMMON_FLAGS };

/* A user who has pressed the key does not wait longer for names. */
#define PATIENCE_MS 2000

/* The last line of the words: whether names of files come beside them. */
#define FILES ":0"
#define NO_FILES ":4"

/* Each asks `completion words -- WORD...`, whose last line is for kubectl (cobra's protocol) and begins with a colon. */
static const struct {
    const char *shell, *script;
} SCRIPTS[] = {
    { "bash", "_kubectl_propeller() {\n"
              "    local words=(\"${COMP_WORDS[@]:1:COMP_CWORD}\") last\n"
              "    mapfile -t COMPREPLY < <(kubectl-propeller completion words -- \"${words[@]}\" "
              "2>/dev/null)\n"
              "    ((${#COMPREPLY[@]})) || return 0\n"
              "    last=${COMPREPLY[-1]}\n"
              "    unset 'COMPREPLY[-1]'\n"
              "    [[ $last != " FILES " ]] || compopt -o default\n"
              "    [[ ${COMPREPLY[0]:-} != */ ]] || compopt -o nospace\n"
              "}\n"
              "complete -F _kubectl_propeller kubectl-propeller\n" },
    { "zsh", "#compdef kubectl-propeller\n"
             "_kubectl_propeller() {\n"
             "    local -a found\n"
             "    found=(${(f)\"$(kubectl-propeller completion words -- \"${words[@]:1:$((CURRENT "
             "- 1))}\" 2>/dev/null)\"})\n"
             "    [[ ${found[-1]} != " FILES " ]] || _files\n"
             "    compadd -S '' -- ${found[1,-2]}\n"
             "}\n"
             "compdef _kubectl_propeller kubectl-propeller\n" },
    { "fish",
      "complete -c kubectl-propeller -f -a '(kubectl-propeller completion words -- "
      "(commandline -opc)[2..] (commandline -ct) 2>/dev/null | string match -v \":*\")'\n" },
};

static const struct command *command_of(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (str_equal(COMMANDS[i]->name, name))
            return COMMANDS[i];
    }
    return NULL;
}

/* A word that begins as what the user has typed. */
static void offer(const char *typed, const char *word)
{
    if (str_has_prefix(word, typed))
        output_line(stdout, "%s", word);
}

static const struct option *option_of(const struct command *command, const char *word)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option *option = &command->options[i];

        if ((str_has_prefix(word, "--") && str_equal(word + 2, option->name)) ||
            (option->letter && word[0] == '-' && word[1] == option->letter && !word[2]))
            return option;
    }
    return NULL;
}

static void offer_flags(struct arena *arena, const struct command *command, const char *typed)
{
    for (size_t i = 0; i < command->option_count; i++)
        offer(typed, arena_printf(arena, "--%s", command->options[i].name));
}

struct offering {
    struct session *session;
    const char *prefix, *typed;
};

static int offer_name(void *ctx, const cJSON *object, struct error *err UNUSED)
{
    const struct offering *offering = ctx;

    offer(offering->typed,
          arena_printf(offering->session->arena, "%s%s", offering->prefix,
                       json_string(json_path(object, "metadata", "name", NULL), "")));
    return 0;
}

/* Names of one kind in the namespace of the flags that were typed so far; none where they cannot be read. */
static void offer_names(struct session *session, const struct kube_kind *kind, const char *prefix,
                        const char *typed)
{
    const struct kube_list_options options = { .ns = session->ns, .metadata_only = true };
    struct offering offering = { session, prefix, typed };

    (void)!kube_list(session->client, kind, &options, offer_name, &offering, NULL);
}

static void offer_objects(struct session *session, const struct command *command, const char *typed)
{
    const char *slash = strchr(typed, '/');
    struct object_ref ref;

    if (session_connect(session, NULL) < 0)
        return;
    /* a kind that the command takes alone needs no word before its name */
    if (!slash && object_ref_parse(session, command->takes, "x", &ref, NULL) == 0) {
        offer_names(session, ref.kind, "", typed);
        return;
    }
    for (size_t i = 0; !slash && object_kind_name(i); i++) {
        const char *kind = arena_printf(session->arena, "%s/", object_kind_name(i));

        if (object_ref_parse(session, command->takes, arena_printf(session->arena, "%sx", kind),
                             &ref, NULL) == 0)
            offer(typed, kind);
    }
    if (slash &&
        object_ref_parse(session, command->takes,
                         arena_printf(session->arena, "%.*sx", (int)(slash - typed + 1), typed),
                         &ref, NULL) == 0)
        offer_names(session, ref.kind,
                    arena_strndup(session->arena, typed, (size_t)(slash - typed) + 1), typed);
}

/* words: what is typed, the last of it perhaps in part. Returns what the shell adds, in the words of cobra. */
static const char *complete(struct session *session, const char *const *words, size_t len)
{
    const char *typed = len ? words[len - 1] : "";
    const struct command *command = len > 1 ? command_of(words[0]) : NULL;

    for (size_t i = 0; len <= 1 && i < COMMAND_COUNT; i++)
        offer(typed, COMMANDS[i]->name);
    if (!command)
        return NO_FILES;

    const struct option *before = len > 2 ? option_of(command, words[len - 2]) : NULL;
    if (before && before->type != OPTION_BOOL) {
        for (size_t i = 0; before->choices && before->choices[i]; i++)
            offer(typed, before->choices[i]);
        return str_equal(before->value_name, "FILE") ? FILES : NO_FILES;
    }
    if (typed[0] == '-') {
        offer_flags(session->arena, command, typed);
        return NO_FILES;
    }
    if (!command->takes)
        return NO_FILES;

    /* flags that were typed say where to look */
    struct common_flags *settings = arena_alloc(session->arena, 1, command->size);
    if (options_parse(session->arena, &command->program, command->options, command->option_count,
                      (int)len - 1, (char *const *)(uintptr_t)words, settings, NULL) != 0)
        return NO_FILES;
    settings->request_timeout_ms = PATIENCE_MS;
    session->flags = settings;
    offer_objects(session, command, typed);
    return NO_FILES;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    const struct str_list *words = &((const struct settings *)settings)->words;
    const char *what = words->len ? words->items[0] : "";

    if (str_equal(what, "words")) {
        output_line(stdout, "%s", complete(session, words->items + 1, words->len - 1));
        return EXIT_DONE;
    }
    for (size_t i = 0; i < ARRAY_LEN(SCRIPTS); i++) {
        if (words->len == 1 && str_equal(what, SCRIPTS[i].shell)) {
            (void)fputs(SCRIPTS[i].script, stdout);
            return EXIT_DONE;
        }
    }
    return error_set(err, ERROR_INVALID, "the argument must be bash, zsh or fish");
}

const struct command COMMAND_COMPLETION =
    COMMAND("completion", run, struct settings, OPTIONS, 0,
            "Prints a script with which a shell completes commands and names.",
            ARGUMENTS(struct settings, words, "bash|zsh|fish"),
            EXAMPLES("completion bash >/etc/bash_completion.d/kubectl-propeller",
                     "completion fish >~/.config/fish/completions/kubectl-propeller.fish"));
