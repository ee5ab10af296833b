#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/random.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/net/mqtt_internal.h"

#define DEFAULT_BACKOFF_MS 2000
#define MAX_BACKOFF_MS 30000
/* A connection that lasted so long was a good one: the next failure is a first one. */
#define STABLE_MS 30000

#define MIN_KEEP_ALIVE_S 5 /* the library's */
#define DEFAULT_KEEP_ALIVE_S 30

/* How often somebody who may not act, or cannot settle, asks again. */
#define ASK_AGAIN_MS 100

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void init_library(void)
{
    mosquitto_lib_init();
}

static void copy(const char **s)
{
    if (*s)
        *s = xstrdup(*s);
}

static char *broker_name(const struct mqtt_options *options)
{
    bool ipv6 = strchr(options->host, ':');
    size_t size = strlen(options->host) + sizeof("[]:65535");
    char *name = xmalloc(size);

    (void)snprintf(name, size, "%s%s%s:%u", ipv6 ? "[" : "", options->host, ipv6 ? "]" : "",
                   options->port);
    return name;
}

struct mqtt *mqtt_create(const struct mqtt_options *options, const struct mqtt_handlers *handlers)
{
    struct mqtt *mqtt = xcalloc(1, sizeof(*mqtt));

    assert(options->host && options->client_id && handlers->message);
    pthread_once(&library_once, init_library);
    mqtt->options = *options;
    mqtt->handlers = *handlers;
    copy(&mqtt->options.host);
    copy(&mqtt->options.client_id);
    copy(&mqtt->options.user_name);
    copy(&mqtt->options.password);
    copy(&mqtt->options.password_file);
    copy(&mqtt->options.ca_file);
    copy(&mqtt->options.cert_file);
    copy(&mqtt->options.key_file);
    copy(&mqtt->options.retained);
    if (options->keep_alive_s < MIN_KEEP_ALIVE_S)
        mqtt->options.keep_alive_s =
            options->keep_alive_s ? MIN_KEEP_ALIVE_S : DEFAULT_KEEP_ALIVE_S;
    if (!options->backoff_ms)
        mqtt->options.backoff_ms = DEFAULT_BACKOFF_MS;
    mqtt->broker = broker_name(options);
    (void)str_copy(mqtt->why, sizeof(mqtt->why), "not started");
    mqtt->wake_fd = -1;
    mqtt->filters = map_create(free);
    TAILQ_INIT(&mqtt->queue);
    pthread_mutex_init(&mqtt->lock, NULL);
    return mqtt;
}

void mqtt_destroy(struct mqtt *mqtt)
{
    if (!mqtt)
        return;
    mqtt_stop(mqtt);

    const struct mqtt_options *options = &mqtt->options;
    const char *strings[] = { options->host,          options->client_id, options->user_name,
                              options->password_file, options->ca_file,   options->cert_file,
                              options->key_file,      options->password,  options->retained };

    if (options->password)
        explicit_bzero((char *)(uintptr_t)options->password, strlen(options->password));
    for (size_t i = 0; i < ARRAY_LEN(strings); i++)
        free((char *)(uintptr_t)strings[i]);
    free(mqtt->broker);
    map_destroy(mqtt->filters);
    pthread_mutex_destroy(&mqtt->lock);
    free(mqtt);
}

void mqtt_wake(struct mqtt *mqtt)
{
    if (mqtt->wake_fd >= 0)
        (void)eventfd_write(mqtt->wake_fd, 1);
}

void mqtt_drain_wakes(struct mqtt *mqtt)
{
    eventfd_t count;

    (void)eventfd_read(mqtt->wake_fd, &count);
}

bool mqtt_is_stopping(struct mqtt *mqtt)
{
    pthread_mutex_lock(&mqtt->lock);

    bool stopping = mqtt->stopping;

    pthread_mutex_unlock(&mqtt->lock);
    return stopping;
}

bool mqtt_may_act(const struct mqtt *mqtt)
{
    return !mqtt->options.may_act || mqtt->options.may_act(mqtt->options.may_act_ctx);
}

bool mqtt_is_settled(struct mqtt *mqtt)
{
    if (mqtt->unsettled && mqtt->options.settle &&
        !mqtt->options.settle(mqtt->options.settle_ctx, ASK_AGAIN_MS))
        return false;
    mqtt->unsettled = false;
    return true;
}

