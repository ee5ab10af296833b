#include "controller/bridge/quarantine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "common/runtime/thread.h"
#include "controller/bridge/bridge_messages.h"

/* A wake is never lost, so this only bounds how late copies are recalled or asked for. */
#define IDLE_MS 30000
#define IDLE_ASKING_MS 1000

/* After a publish that failed: the connection may come back. */
#define PAUSE_MS 1000

/* A copy that has not come back by then is made again. */
#define AGAIN_MS 30000

struct quarantine {
    struct quarantine_options options;
    pthread_t thread;
    bool running;
    atomic_bool stopping;
};

static struct metric COPIED = {
    .type = METRIC_COUNTER,
    .name = "propeller_mail_quarantined_total",
    .help =
        "Number of results that were copied to the broker because they were not written in time.",
};

struct quarantine *quarantine_create(const struct quarantine_options *options)
{
    struct quarantine *quarantine = xcalloc(1, sizeof(*quarantine));

    quarantine->options = *options;
    atomic_init(&quarantine->stopping, false);
    return quarantine;
}

void quarantine_destroy(struct quarantine *quarantine)
{
    if (!quarantine)
        return;
    quarantine_stop(quarantine);
    free(quarantine);
}

static bool is_update(const struct mail *mail)
{
    return str_equal(mail->kind, MAIL_UPDATE);
}

static bool is_result(const char *kind)
{
    enum result_refusal refusal;

    return mail_is_result(kind, &refusal);
}

/* The kinds whose loss would lose a result. The source of an update is its message id; one that came
 * by HTTP names its client behind a '#', and that client is told. */
static bool needs_copy(const struct mail *mail)
{
    return is_result(mail->kind) || str_equal(mail->kind, MAIL_RECLAIM) ||
           (is_update(mail) && !strchr(mail->source, '#'));
}

static bool copy(struct quarantine *quarantine, struct arena *arena, const char *key,
                 const struct mail *mail)
{
    const struct quarantine_options *options = &quarantine->options;
    char digest[SHA256_HEX_LEN];
    const char *suffix =
        arena_printf(arena, QUARANTINE_SUFFIX "/%s/%s/%s", mail->kind,
                     is_update(mail) ? mail->source : key, /* both are known: no wildcards */
                     sha256_hex(mail->body, mail->body_len, digest));

    if (!options->publish(options->ctx, is_update(mail) ? NULL : mail->source, key, suffix,
                          mail->body, mail->body_len))
        return false;
    metric_add(&COPIED, 1, NULL);
    log_info(
        "a result is not written in time, copying it to the broker so that it holds up no other",
        "key", key, NULL);
    return true;
}

/* false: the broker cannot be reached now. */
static bool hold_overdue(struct quarantine *quarantine)
{
    struct mailbox *mailbox = quarantine->options.mailbox;
    int64_t now_ms = clock_monotonic_ms(quarantine->options.clock);

    for (;;) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        const char *key;
        struct mail mail;

        if (!mailbox_overdue(mailbox, arena, now_ms - QUARANTINE_AFTER_MS, now_ms,
                             now_ms + AGAIN_MS, &key, &mail))
            return true;
        if (!needs_copy(&mail))
            mailbox_hold(mailbox, key, mail.sequence);
        else if (!copy(quarantine, arena, key, &mail)) {
            mailbox_overdue_again(mailbox, key, mail.sequence);
            return false;
        }
    }
}

static bool remove_released(struct quarantine *quarantine)
{
    const struct quarantine_options *options = &quarantine->options;

    for (;;) {
        char *topic = mailbox_take_released(options->mailbox);

        if (!topic)
            return true;
        bool removed = options->remove(options->ctx, topic);
        if (!removed)
            mailbox_release(options->mailbox, topic);
        free(topic);
        if (!removed)
            return false;
    }
}

/* Not before the broker has heard of the last recall: what was to come by it would seem to be gone. */
static void recall(struct quarantine *quarantine)
{
    const struct quarantine_options *options = &quarantine->options;

    if (options->hears_copies(options->ctx) &&
        mailbox_recall(options->mailbox, clock_monotonic_ms(options->clock)))
        options->recall(options->ctx);
}

static bool expects_copies(const struct quarantine *quarantine)
{
    struct mailbox *mailbox = quarantine->options.mailbox;

    return mailbox_expects_copies(mailbox) && mailbox_len(mailbox);
}

static uint32_t idle_ms(const struct quarantine *quarantine)
{
    bool asks = mailbox_any_elsewhere(quarantine->options.mailbox) || expects_copies(quarantine);

    return asks ? IDLE_ASKING_MS : IDLE_MS;
}

static void *run(void *data)
{
    struct quarantine *quarantine = data;
    struct mailbox *mailbox = quarantine->options.mailbox;

    for (;;) {
        uint64_t wakes = mailbox_wakes(mailbox);

        if (atomic_load(&quarantine->stopping))
            return NULL;
        mailbox_wait_work(mailbox, wakes, idle_ms(quarantine));
        if (expects_copies(quarantine))
            quarantine->options.await_copies(quarantine->options.ctx);

        bool reached = remove_released(quarantine) && hold_overdue(quarantine);

        recall(quarantine);
        if (reached)
            (void)mailbox_wait_empty(mailbox, QUARANTINE_AFTER_MS / 5);
        else
            mailbox_wait_wake(mailbox, wakes, PAUSE_MS);
    }
}

int quarantine_start(struct quarantine *quarantine, struct error *err)
{
    atomic_store(&quarantine->stopping, false);

    int r = thread_start(&quarantine->thread, "quarantine", run, quarantine, err);

    quarantine->running = r == 0;
    return r;
}

void quarantine_stop(struct quarantine *quarantine)
{
    if (!quarantine->running)
        return;
    atomic_store(&quarantine->stopping, true);
    mailbox_wake(quarantine->options.mailbox);
    thread_join(quarantine->thread);
    quarantine->running = false;
}

static const char *next_level(struct arena *arena, const char **rest)
{
    size_t len = strcspn(*rest, "/");
    const char *level = arena_strndup(arena, *rest, len);

    *rest += len + ((*rest)[len] == '/');
    return level;
}

bool quarantine_topic_parse(struct arena *arena, const char *topic, const char **ret_kind,
                            const char **ret_id)
{
    const char *rest = strstr(topic, "/" QUARANTINE_SUFFIX "/");

    if (!rest)
        return false;
    rest += strlen("/" QUARANTINE_SUFFIX "/");
    *ret_kind = next_level(arena, &rest);
    *ret_id = next_level(arena, &rest);
    return **ret_id && *rest && !strchr(rest, '/') &&
           (is_result(*ret_kind) || str_equal(*ret_kind, MAIL_UPDATE) ||
            str_equal(*ret_kind, MAIL_RECLAIM));
}
