#include "controller/device/strangers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/enrollment.h"
#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

struct stranger {
    uint64_t channel; /* hash */
    uint64_t client;  /* likewise, of the whole id */
    int64_t first_ms;
    int64_t heard_ms; /* 0: the place is free */
    int64_t logged_ms;
    int64_t shown_ms; /* since when strangers_on names it; 0: it does not */
    char name[STRANGER_NAME_BYTES + 1];
    char *identity;       /* "<channel>/<client id>"; NULL: no Proplet can be made for it */
    size_t client_offset; /* in identity */
};

struct strangers {
    pthread_mutex_t lock;
    struct stranger *places; /* STRANGERS_MAX, from the first stranger on */
    size_t used;             /* no place behind it was ever taken */
    int64_t logs_paid_until_ms;
};

struct strangers *strangers_create(void)
{
    struct strangers *strangers = xcalloc(1, sizeof(*strangers));

    pthread_mutex_init(&strangers->lock, NULL);
    return strangers;
}

void strangers_destroy(struct strangers *strangers)
{
    if (!strangers)
        return;

    pthread_mutex_destroy(&strangers->lock);
    for (size_t i = 0; i < strangers->used; i++)
        free(strangers->places[i].identity);
    free(strangers->places);
    free(strangers);
}

static void copy_printable(char ret[static STRANGER_NAME_BYTES + 1], const char *text)
{
    size_t len = 0;

    for (; *text && len < STRANGER_NAME_BYTES; text++)
        ret[len++] = *text >= ' ' && *text <= '~' && *text != '\'' ? *text : '?';
    ret[len] = '\0';
}

static bool is_kept(const struct stranger *stranger, int64_t now_ms)
{
    return stranger->heard_ms && now_ms - stranger->heard_ms < STRANGER_MS;
}

/* NULL: it is not there. */
static struct stranger *find(struct strangers *strangers, uint64_t channel, uint64_t client)
{
    for (size_t i = 0; i < strangers->used; i++) {
        struct stranger *stranger = &strangers->places[i];
        if (stranger->heard_ms && stranger->client == client && stranger->channel == channel)
            return stranger;
    }
    return NULL;
}

static struct stranger *take_place(struct strangers *strangers)
{
    struct stranger *oldest;

    if (!strangers->places)
        strangers->places = xcalloc(STRANGERS_MAX, sizeof(*strangers->places));
    if (strangers->used < STRANGERS_MAX)
        return &strangers->places[strangers->used++];
    oldest = strangers->places;
    for (size_t i = 1; i < STRANGERS_MAX; i++) {
        if (strangers->places[i].heard_ms < oldest->heard_ms)
            oldest = &strangers->places[i];
    }
    return oldest;
}

static void copy_identity(struct stranger *stranger, const char *channel, const char *client_id)
{
    size_t size = strlen(channel) + strlen(client_id) + 2;

    if (!enrollment_is_client_id(client_id))
        return;
    stranger->identity = xmalloc(size);
    (void)snprintf(stranger->identity, size, "%s/%s", channel, client_id);
    stranger->client_offset = strlen(channel) + 1;
}

static struct stranger *note(struct strangers *strangers, const char *channel,
                             const char *client_id, int64_t now_ms, bool *ret_fresh)
{
    uint64_t client = map_hash(client_id);
    struct stranger *stranger = find(strangers, map_hash(channel), client);

    *ret_fresh = !stranger || !is_kept(stranger, now_ms);
    if (!stranger) {
        stranger = take_place(strangers);
        free(stranger->identity);
        *stranger = (struct stranger){ .channel = map_hash(channel), .client = client };
        copy_printable(stranger->name, client_id);
        copy_identity(stranger, channel, client_id);
    }
    if (*ret_fresh) {
        stranger->shown_ms = 0;
        stranger->first_ms = now_ms;
    }
    stranger->heard_ms = now_ms;
    return stranger;
}

/* All of the channel are shown from now on, unless some were within the last minute. */
static bool show(struct strangers *strangers, uint64_t channel, int64_t now_ms)
{
    int64_t last_ms = INT64_MIN;
    bool hidden = false;

    for (size_t i = 0; i < strangers->used; i++) {
        const struct stranger *stranger = &strangers->places[i];
        if (stranger->channel != channel || !is_kept(stranger, now_ms))
            continue;
        hidden |= !stranger->shown_ms;
        if (stranger->shown_ms > last_ms)
            last_ms = stranger->shown_ms;
    }
    if (!hidden || (last_ms > 0 && now_ms - last_ms < STRANGERS_REFRESH_MS))
        return false;
    for (size_t i = 0; i < strangers->used; i++) {
        if (strangers->places[i].channel == channel && !strangers->places[i].shown_ms)
            strangers->places[i].shown_ms = now_ms;
    }
    return true;
}

