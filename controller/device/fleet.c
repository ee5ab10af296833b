#include "controller/device/fleet.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

struct device {
    TAILQ_ENTRY(device) by_age; /* of the strangers */
    struct fleet_device view;   /* view.metadata is always NULL here */
    char *metadata;
    int64_t stranger_since_ms; /* 0: a Proplet has this identity */
    char *key;                 /* of a stranger; else NULL */
};
TAILQ_HEAD(devices, device);

struct fleet {
    pthread_mutex_t lock;
    struct map *devices;
    size_t strangers;
    struct devices by_age;   /* strangers, the oldest first */
    struct strangers *heard; /* without a Proplet */
};

static void device_free(void *value)
{
    struct device *device = value;

    free(device->metadata);
    free(device->key);
    free(device);
}

struct fleet *fleet_create(void)
{
    struct fleet *fleet = xcalloc(1, sizeof(*fleet));

    pthread_mutex_init(&fleet->lock, NULL);
    fleet->devices = map_create(device_free);
    TAILQ_INIT(&fleet->by_age);
    fleet->heard = strangers_create();
    return fleet;
}

void fleet_destroy(struct fleet *fleet)
{
    if (!fleet)
        return;

    map_destroy(fleet->devices);
    strangers_destroy(fleet->heard);
    pthread_mutex_destroy(&fleet->lock);
    free(fleet);
}

struct strangers *fleet_strangers(struct fleet *fleet)
{
    return fleet->heard;
}

bool fleet_key(const char *channel, const char *client_id, char ret[static FLEET_KEY_LEN])
{
    int len = snprintf(ret, FLEET_KEY_LEN, "%s/%s", channel, client_id);

    return len >= 0 && len < FLEET_KEY_LEN;
}

static struct device *device_get(struct fleet *fleet, const char *key)
{
    struct device *device = map_get(fleet->devices, key);

    if (!device) {
        device = xcalloc(1, sizeof(*device));
        map_set(fleet->devices, key, device);
    }
    return device;
}

static void device_known(struct fleet *fleet, struct device *device)
{
    if (!device->stranger_since_ms)
        return;
    device->stranger_since_ms = 0;
    free(device->key);
    device->key = NULL;
    TAILQ_REMOVE(&fleet->by_age, device, by_age);
    fleet->strangers--;
}

static void history_add(struct fleet_device *view, int64_t now_us)
{
    if (view->history_len == FLEET_HISTORY)
        memmove(view->history_us, view->history_us + 1,
                (FLEET_HISTORY - 1) * sizeof(*view->history_us));
    else
        view->history_len++;
    view->history_us[view->history_len - 1] = now_us;
}

bool fleet_heartbeat(struct fleet *fleet, const char *key, int64_t now_ms, int64_t now_us)
{
    pthread_mutex_lock(&fleet->lock);
    struct device *device = device_get(fleet, key);
    struct fleet_device *view = &device->view;
    bool news = !view->alive;
    device_known(fleet, device);
    if (news)
        view->alive_since_ms = now_ms;
    view->alive = true;
    view->will = false;
    view->last_seen_ms = now_ms;
    view->last_seen_us = now_us;
    history_add(view, now_us);
    pthread_mutex_unlock(&fleet->lock);
    return news;
}

bool fleet_will(struct fleet *fleet, const char *key)
{
    pthread_mutex_lock(&fleet->lock);
    struct device *device = device_get(fleet, key);
    bool news = !device->view.will;
    device_known(fleet, device);
    device->view.alive = false;
    device->view.will = true;
    pthread_mutex_unlock(&fleet->lock);
    return news;
}

void fleet_fresh(struct fleet *fleet, const char *key, int64_t since_ms)
{
    pthread_mutex_lock(&fleet->lock);
    struct device *device = map_get(fleet->devices, key);
    if (device && device->view.fresh_since_ms < since_ms)
        device->view.fresh_since_ms = since_ms;
    pthread_mutex_unlock(&fleet->lock);
}

