/* version: of this program, of the API server and of the programs in the cluster. */
#include <string.h>

#include "common/base/version.h"
#include "common/kube/kinds.h"
#include "plugin/cli/objects.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    bool client;
};

static const struct option OPTIONS[] = {
    { .name = "client",
      .type = OPTION_BOOL,
      .offset = offsetof(struct settings, client),
      .help = "only this program, without a cluster" },
    COMMON_FLAGS,
};

static void add_row(cJSON *rows, const char *what, const char *version)
{
    cJSON *row = json_add_object(rows);

    json_set_string(row, "object", what);
    json_set_string(row, "version", version);
}

/* The images of Deployments of ours, in any namespace; not every user may read them. */
static void add_programs(struct session *session, cJSON *rows)
{
    const cJSON *deployments = NULL;
    struct error err;

    if (object_list(session, &KIND_DEPLOYMENT, NULL, "app.kubernetes.io/part-of=propeller",
                    &deployments, &err) < 0) {
        output_line(stderr, "programs of the cluster not checked: %s", err.message);
        return;
    }
    json_for_each (deployment, deployments) {
        const cJSON *containers =
            json_path(deployment, "spec", "template", "spec", "containers", NULL);

        add_row(rows, json_string(json_path(deployment, "metadata", "name", NULL), ""),
                json_string(json_get(json_first(containers), "image"), ""));
    }
}

static int add_server(struct session *session, cJSON *rows, struct error *err)
{
    const char *text = "";
    const cJSON *version = NULL;
    int r = session_connect(session, err);

    if (r == 0)
        r = kube_get_text(session->client, session->arena, "/version", &text, err);
    if (r == 0)
        r = json_parse(session->arena, text, strlen(text), &version, err);
    if (r == 0)
        add_row(rows, "API server", json_string(json_get(version, "gitVersion"), ""));
    return r;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    static const struct column COLUMNS[] = { { .header = "PROGRAM", .key = "object" },
                                             { .header = "VERSION", .key = "version" } };
    const struct settings *s = settings;
    cJSON *document = output_document(session->arena, "Version");
    cJSON *rows = json_set_array(document, "programs");

    add_row(rows, "kubectl-propeller", version_name());
    int r = s->client ? 0 : add_server(session, rows, err);
    if (r == 0 && !s->client)
        add_programs(session, rows);
    output_rows(&session->output, document, rows, COLUMNS, ARRAY_LEN(COLUMNS));
    return r;
}

const struct command COMMAND_VERSION =
    COMMAND("version", run, struct settings, OPTIONS, 0,
            "Prints the versions of this program, the API server and the programs of the cluster.",
            EXAMPLES("version --client", "version -o json"));
