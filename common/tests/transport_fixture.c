#include "common/tests/transport_fixture.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/tests/http_talk.h"
#include "common/tests/temp_dir.h"

#define BESIDE "/beside"

struct wire wire = { .lock = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER };

static const char *handle(void *ctx UNUSED, unsigned number, const char *request)
{
    pthread_mutex_lock(&wire.lock);
    free(wire.seen);
    wire.seen = xstrdup(request);
    wire.beside += str_has_prefix(request, "GET " BESIDE " ");
    const char *reply = wire.replies[number < wire.reply_count ? number : wire.reply_count - 1];
    pthread_cond_broadcast(&wire.arrived);
    pthread_mutex_unlock(&wire.lock);
    return reply;
}

void wire_set_replies(const char *const *list, size_t len)
{
    pthread_mutex_lock(&wire.lock);
    wire.replies = list;
    wire.reply_count = len;
    pthread_mutex_unlock(&wire.lock);
}

void wire_set_up(void)
{
    json_init();
    (void)signal(SIGPIPE, SIG_IGN);
    static const char *const PROXIES[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                           "ALL_PROXY" };
    for (size_t i = 0; i < ARRAY_LEN(PROXIES); i++)
        unsetenv(PROXIES[i]);
    wire.arena = arena_create();
    wire.dir = temp_dir(wire.arena);
    WIRE_REPLIES(WIRE_OK);
    wire.server = raw_server_start(handle, NULL);
}

void wire_tear_down(void)
{
    transport_destroy(wire.transport);
    kube_config_destroy(wire.config);
    raw_server_stop(wire.server);
    free(wire.seen);
    arena_destroy(wire.arena);
}

void wire_connect_to(const char *url, const char *user, uint32_t timeout_ms)
{
    const char *text = arena_printf(wire.arena,
                                    "current-context: x\n"
                                    "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
                                    "clusters: [{name: x, cluster: {server: '%s'}}]\n"
                                    "users: [{name: x, user: {%s}}]\n",
                                    url, user);
    transport_destroy(wire.transport);
    kube_config_destroy(wire.config);
    ck_assert_msg(kube_config_load(temp_file(wire.arena, wire.dir, "config", text), &wire.config,
                                   &wire.err) == 0,
                  "%s", wire.err.message);
    wire.transport = transport_create(wire.config, timeout_ms);
}

const char *wire_url(const char *scheme, const char *path)
{
    return arena_printf(wire.arena, "%s://127.0.0.1:%d%s", scheme, raw_server_port(wire.server),
                        path);
}

void wire_connect(const char *user)
{
    wire_connect_to(wire_url("http", ""), user, WIRE_PATIENCE_MS);
}

int wire_ask(const char *method, const char *path)
{
    struct http_request request = { .method = method, .path = path };
    return transport_roundtrip(wire.transport, wire.arena, &request, &wire.response, &wire.err);
}

/* When these are there, so is what came before: connections are accepted in order, and what two of them say is
 * read in the same round or in the next one. */
void wire_ask_beside(void)
{
    for (unsigned i = 0; i < WIRE_BESIDES; i++) {
        int fd = http_dial((unsigned)raw_server_port(wire.server));

        say(fd, "GET " BESIDE " HTTP/1.1\r\n\r\n");
        pthread_mutex_lock(&wire.lock);
        while (wire.beside == i)
            pthread_cond_wait(&wire.arrived, &wire.lock);
        pthread_mutex_unlock(&wire.lock);
        close(fd);
    }
}

/* Nothing came yet. */
void wire_restart_server(void)
{
    raw_server_stop(wire.server);
    wire.beside = 0;
    wire.server = raw_server_start(handle, NULL);
}
