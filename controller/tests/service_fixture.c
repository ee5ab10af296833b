#include "controller/tests/service_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/base/cond.h"
#include "common/base/digest.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

#define PATIENCE_MS 20000

struct fake_registry *registry, *other;
struct fake_clock clock_of_test;
struct wasm_modules *modules;
struct wasm_modules_settings settings;
struct wasm_module_answer answer;
unsigned secret_reads;

static const char *entries[2];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static unsigned wakes;
static enum error_code secret_error; /* of reads from now on */
static const char *secret_login;     /* NULL: the Secret does not exist */

static void wake(void *ctx UNUSED, const struct kube_name *task UNUSED)
{
    pthread_mutex_lock(&lock);
    wakes++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int read_secret(void *ctx UNUSED, struct arena *target, const struct kube_name *name,
                       const cJSON **ret, struct error *err)
{
    cJSON *secret = json_object(target);
    const char *config, *login;
    enum error_code code;

    pthread_mutex_lock(&lock);
    secret_reads++;
    login = secret_login;
    code = secret_error;
    pthread_mutex_unlock(&lock);
    if (code)
        return error_set(err, code, "no");
    if (!login || strcmp(name->ns, "private") != 0)
        return error_set(err, ERROR_NOT_FOUND, "no Secret '%s'", name->name);
    config =
        arena_printf(target, "{\"auths\":{\"%s\":{\"auth\":\"%s\"}}}", fake_registry_host(registry),
                     base64_encode(target, login, strlen(login)));
    json_set_string(secret, "type", "kubernetes.io/dockerconfigjson");
    json_set_string(json_set_object(secret, "data"), ".dockerconfigjson",
                    base64_encode(target, config, strlen(config)));
    *ret = secret;
    return 0;
}

void set_secret(enum error_code code, const char *login)
{
    pthread_mutex_lock(&lock);
    secret_error = code;
    secret_login = login;
    pthread_mutex_unlock(&lock);
}

static void start_service(void)
{
    const struct wasm_modules_host host = { .clock = &clock_of_test.clock,
                                            .read_secret = read_secret,
                                            .wake = wake };
    struct error err = { 0 };

    ck_assert_msg(wasm_modules_create(&settings, &host, &modules, &err) == 0, "%s", err.message);
    ck_assert_int_eq(wasm_modules_start(modules, &err), 0);
}

void restart_service(void)
{
    wasm_modules_stop(modules);
    wasm_modules_destroy(modules);
    start_service();
}

void service_set_up(void)
{
    arena_set_up();
    json_init();
    (void)signal(SIGPIPE, SIG_IGN);
    cond_init(&changed);
    fake_clock_init(&clock_of_test);
    registry = fake_registry_start();
    other = fake_registry_start();
    entries[0] = arena_printf(arena, "r.example=http://%s", fake_registry_host(registry));
    entries[1] = arena_printf(arena, "other.example=http://%s", fake_registry_host(other));
    settings = (struct wasm_modules_settings){
        .registries = { entries, 2 },
        .cache_dir = arena_printf(arena, "%s/modules", temp_dir(arena)),
        .cache_bytes = CACHE_BYTES,
        .max_bytes = MAX_BYTES,
    };
    start_service();
}

void service_tear_down(void)
{
    wasm_modules_stop(modules);
    wasm_modules_destroy(modules);
    fake_registry_stop(registry);
    fake_registry_stop(other);
    arena_tear_down();
}

const char *module_of(int number)
{
    char *bytes = arena_alloc(arena, MODULE_BYTES, 1);

    memcpy(bytes, "\0asm\1\0\0", 8);
    bytes[MODULE_BYTES - 1] = (char)number;
    return bytes;
}

const char *digest_of(int number)
{
    char hex[SHA256_HEX_LEN];

    return arena_printf(arena, "sha256:%s", sha256_hex(module_of(number), MODULE_BYTES, hex));
}

const char *push(struct fake_registry *to, const char *tag, int number)
{
    return fake_registry_push(to, tag, module_of(number), MODULE_BYTES);
}

const char *by_digest(const char *digest)
{
    return arena_printf(arena, "r.example/acme/add@%s", digest);
}

void want_of(const char *ns, const char *uid, const char *reference, const char *manifest,
             bool with_secret)
{
    static const char *names[] = { "pull" };
    struct wasm_module_wish wish = {
        .uid = uid, .reference = reference, .manifest = manifest, .secrets = { names, with_secret }
    };

    ck_assert(kube_name_set(&wish.task, ns, uid));
    wasm_modules_want(modules, arena, &wish, &answer);
}

unsigned wakes_seen(void)
{
    unsigned seen;

    pthread_mutex_lock(&lock);
    seen = wakes;
    pthread_mutex_unlock(&lock);
    return seen;
}

static void await_wake_until(unsigned seen, const struct timespec *deadline)
{
    pthread_mutex_lock(&lock);
    while (seen == wakes)
        ck_assert_msg(cond_wait_until(&changed, &lock, deadline), "no wake: %s", answer.message);
    pthread_mutex_unlock(&lock);
}

void await_wake(unsigned seen)
{
    struct timespec deadline = cond_deadline(PATIENCE_MS);

    await_wake_until(seen, &deadline);
}

void await_of(const char *ns, const char *uid, const char *reference, const char *manifest,
              bool with_secret, enum reason reason)
{
    struct timespec deadline = cond_deadline(PATIENCE_MS);

    for (;;) {
        unsigned seen = wakes_seen();

        want_of(ns, uid, reference, manifest, with_secret);
        if (answer.state != WASM_MODULE_PENDING || answer.reason == reason)
            return;
        await_wake_until(seen, &deadline);
    }
}

void await(const char *uid, const char *reference, const char *manifest)
{
    await_of("public", uid, reference, manifest, false, REASON_NONE);
}

void expect_ready(const char *manifest, int number)
{
    char bytes[MODULE_BYTES];
    struct error err = { 0 };

    ck_assert_msg(answer.state == WASM_MODULE_READY, "%s", answer.message);
    ck_assert_str_eq(answer.manifest, manifest);
    ck_assert_str_eq(answer.digest, digest_of(number));
    ck_assert_int_eq(answer.bytes, MODULE_BYTES);
    ck_assert_int_eq(wasm_modules_read(modules, answer.digest, 0, bytes, MODULE_BYTES, &err), 0);
    ck_assert_mem_eq(bytes, module_of(number), MODULE_BYTES);
}

void expect_failed(enum reason reason, bool is_final, const char *message)
{
    ck_assert_int_eq(answer.state, WASM_MODULE_FAILED);
    ck_assert_str_eq(reason_text(answer.reason), reason_text(reason));
    ck_assert_int_eq(answer.is_final, is_final);
    ck_assert_msg(strstr(answer.message, message) != NULL, "%s", answer.message);
    ck_assert_ptr_null(strstr(answer.message, "password"));
}