bool fleet_note_outcome(struct fleet *fleet, const char *key, bool answered)
{
    bool news = false;

    pthread_mutex_lock(&fleet->lock);
    struct device *device = map_get(fleet->devices, key);
    if (device) {
        struct fleet_device *view = &device->view;
        bool was_at_limit = view->unanswered == FLEET_MAX_UNANSWERED;
        bool first = answered && !view->answered;
        if (answered)
            view->unanswered = 0;
        else if (!was_at_limit)
            view->unanswered++;
        view->answered |= answered;
        news = first || was_at_limit != (view->unanswered == FLEET_MAX_UNANSWERED);
    }
    pthread_mutex_unlock(&fleet->lock);
    return news;
}

/* The oldest goes when there are too many, and all whose time is over. */
static void strangers_expire(struct fleet *fleet, int64_t now_ms)
{
    struct device *oldest;

    while ((oldest = TAILQ_FIRST(&fleet->by_age)) &&
           (fleet->strangers > FLEET_MAX_STRANGERS ||
            now_ms - oldest->stranger_since_ms >= FLEET_STRANGER_MS)) {
        char key[FLEET_KEY_LEN];

        (void)str_copy(key, sizeof(key), oldest->key);
        device_known(fleet, oldest);
        map_remove(fleet->devices, key);
    }
}

/* A device that is a stranger already is one from now on. */
static void device_unknown(struct fleet *fleet, struct device *device, const char *key,
                           int64_t now_ms)
{
    device_known(fleet, device);
    device->stranger_since_ms = now_ms > 0 ? now_ms : 1;
    device->key = xstrdup(key);
    TAILQ_INSERT_TAIL(&fleet->by_age, device, by_age);
    fleet->strangers++;
}

bool fleet_metadata(struct fleet *fleet, const char *key, const char *text, bool known,
                    int64_t now_ms)
{
    pthread_mutex_lock(&fleet->lock);
    bool fresh = !map_get(fleet->devices, key);
    struct device *device = device_get(fleet, key);
    if (known)
        device_known(fleet, device);
    else if (fresh || device->stranger_since_ms)
        device_unknown(fleet, device, key, now_ms);
    bool news = !str_equal(device->metadata, text);
    free(device->metadata);
    device->metadata = xstrdup(text);
    strangers_expire(fleet, now_ms);
    pthread_mutex_unlock(&fleet->lock);
    return news;
}

void fleet_metrics(struct fleet *fleet, const char *key, const struct sample *sample,
                   int64_t now_us)
{
    pthread_mutex_lock(&fleet->lock);
    struct device *device = device_get(fleet, key);
    device_known(fleet, device);
    device->view.sample = *sample;
    device->view.sample_us = now_us;
    trend_add(&device->view.trend, sample, now_us);
    pthread_mutex_unlock(&fleet->lock);
}

void fleet_silent(struct fleet *fleet, const char *key, int64_t last_seen_ms)
{
    pthread_mutex_lock(&fleet->lock);
    struct device *device = map_get(fleet->devices, key);
    if (device && device->view.last_seen_ms == last_seen_ms)
        device->view.alive = false;
    pthread_mutex_unlock(&fleet->lock);
}

void fleet_get(struct fleet *fleet, struct arena *arena, const char *key, struct fleet_device *ret)
{
    *ret = (struct fleet_device){ 0 };
    pthread_mutex_lock(&fleet->lock);
    const struct device *device = map_get(fleet->devices, key);
    if (device) {
        *ret = device->view;
        ret->metadata = arena_strdup(arena, device->metadata);
    }
    pthread_mutex_unlock(&fleet->lock);
}

void fleet_remove(struct fleet *fleet, const char *key, int64_t now_ms)
{
    pthread_mutex_lock(&fleet->lock);
    struct device *device = map_get(fleet->devices, key);
    if (device && device->metadata) {
        device->view = (struct fleet_device){ 0 };
        device_unknown(fleet, device, key, now_ms);
        strangers_expire(fleet, now_ms);
    } else if (device) {
        device_known(fleet, device);
        map_remove(fleet->devices, key);
    }
    pthread_mutex_unlock(&fleet->lock);
}
