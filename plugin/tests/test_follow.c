/* Following an object on an API server whose cache is behind. */
#include "plugin/cli/follow.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "common/tests/tiny_server.h"

#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" items "]}"

static struct tiny_server *server;
static struct common_flags flags;
static struct session session;
static struct error err;

static void set_up(void)
{
    sigset_t set;

    (void)sigemptyset(&set); /* threads of the test leave it to the guard */
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    arena_set_up();
    server = tiny_server_start(0);
    const char *config = arena_printf(
        arena,
        "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {}}],\n"
        "contexts: [{name: c, context: {cluster: c, user: u, namespace: lab}}],\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]}\n",
        tiny_server_port(server));
    flags =
        (struct common_flags){ .kubeconfig = temp_file(arena, temp_dir(arena), "config", config),
                               .request_timeout_ms = 120000 };
    session = (struct session){ .arena = arena, .flags = &flags };
    int r = session_connect(&session, &err);
    ck_assert_msg(r == 0, "%s", err.message);
}

static void tear_down(void)
{
    session_end(&session);
    tiny_server_stop(server);
    arena_tear_down();
}

TEST_GROUP("follow", set_up, tear_down);

#define TASK                                                                                       \
    "{\"metadata\":{\"name\":\"add\",\"namespace\":\"lab\",\"uid\":\"u\",\"resourceVersion\":"     \
    "\"6\"}}"

static const struct object_ref ADD = { .kind = &KIND_TASK,
                                       .takes = TAKES_TASK,
                                       .name = { .ns = "lab", .name = "add" } };
static int looks;

/* The end is at the second look, after the first list of the watch. */
static int look(void *ctx UNUSED, const cJSON *object)
{
    looks++;
    if (!object)
        return EXIT_NO;
    return looks == 2 ? EXIT_DONE : FOLLOW_ON;
}

static int follow_add(void)
{
    session_guard(&session);
    looks = 0;
    return follow(&session, &ADD, look, NULL, &err);
}

TEST(an_object_that_the_cache_of_the_server_lacks_is_there)
{
    tiny_server_answer(server, "/tasks/add", 200, TASK);
    tiny_server_answer(server, "/tasks?", 200, LIST(TASK));
    tiny_server_answer(server, "resourceVersion=0", 200, LIST(""));
    int r = follow_add();
    ck_assert_msg(r == EXIT_DONE, "%d: %s", r, err.message);
}

static const struct {
    int status;
    enum error_code code;
} REFUSALS[] = { { 401, ERROR_UNAVAILABLE }, { 403, ERROR_FORBIDDEN }, { 500, ERROR_INTERNAL } };

TEST_EACH(a_server_that_refuses_the_first_request_ends_it, REFUSALS)
{
    tiny_server_answer(server, "/tasks/add", REFUSALS[_i].status, "");
    ck_assert_int_eq(follow_add(), -(int)REFUSALS[_i].code);
    ck_assert_int_eq(looks, 0);
}

TEST(a_watch_that_is_refused_for_good_ends_it)
{
    tiny_server_answer(server, "/tasks/add", 200, TASK);
    tiny_server_answer(server, "/tasks?", 403, "");
    ck_assert_int_eq(follow_add(), -ERROR_FORBIDDEN);
    ck_assert_ptr_nonnull(strstr(err.message, "list tasks"));
}

TEST(time_ends_it)
{
    tiny_server_answer(server, "/tasks/add", 200, TASK);
    tiny_server_answer_in_part(server, "/tasks?", "{");
    session_guard(&session);
    session_set_limit(&session, 100);
    ck_assert_int_eq(follow_add(), EXIT_TIME_OUT);
    session_go_on(&session);
    ck_assert_int_eq(session_ended(&session), 0);
}

static void *send_signal(void *ctx UNUSED)
{
    tiny_server_wait(server, "/tasks/add", 1); /* it is asked, and does not answer */
    ck_assert_int_eq(kill(getpid(), SIGHUP), 0);
    while (!session_ended(&session))
        (void)sched_yield();
    ck_assert_int_eq(kill(getpid(), SIGHUP), 0); /* as timeout(1) sends it to the group too */
    return NULL;
}

TEST(a_signal_ends_a_request_and_the_next_one_works)
{
    const cJSON *object = NULL;
    pthread_t thread;

    tiny_server_answer_in_part(server, "/tasks/add", "{");
    session_guard(&session);
    ck_assert_int_eq(pthread_create(&thread, NULL, send_signal, NULL), 0);
    ck_assert_int_eq(follow_add(), 128 + SIGHUP);
    pthread_join(thread, NULL);
    tiny_server_answer(server, "/tasks/add", 200, TASK);
    session_go_on(&session);
    ck_assert_int_eq(kill(getpid(), SIGHUP), 0);
    ck_assert_int_eq(object_get(&session, &ADD, &object, &err), 0);
}
