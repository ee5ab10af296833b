#include "webhook/tests/serving_fixture.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/tests/certs.h"
#include "common/tests/process.h"
#include "common/tests/temp_dir.h"
#include "webhook/handler.h"

#define POLL_MS 10
/* Tries of a wait, of POLL_MS each. */
#define PATIENCE 3000

struct arena *serving_arena;
struct serving *serving;
const char *serving_dir;

static char *certificates; /* directory */
static char ca_file[4096];
static _Atomic int64_t ahead_us;
static struct admission_settings settings = { .clock = &CLOCK_SYSTEM };

static int64_t wall_us(void *ctx UNUSED)
{
    return clock_wall_us(&CLOCK_SYSTEM) + atomic_load(&ahead_us);
}

static int64_t monotonic_ms(void *ctx UNUSED)
{
    return clock_monotonic_ms(&CLOCK_SYSTEM);
}

static const struct clock CLOCK = { NULL, monotonic_ms, monotonic_ms, wall_us };

void serving_make_certificates(void)
{
    static const char *const NAMES[] = { "a", "b" };

    certificates = temp_dir_create();
    (void)snprintf(ca_file, sizeof(ca_file), "%s/ca.crt", certificates);
    certs_make_ca(certificates, "ca");
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        certs_make(certificates, "ca", NAMES[i], "DNS:localhost");
}

void serving_remove_certificates(void)
{
    temp_dir_destroy(certificates);
}

const char *serving_ca(void)
{
    return ca_file;
}

const char *serving_file_of(const char *pair, const char *suffix)
{
    return arena_printf(serving_arena, "%s/%s%s", certificates, pair, suffix);
}

void serving_set_up(void)
{
    json_init();
    log_configure(LOG_ERROR, LOG_TEXT);
    serving_arena = arena_create();
    serving_dir = temp_dir(serving_arena);
    atomic_store(&ahead_us, 0);

    const struct serving_options options = {
        .cert_dir = serving_dir,
        .poll_ms = POLL_MS,
        .clock = &CLOCK,
        .http = { .address = "127.0.0.1:0",
                  .handler = admission_handle,
                  .ctx = &settings,
                  .threads = 2,
                  .max_connections = 64,
                  .max_body = ADMISSION_MAX_BODY },
    };
    serving = serving_create(&options);
}

void serving_tear_down(void)
{
    serving_stop(serving);
    serving_join(serving);
    serving_destroy(serving);
    arena_destroy(serving_arena);
}

void serving_advance_clock(int64_t seconds)
{
    atomic_fetch_add(&ahead_us, seconds * 1000000);
}

static void put(const char *pair, const char *suffix, const char *name)
{
    char *text = temp_file_read(certificates, arena_printf(serving_arena, "%s%s", pair, suffix));

    temp_file(serving_arena, serving_dir, name, text);
    free(text);
}

void serving_put_cert(const char *pair)
{
    put(pair, ".crt", "tls.crt");
}

void serving_put_key(const char *pair)
{
    put(pair, ".key", "tls.key");
}

void serving_put_pair(const char *pair)
{
    serving_put_cert(pair);
    serving_put_key(pair);
}

void serving_begin(void)
{
    struct error err = { 0 };

    ck_assert_msg(serving_start(serving, &err) == 0, "%s", err.message);
}

bool serving_is_ready(char why[static 300])
{
    why[0] = '\0';
    return serving_check(serving, why, 300) == 1;
}

void serving_wait_ready(void)
{
    char why[300];

    for (int i = 0; !serving_is_ready(why); i++) {
        ck_assert_msg(i < PATIENCE, "not ready: %s", why);
        poll(NULL, 0, POLL_MS);
    }
}

void serving_wait_unready(const char *text)
{
    char why[300];

    for (int i = 0; serving_is_ready(why) || !strstr(why, text); i++) {
        ck_assert_msg(i < PATIENCE, "'%s' is not in '%s'", text, why);
        poll(NULL, 0, POLL_MS);
    }
}

const char *serving_subject(void)
{
    CLEANUP(tls_client_destroyp) struct tls_client *client = tls_client_create(serving_ca());
    struct tls_reply reply =
        tls_client_post(client, serving_arena, serving_port(serving), SERVING_PATH, "{", 1);

    return reply.status == 400 ? reply.subject : "";
}

void serving_wait_subject(const char *subject)
{
    const char *now = "";

    for (int i = 0; !str_equal(now, subject); i++) {
        ck_assert_msg(i < PATIENCE, "'%s' instead of '%s'", now, subject);
        if (i)
            poll(NULL, 0, POLL_MS);
        now = serving_subject();
    }
}
