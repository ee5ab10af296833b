#include <errno.h>
#include <inttypes.h>
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/fleet/links.h"
#include "common/base/alloc.h"
#include "common/base/compiler.h"

#define KEEP_ALIVE_S 60
#define EVENTS 256
#define SPARE_FILES 32
#define MISC_MS 5000
/* A connection that speaks for many has many results on their way. */
#define MAX_INFLIGHT 1000
#define MAX_TOPIC 1024
#define MAX_WILL 512

struct link {
    struct links *links;
    struct mosquitto *client;
    int64_t retry_ms; /* 0: it is up, or being made */
    uint32_t number;  /* 0: the one that listens */
    bool connected;
    bool wants_write; /* epoll was told so */
    bool broken;      /* for good */
};

struct links {
    struct links_settings settings;
    links_command_fn *command;
    void *ctx;
    struct link *items; /* settings.count + 1 */
    size_t len;
    size_t next; /* the next one to be looked at for connecting */
    int epoll;
    int64_t now_ms, misc_ms;
    struct links_counts counts;
    int granted; /* subscriptions, of two a channel */
    /* Of those with QoS 0 the library says that they left, of the others that they were
     * acknowledged: with one callback. */
    uint64_t sent, plain;
    bool refused;
};

static void channel_name(const struct links *links, uint32_t device, char *ret, size_t size)
{
    const struct links_settings *settings = &links->settings;

    if (settings->channels == 1)
        (void)snprintf(ret, size, "%s", settings->channel);
    else
        (void)snprintf(ret, size, "%s-%" PRId64, settings->channel,
                       1 + (int64_t)(device - 1) % settings->channels);
}

static void topic_of(const struct links *links, uint32_t device, const char *suffix,
                     char ret[static MAX_TOPIC])
{
    char channel[MAX_TOPIC / 4];

    channel_name(links, device, channel, sizeof(channel));
    (void)snprintf(ret, MAX_TOPIC, "m/%.256s/c/%s/control/%s", links->settings.domain, channel,
                   suffix);
}

/* ---- callbacks ---- */

static void on_connect(struct mosquitto *client, void *ctx, int refused)
{
    struct link *link = ctx;
    char topic[MAX_TOPIC];

    if (refused) {
        link->links->refused = true;
        return;
    }
    link->connected = true;
    link->links->counts.connected++;
    if (link->number)
        return;
    for (uint32_t i = 1; i <= link->links->settings.channels; i++) {
        topic_of(link->links, i, "manager/start", topic);
        (void)mosquitto_subscribe(client, NULL, topic, 1);
        topic_of(link->links, i, "manager/stop", topic);
        (void)mosquitto_subscribe(client, NULL, topic, 1);
    }
}

static void on_disconnect(struct mosquitto *client UNUSED, void *ctx, int reason UNUSED)
{
    struct link *link = ctx;

    link->links->counts.connected -= link->connected;
    link->connected = false;
    link->wants_write = false;
    if (!link->broken)
        link->retry_ms = link->links->now_ms + LINKS_RETRY_MS;
    if (!link->number) {
        link->links->granted = 0;
        link->links->counts.listening = false;
    }
}

static void on_subscribe(struct mosquitto *client UNUSED, void *ctx, int id UNUSED, int count,
                         const int *granted)
{
    struct link *link = ctx;

    if (count < 1 || granted[0] > 2)
        link->links->refused = true;
    else if (++link->links->granted == 2 * link->links->settings.channels)
        link->links->counts.listening = true;
}

static void on_publish(struct mosquitto *client UNUSED, void *ctx, int id UNUSED)
{
    struct link *link = ctx;

    link->links->sent++;
}

static void on_message(struct mosquitto *client UNUSED, void *ctx,
                       const struct mosquitto_message *message)
{
    const struct link *link = ctx;
    size_t len = strlen(message->topic);
    bool start = len > 5 && strcmp(message->topic + len - 5, "start") == 0;

    link->links->command(link->links->ctx, start, message->payload, (size_t)message->payloadlen);
}

/* ---- making ---- */

