/* Each reconciler's requests bear the token of its own ServiceAccount. */
#include "controller/process/identities.h"

#include "common/api/kinds.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "common/tests/tiny_server.h"

#define A_MOMENT_MS 60000

static const char *const NAMES[] = { "task", "proplet", "certificate" };

static struct arena *arena;
static struct tiny_server *server;
static struct kube_config *config;
static struct kube_client *client;
static struct identities *identities;
static struct error err;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    server = tiny_server_start(0);

    const char *text = arena_printf(arena,
                                    "{apiVersion: v1, kind: Config, current-context: c,\n"
                                    "contexts: [{name: c, context: {cluster: c, user: u}}],\n"
                                    "clusters: [{name: c, cluster: {server: "
                                    "'http://127.0.0.1:%u'}}],\n"
                                    "users: [{name: u, user: {}}]}\n",
                                    tiny_server_port(server));
    ck_assert_int_eq(
        kube_config_load(temp_file(arena, temp_dir(arena), "config", text), &config, &err), 0);
    client = kube_client_create(config, A_MOMENT_MS);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        tiny_server_answer(
            server, arena_printf(arena, "/serviceaccounts/%s-controller/token", NAMES[i]), 201,
            arena_printf(arena,
                         "{\"spec\":{\"expirationSeconds\":3600},"
                         "\"status\":{\"token\":\"token-of-%s\","
                         "\"expirationTimestamp\":\"2999-01-01T00:00:00Z\"}}",
                         NAMES[i]));
    tiny_server_answer(server, "/tasks/one", 200, "{}");
}

static void tear_down(void)
{
    identities_destroy(identities);
    kube_client_destroy(client);
    kube_config_destroy(config);
    tiny_server_stop(server);
    arena_destroy(arena);
}

TEST_GROUP("identities", set_up, tear_down);

static void create(bool separate)
{
    const struct identities_options options = {
        .config = config,
        .client = client,
        .separate = separate,
        .timeout_ms = A_MOMENT_MS,
        .clock = &CLOCK_SYSTEM,
    };

    identities = identities_create(&options);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        ck_assert_int_eq(identities_add(identities, NAMES[i], false, &err), 0);
}

static void ask_as(const char *identity)
{
    const struct kube_name name = { .ns = "default", .name = "one" };

    int r =
        kube_delete(identities_client(identities, identity), &KIND_TASK, &name, NULL, NULL, &err);
    ck_assert_msg(r == 0, "%s", err.message);
}

TEST(requests_of_a_reconciler_bear_the_token_of_its_own_account)
{
    create(true);
    for (int turn = 0; turn < 2; turn++) { /* nor does it take over the last one's */
        for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
            const char *line = arena_printf(arena, "Authorization: Bearer token-of-%s", NAMES[i]);
            ask_as(NAMES[i]);
            ck_assert_msg(tiny_server_saw(server, "/tasks/one", line), "no '%s'", line);
        }
    }
}

TEST(without_accounts_all_are_the_process)
{
    create(false);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        ask_as(NAMES[i]);
        ck_assert_ptr_eq(identities_client(identities, NAMES[i]),
                         identities_client(identities, NAMES[0]));
    }
}