static bool log_is_due(struct strangers *strangers, struct stranger *stranger, int64_t now_ms)
{
    const int64_t share_ms = 60000 / STRANGER_LOGS_PER_MINUTE;

    if (stranger->logged_ms && now_ms - stranger->logged_ms < STRANGER_LOG_MS)
        return false;
    if (strangers->logs_paid_until_ms < now_ms - 60000)
        strangers->logs_paid_until_ms = now_ms - 60000;
    if (strangers->logs_paid_until_ms + share_ms > now_ms)
        return false;
    strangers->logs_paid_until_ms += share_ms;
    stranger->logged_ms = now_ms;
    return true;
}

struct stranger_news strangers_heard(struct strangers *strangers, const char *channel,
                                     const char *client_id, int64_t now_ms)
{
    uint64_t hash = map_hash(channel);
    struct stranger_news news;

    pthread_mutex_lock(&strangers->lock);
    struct stranger *stranger = note(strangers, channel, client_id, now_ms, &news.fresh);
    news.log = log_is_due(strangers, stranger, now_ms);
    news.shown = show(strangers, hash, now_ms);
    (void)str_copy(news.name, sizeof(news.name), stranger->name);
    pthread_mutex_unlock(&strangers->lock);
    return news;
}

size_t strangers_count(struct strangers *strangers, int64_t now_ms)
{
    size_t count = 0;

    pthread_mutex_lock(&strangers->lock);
    for (size_t i = 0; i < strangers->used; i++)
        count += is_kept(&strangers->places[i], now_ms);
    pthread_mutex_unlock(&strangers->lock);
    return count;
}

void strangers_forget(struct strangers *strangers, const char *channel, const char *client_id)
{
    pthread_mutex_lock(&strangers->lock);
    struct stranger *stranger =
        strangers->used ? find(strangers, map_hash(channel), map_hash(client_id)) : NULL;
    if (stranger)
        stranger->heard_ms = 0;
    pthread_mutex_unlock(&strangers->lock);
}

/* The first name behind `after` in the order of strcmp; NULL: there is none. */
static const char *next_name(const struct strangers *strangers, uint64_t channel, const char *after,
                             int64_t now_ms)
{
    const char *next = NULL;

    for (size_t i = 0; i < strangers->used; i++) {
        const struct stranger *stranger = &strangers->places[i];
        if (stranger->channel != channel || !stranger->shown_ms || !is_kept(stranger, now_ms) ||
            strcmp(stranger->name, after) <= 0 || (next && strcmp(stranger->name, next) >= 0))
            continue;
        next = stranger->name;
    }
    return next;
}

const char *strangers_on(struct strangers *strangers, struct arena *arena, const char *channel,
                         int64_t now_ms)
{
    uint64_t hash = map_hash(channel);
    const char *text = NULL;
    const char *name = "";

    pthread_mutex_lock(&strangers->lock);
    for (size_t i = 0; i < STRANGERS_SHOWN && name; i++) {
        name = next_name(strangers, hash, name, now_ms);
        if (name)
            text = arena_printf(arena, "%s%s'%s'", text ? text : "", text ? ", " : "", name);
    }
    pthread_mutex_unlock(&strangers->lock);
    return text;
}

static bool is_listed_on(const struct stranger *stranger, const char *channel, size_t channel_len)
{
    const char *client_id = stranger->identity + stranger->client_offset;
    size_t own_len = stranger->client_offset - 1;

    if (!str_has_suffix(channel, CHANNEL_EACH))
        return own_len == channel_len && memcmp(stranger->identity, channel, channel_len) == 0;

    size_t domain_len = channel_len - strlen(CHANNEL_EACH);
    return own_len == domain_len + 1 + strlen(client_id) &&
           memcmp(stranger->identity, channel, domain_len + 1) == 0 &&
           memcmp(stranger->identity + domain_len + 1, client_id, strlen(client_id)) == 0;
}

size_t strangers_list(struct strangers *strangers, struct arena *arena, const char *channel,
                      int64_t now_ms, struct stranger_seen **ret)
{
    size_t channel_len = strlen(channel);
    size_t len = 0;

    pthread_mutex_lock(&strangers->lock);
    struct stranger_seen *list = arena_array(arena, struct stranger_seen, strangers->used + 1);
    for (size_t i = 0; i < strangers->used; i++) {
        const struct stranger *stranger = &strangers->places[i];
        if (!stranger->identity || !is_kept(stranger, now_ms) ||
            !is_listed_on(stranger, channel, channel_len))
            continue;
        list[len++] = (struct stranger_seen){
            .client_id = arena_strdup(arena, stranger->identity + stranger->client_offset),
            .first_ms = stranger->first_ms,
            .last_ms = stranger->heard_ms,
        };
    }
    pthread_mutex_unlock(&strangers->lock);
    *ret = list;
    return len;
}
