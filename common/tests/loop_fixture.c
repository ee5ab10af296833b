#include "common/tests/loop_fixture.h"

#include "common/base/log.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

struct tiny_server *server;
struct watch_loop *loop;

static struct arena *arena;
static const char *dir, *token_file;
static struct kube_config *config;

void loop_write_token(const char *token)
{
    token_file = temp_file(arena, dir, "token", token);
}

void loop_set_up(void)
{
    struct error err = { 0 };

    json_init();
    log_configure(LOG_ERROR, LOG_TEXT); /* warnings are wanted here, and many */
    arena = arena_create();
    dir = temp_dir(arena);
    loop_write_token("first-token\n");
    server = tiny_server_start(process_free_port()); /* which nobody else takes while it is away */

    const char *text =
        arena_printf(arena,
                     "{apiVersion: v1, kind: Config, current-context: c,\n"
                     "contexts: [{name: c, context: {cluster: c, user: u}}],\n"
                     "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}],\n"
                     "users: [{name: u, user: {tokenFile: '%s'}}]}\n",
                     tiny_server_port(server), token_file);
    int r = kube_config_load(temp_file(arena, dir, "config", text), &config, &err);
    ck_assert_msg(r == 0, "%s", err.message);
    loop = watch_loop_create(config);
}

void loop_tear_down(void)
{
    watch_loop_stop(loop);
    watch_loop_destroy(loop);
    kube_config_destroy(config);
    if (server)
        tiny_server_stop(server);
    arena_destroy(arena);
}

void loop_start(void)
{
    struct error err = { 0 };
    int r = watch_loop_start(loop, &err);

    ck_assert_msg(r == 0, "%s", err.message);
}
