/* Following an object on an API server whose cache is behind. */
#include "plugin/cli/follow.h"

#include "common/api/kinds.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "common/tests/tiny_server.h"

#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" items "]}"

static struct tiny_server *server;
static struct session session;
static struct error err;

static void set_up(void)
{
    arena_set_up();
    server = tiny_server_start(0);
    const char *config = arena_printf(
        arena,
        "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {}}],\n"
        "contexts: [{name: c, context: {cluster: c, user: u, namespace: lab}}],\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]}\n",
        tiny_server_port(server));
    session = (struct session){ .arena = arena, .signals = -1 };
    int r = kube_config_load(temp_file(arena, temp_dir(arena), "config", config), &session.config,
                             &err);
    ck_assert_msg(r == 0, "%s", err.message);
}

static void tear_down(void)
{
    session_end(&session);
    tiny_server_stop(server);
    arena_tear_down();
}

TEST_GROUP("follow", set_up, tear_down);

static int look(void *ctx UNUSED, const cJSON *object)
{
    return object ? EXIT_DONE : EXIT_NO;
}

TEST(an_object_that_the_cache_of_the_server_lacks_is_there)
{
    struct object_ref ref = { .kind = &KIND_TASK, .takes = TAKES_TASK };

    ck_assert(kube_name_set(&ref.name, "lab", "add"));
    tiny_server_answer(server, "/tasks?", 200,
                       LIST("{\"metadata\":{\"name\":\"add\",\"namespace\":\"lab\",\"uid\":\"u\","
                            "\"resourceVersion\":\"6\"}}"));
    tiny_server_answer(server, "resourceVersion=0", 200, LIST(""));
    int r = follow(&session, &ref, 0, look, NULL, &err);
    ck_assert_msg(r == EXIT_DONE, "%d: %s", r, err.message);
}