void mqtt_pause(struct mqtt *mqtt, int64_t ms)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + ms;
    struct pollfd wake = { .fd = mqtt->wake_fd, .events = POLLIN };

    while (ms > 0 && !mqtt_is_stopping(mqtt)) {
        if (poll(&wake, 1, (int)ms) > 0)
            mqtt_drain_wakes(mqtt);
        ms = end_ms - clock_monotonic_ms(&CLOCK_SYSTEM);
    }
}

/* Messages of the connection before must be settled, too: the broker sends them again, and somebody
 * who cannot write them would hold them twice, then three times. */
static bool wait_allowed(struct mqtt *mqtt)
{
    while (!mqtt_is_stopping(mqtt)) {
        if (mqtt_may_act(mqtt) && mqtt_is_settled(mqtt))
            return true;
        mqtt_pause(mqtt, ASK_AGAIN_MS);
    }
    return false;
}

static void tell_end(struct mqtt *mqtt, const char *why)
{
    bool stopping = mqtt_is_stopping(mqtt);

    mqtt_publish_end(mqtt, stopping || !mqtt_may_act(mqtt) ? ERROR_CANCELED : ERROR_UNAVAILABLE,
                     why);
    if (mqtt->handlers.state)
        mqtt->handlers.state(mqtt->handlers.ctx, false, false, stopping ? NULL : why);
}

static void connect_and_serve(struct mqtt *mqtt)
{
    struct connection connection = { .mqtt = mqtt };
    struct error err = { 0 };

    if (mqtt_connection_open(&connection, &err) == 0) {
        const char *why = mqtt_serve(&connection);

        (void)error_set(&err, ERROR_UNAVAILABLE, "connection to '%s': %s", mqtt->broker,
                        why ? why : "stopped");
    }
    mqtt_connection_close(&connection);
    tell_end(mqtt, err.message);
}

int64_t mqtt_jittered(int64_t ms)
{
    uint32_t random;

    if (getrandom(&random, sizeof(random), 0) < 0)
        random = 0;
    return ms - (int64_t)random % (ms / 2);
}

static void *run(void *data)
{
    struct mqtt *mqtt = data;
    int64_t backoff_ms = mqtt->options.backoff_ms;

    while (wait_allowed(mqtt)) {
        int64_t before_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

        connect_and_serve(mqtt);
        if (clock_monotonic_ms(&CLOCK_SYSTEM) - before_ms >= STABLE_MS)
            backoff_ms = mqtt->options.backoff_ms;
        mqtt_pause(mqtt, mqtt_jittered(backoff_ms));
        backoff_ms = backoff_ms * 2 > MAX_BACKOFF_MS ? MAX_BACKOFF_MS : backoff_ms * 2;
    }
    return NULL;
}

/* With the lock. */
static void close_wake_fd(struct mqtt *mqtt)
{
    close(mqtt->wake_fd);
    mqtt->wake_fd = -1;
}

int mqtt_start(struct mqtt *mqtt, struct error *err)
{
    int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (wake_fd < 0)
        return error_set(err, ERROR_INTERNAL, "eventfd: %s", strerrordesc_np(errno));

    pthread_mutex_lock(&mqtt->lock);
    assert(!mqtt->running);
    mqtt->wake_fd = wake_fd;
    mqtt->stopping = false;
    mqtt->canceled = false;
    (void)str_copy(mqtt->why, sizeof(mqtt->why), "connecting");

    int r = pthread_create(&mqtt->thread, NULL, run, mqtt);

    mqtt->running = r == 0;
    if (r != 0)
        close_wake_fd(mqtt);
    pthread_mutex_unlock(&mqtt->lock);
    if (r != 0)
        return error_set(err, ERROR_INTERNAL, "start MQTT thread: %s", strerrordesc_np(r));
    return 0;
}

void mqtt_stop(struct mqtt *mqtt)
{
    pthread_mutex_lock(&mqtt->lock);

    bool running = mqtt->running;

    mqtt->stopping = true;
    mqtt_wake(mqtt);
    pthread_mutex_unlock(&mqtt->lock);
    if (!running)
        return;

    pthread_join(mqtt->thread, NULL);
    pthread_mutex_lock(&mqtt->lock);
    mqtt->running = false;
    close_wake_fd(mqtt);
    pthread_mutex_unlock(&mqtt->lock);
}

bool mqtt_connected(struct mqtt *mqtt, char *why, size_t size)
{
    pthread_mutex_lock(&mqtt->lock);

    bool connected = mqtt->connected;

    (void)snprintf(why, size, "%s", mqtt->why);
    pthread_mutex_unlock(&mqtt->lock);
    return connected;
}