static int raise_limit(int64_t files, struct error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_set(err, ERROR_UNAVAILABLE, "open files: %s", strerror(errno));
    if (limit.rlim_cur >= (rlim_t)files)
        return 0;
    if (limit.rlim_max < (rlim_t)files)
        return error_set(err, ERROR_INVALID,
                         "%" PRId64 " connections need as many open files, allowed are %" PRIu64
                         ": raise 'ulimit -n'",
                         files - SPARE_FILES, (uint64_t)limit.rlim_max);
    limit.rlim_cur = (rlim_t)files;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_set(err, ERROR_UNAVAILABLE, "open files: %s", strerror(errno));
    return 0;
}

static void set_will(const struct link *link)
{
    const struct links_settings *settings = &link->links->settings;
    char topic[MAX_TOPIC];
    char will[MAX_WILL];
    int len =
        snprintf(will, sizeof(will),
                 "{\"proplet_id\":\"%s-%u\",\"status\":\"offline\",\"namespace\":\"default\"}",
                 settings->prefix, link->number);

    topic_of(link->links, link->number, "proplet/alive", topic);
    if (len > 0 && (size_t)len < sizeof(will))
        (void)mosquitto_will_set(link->client, topic, len, will, 1, false);
}

static int link_make(struct links *links, uint32_t number, struct error *err)
{
    const struct links_settings *settings = &links->settings;
    struct link *link = &links->items[number];
    char id[300];

    *link = (struct link){ .links = links, .number = number, .retry_ms = 1 };
    (void)snprintf(id, sizeof(id), number && settings->last_wills ? "%.250s-%u" : "%.250s-link-%u",
                   settings->prefix, number);
    link->client = mosquitto_new(id, true, link);
    if (!link->client)
        return error_set(err, ERROR_UNAVAILABLE, "connection '%s' not made: %s", id,
                         strerror(errno));
    if (settings->user &&
        mosquitto_username_pw_set(link->client, settings->user, settings->password) != 0)
        return error_set(err, ERROR_INVALID, "--user is not usable");
    (void)mosquitto_max_inflight_messages_set(link->client, MAX_INFLIGHT);
    mosquitto_connect_callback_set(link->client, on_connect);
    mosquitto_disconnect_callback_set(link->client, on_disconnect);
    if (!number) {
        mosquitto_message_callback_set(link->client, on_message);
        mosquitto_subscribe_callback_set(link->client, on_subscribe);
    } else {
        mosquitto_publish_callback_set(link->client, on_publish);
        if (settings->last_wills)
            set_will(link);
    }
    return 0;
}

int links_create(const struct links_settings *settings, links_command_fn *command, void *ctx,
                 struct links **ret, struct error *err)
{
    int r = raise_limit(settings->count + 1 + SPARE_FILES, err);
    if (r < 0)
        return r;

    struct links *links = xcalloc(1, sizeof(*links));
    mosquitto_lib_init();
    links->settings = *settings;
    links->command = command;
    links->ctx = ctx;
    links->len = (size_t)settings->count + 1;
    links->items = xcalloc(links->len, sizeof(struct link));
    links->counts.wanted = links->len;
    links->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; r == 0 && i < links->len; i++)
        r = link_make(links, (uint32_t)i, err);
    if (r < 0) {
        links_destroy(links);
        return r;
    }
    *ret = links;
    return 0;
}

void links_destroy(struct links *links)
{
    if (!links)
        return;

    for (size_t i = 0; i < links->len; i++) {
        if (!links->items[i].client)
            continue;
        (void)mosquitto_disconnect(links->items[i].client);
        mosquitto_destroy(links->items[i].client);
    }
    (void)close(links->epoll);
    mosquitto_lib_cleanup();
    free(links->items);
    free(links);
}

/* ---- the loop ---- */

static void watch(struct link *link, int operation, bool write)
{
    struct epoll_event event = { .events = EPOLLIN | (write ? EPOLLOUT : 0U), .data.ptr = link };
    int fd = mosquitto_socket(link->client);

    link->wants_write = write;
    if (fd >= 0)
        (void)epoll_ctl(link->links->epoll, operation, fd, &event);
}

