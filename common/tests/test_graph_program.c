/* The program propeller-graph: output and exit status. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/json/json.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

static char *dir, *program;

static void begin(void)
{
    arena_set_up();
    dir = temp_dir_create();
    program = process_built("propeller-graph");
    free(temp_file_write(dir, "good",
                         "resources:\n- {type: qpu, name: fez, attributes: {vendor: ibm}, with: "
                         "[{type: qubit, count: 5}]}\n"));
    free(
        temp_file_write(dir, "local",
                        "resources:\n- {type: camera, parent: lab/attic}\n- {type: camera, parent: "
                        "lab/cellar}\n- {type: rack, parent: node-1}\n"));
    free(temp_file_write(dir, "bad", "resources:\n- {type: qpu, count: -1, colour: red}\n"));
    free(temp_file_write(dir, "proplets",
                         "kind: List\nitems:\n- {kind: Proplet, metadata: {namespace: lab, name: "
                         "attic}}\n- {kind: Task, metadata: {namespace: lab, name: cellar}}\n"));
    free(temp_file_write(dir, "nodes", "kind: Node\nmetadata: {name: node-1}\n"));
    free(temp_file_write(dir, "manifests",
                         "kind: Namespace\nmetadata: {name: x}\n---\nkind: ConfigMap\ndata:\n  "
                         "resources.yaml: |\n    resources: [{type: licence}]\n"));
}

static void finish(void)
{
    free(program);
    temp_dir_destroy(dir);
    arena_tear_down();
}

TEST_GROUP("graph_program", begin, finish);

#define MAX_WORDS 16

static const struct {
    const char *words; /* separated by blanks; @x is the file x */
    int status;
    const char *output; /* all of it, or with ~ a part of it */
} RUNS[] = {
    { "check @good", 0,
      "{\"classes\":[\"qpu\",\"qubit\"],\"environment\":[\"FLUXION_VENDOR\"],\"vertices\":[{"
      "\"attributes\":{\"vendor\":\"ibm\"},\"backend\":\"fez\",\"class\":\"qpu\",\"path\":"
      "\"/cluster/fez\",\"properties\":[\"class=qpu\",\"class=qubit\",\"fluxion.flux-framework.org/"
      "backend=fez\",\"fluxion.flux-framework.org/vendor=ibm\",\"virtual=true\"],\"size\":1},{"
      "\"attributes\":{\"vendor\":\"ibm\"},\"backend\":\"fez\",\"class\":\"qubit\",\"path\":"
      "\"/cluster/fez/qubit0\",\"properties\":[\"class=qubit\",\"fluxion.flux-framework.org/"
      "backend=fez\",\"fluxion.flux-framework.org/vendor=ibm\",\"virtual=true\"],\"size\":5}]}\n" },
    { "check @manifests", 0, "~\"path\":\"/cluster/licence0\"" },
    { "check @good --format jgf", 0,
      "~\"edges\":[{\"metadata\":{\"subsystem\":\"containment\"},\"source\":\"0\",\"target\":\"1\"}"
      ",{"
      "\"metadata\":{\"subsystem\":\"containment\"},\"source\":\"1\",\"target\":\"2\"}]" },
    { "check @bad", 1,
      "resources[0]: Invalid value: \"colour\": is no field: the fields are type, name, count, "
      "parent, "
      "attributes and with\nresources[0].count: Invalid value: -1: must be a whole number from 0 "
      "to "
      "1000000\n" },
    { "check @local", 1,
      "resources[0].parent: Invalid value: \"lab/attic\": is none of the Proplets of --proplets "
      "and "
      "Nodes of --nodes\nresources[1].parent: Invalid value: \"lab/cellar\": is none of the "
      "Proplets "
      "of --proplets and Nodes of --nodes\nresources[2].parent: Invalid value: \"node-1\": is none "
      "of "
      "the Proplets of --proplets and Nodes of --nodes\n" },
    { "check @local --nodes @nodes --proplets @proplets", 1,
      "resources[1].parent: Invalid value: \"lab/cellar\": is none of the Proplets of --proplets "
      "and "
      "Nodes of --nodes\n" },
    { "match @good --request qpu,vendor=ibm,backend=fez", 0,
      "{\"grants\":[{\"attributes\":{\"vendor\":\"ibm\"},\"backend\":\"fez\",\"class\":\"qpu\","
      "\"count\":1,\"vertex\":\"/cluster/fez\"}]}\n" },
    { "match @good --request qubit=3 --request qubit=2", 0, "~\"count\":2" },
    { "match @good --request qubit=3 --held /cluster/fez/qubit0=3", 3,
      "{\"message\":\"1 of class qubit fit, but none has 3 free\",\"refused\":\"busy\"}\n" },
    { "match @good --request qubit,!fez", 3, "~\"refused\":\"incompatible\"" },
    { "match @local --request camera --home lab/cellar", 0, "~\"vertex\":\"/cluster/camera1\"" },
    { "match @bad --request qpu", 1, "~resources[0].count" },
    { "match @good", 2, "propeller-graph: --request: say what is requested\n" },
    { "match @good --request qpu=0", 2,
      "propeller-graph: --request: 'qpu=0' is not CLASS[=N][,KEY=VALUE][,!NAME]\n" },
    { "match @good --request qpu,vendor", 2, "~'qpu,vendor' is not" },
    { "match @good --request qpu,a/b=c", 2, "~'qpu,a/b=c' is not" },
    { "match @good --request core", 2, "~'core' is not" },
    { "match @good --request ,", 2, "~',' is not" },
    { "match @good --request qpu --held /cluster/fez", 2,
      "propeller-graph: --held: '/cluster/fez' is not PATH=N\n" },
    { "check", 2, "propeller-graph: name one FILE\n" },
    { "check @good @bad", 2, "propeller-graph: name one FILE\n" },
    { "check @absent", 2, "~absent" },
    { "check @good --nodes @absent", 2, "~cannot open" },
    { "check @good --format xml", 2, "~--format" },
    { "draw @good", 2, "propeller-graph: there is no command 'draw' (--help lists all)\n" },
    { "", 2, "~Usage: propeller-graph COMMAND FILE" },
    { "--help", 0, "~Exit status: 0 done, 1 the file is refused" },
    { "--version", 0, "~propeller-graph " },
    { "--completion bash", 0, "~--request" },
    { "--completion dos", 2, "~must be bash, zsh or fish" },
};

static int run(const char *words, const char **ret_output)
{
    const char *argv[MAX_WORDS + 1] = { program };
    char *rest = arena_strdup(arena, words);
    size_t len = 1;

    for (char *word; len < MAX_WORDS && (word = strtok_r(rest, " ", &rest)) != NULL; len++)
        argv[len] = *word == '@' ? arena_printf(arena, "%s/%s", dir, word + 1) : word;

    int status = process_end(process_start(argv, arena_printf(arena, "%s/output", dir)), 0);
    char *output = temp_file_read(dir, "output");

    *ret_output = arena_strdup(arena, output);
    free(output);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST_EACH(a_command_prints_and_exits, RUNS)
{
    const char *output, *expected = RUNS[_i].output;
    int status = run(RUNS[_i].words, &output);

    ck_assert_msg(status == RUNS[_i].status, "%s: %d: %s", RUNS[_i].words, status, output);
    if (*expected == '~')
        ck_assert_msg(strstr(output, expected + 1) != NULL, "%s: %s", RUNS[_i].words, output);
    else
        ck_assert_str_eq(output, expected);
}