static void look_whether_to_write(struct link *link)
{
    bool wants = mosquitto_want_write(link->client);

    if (wants != link->wants_write && mosquitto_socket(link->client) >= 0)
        watch(link, EPOLL_CTL_MOD, wants);
}

static void link_connect(struct link *link)
{
    const struct links_settings *settings = &link->links->settings;
    char address[32];

    (void)snprintf(address, sizeof(address), "127.0.0.%" PRId64,
                   1 + (int64_t)link->number % settings->addresses);
    int r = mosquitto_connect_bind(link->client, settings->host, (int)settings->port, KEEP_ALIVE_S,
                                   settings->addresses > 1 ? address : NULL);
    if (r != MOSQ_ERR_SUCCESS) {
        link->retry_ms = link->links->now_ms + LINKS_RETRY_MS;
        return;
    }
    link->links->counts.reconnects += link->retry_ms > 1;
    link->retry_ms = 0;
    watch(link, EPOLL_CTL_ADD, mosquitto_want_write(link->client));
}

static void connect_some(struct links *links)
{
    size_t made = 0;

    if (links->counts.connected == links->len)
        return;
    for (size_t i = 0; i < links->len && made < LINKS_AT_A_TIME; i++) {
        struct link *link = &links->items[links->next];
        links->next = (links->next + 1) % links->len;
        if (link->retry_ms && link->retry_ms <= links->now_ms) {
            link_connect(link);
            made++;
        }
    }
}

static void serve(struct link *link, uint32_t events)
{
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        (void)mosquitto_loop_read(link->client, MAX_INFLIGHT);
    if (events & EPOLLOUT)
        (void)mosquitto_loop_write(link->client, 1);
    look_whether_to_write(link);
}

int links_step(struct links *links, int64_t now_ms, int timeout_ms, struct error *err)
{
    struct epoll_event events[EVENTS];

    links->now_ms = now_ms;
    connect_some(links);
    int count = epoll_wait(links->epoll, events, EVENTS, timeout_ms);
    if (count < 0 && errno != EINTR)
        return error_set(err, ERROR_UNAVAILABLE, "epoll: %s", strerror(errno));
    for (int i = 0; i < count; i++)
        serve(events[i].data.ptr, events[i].events);
    if (now_ms >= links->misc_ms) {
        links->misc_ms = now_ms + MISC_MS;
        for (size_t i = 0; i < links->len; i++) {
            (void)mosquitto_loop_misc(links->items[i].client);
            look_whether_to_write(&links->items[i]);
        }
    }
    if (links->refused)
        return error_set(err, ERROR_INVALID,
                         "the broker refuses a connection or a subscription: see --user, "
                         "--password-file and its access rules");
    return 0;
}

static struct link *link_of(struct links *links, uint32_t device)
{
    return &links->items[1 + (device - 1) % (uint32_t)links->settings.count];
}

bool links_publish(struct links *links, uint32_t device, const char *suffix, const char *payload,
                   size_t len, int qos)
{
    struct link *link = link_of(links, device);
    char proplet[64];
    char topic[MAX_TOPIC];

    if (!link->connected && qos == 0) {
        links->counts.unsent++;
        return false;
    }
    (void)snprintf(proplet, sizeof(proplet), "proplet/%s", suffix);
    topic_of(links, device, proplet, topic);
    int r = mosquitto_publish(link->client, NULL, topic, (int)len, payload, qos, false);
    look_whether_to_write(link);
    links->counts.unsent += r != MOSQ_ERR_SUCCESS;
    links->plain += qos == 0 && r == MOSQ_ERR_SUCCESS;
    return r == MOSQ_ERR_SUCCESS;
}

void links_break(struct links *links, uint32_t device)
{
    struct link *link = link_of(links, device);
    int fd = mosquitto_socket(link->client);

    if (!links->settings.last_wills)
        return;
    link->broken = true;
    link->retry_ms = INT64_MAX;
    if (fd >= 0)
        (void)shutdown(fd, SHUT_RDWR);
}

struct links_counts links_counts(const struct links *links)
{
    struct links_counts counts = links->counts;

    counts.acknowledged = links->sent > links->plain ? links->sent - links->plain : 0;
    return counts;
}
