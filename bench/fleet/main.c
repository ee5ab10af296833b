/* fleet: N simulated devices on a real broker. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fleet/settings.h"
#include "common/base/clock.h"
#include "common/runtime/program.h"

#define PROGRAM "fleet"
#define SUMMARY_MS 500
#define LONGEST_WAIT_MS 100
#define PATIENCE_MS 30000
/* Messages between two looks at the sockets. */
#define AT_A_TIME 500

struct fleet {
    struct fleet_settings settings;
    struct swarm *swarm;
    struct links *links;
    FILE *journal; /* NULL: none */
    struct error *err;
    int failed; /* of a callback */
    int64_t now_ms, told_ms;
    struct swarm_counts told;
    struct links_counts told_links;
    bool muted;
};

static volatile sig_atomic_t stopping;

static void on_signal(int number UNUSED)
{
    stopping = 1;
}

static int64_t now_ms(void)
{
    return clock_wall_us(&CLOCK_SYSTEM) / 1000;
}

static void send_message(void *ctx, const struct swarm_message *message)
{
    struct fleet *fleet = ctx;

    (void)links_publish(fleet->links, message->device, message->suffix, message->payload,
                        message->len, message->important ? (int)fleet->settings.qos : 0);
}

static void note(void *ctx, uint32_t device, const char *event, const char *id)
{
    const struct fleet *fleet = ctx;

    if (fleet->journal)
        (void)fprintf(fleet->journal,
                      "{\"time\": %.6f, \"device\": \"%s-%u\", \"event\": \"%s\", \"task\": "
                      "\"%s\"}\n",
                      (double)clock_wall_us(&CLOCK_SYSTEM) / 1e6, fleet->settings.swarm.prefix,
                      device, event, id);
}

static void command(void *ctx, bool start, const char *payload, size_t len)
{
    struct fleet *fleet = ctx;

    if (!fleet->swarm) /* kept by nobody, as for a device that is not connected yet */
        return;
    if (!start)
        swarm_stop(fleet->swarm, payload, len);
    else if (fleet->failed == 0)
        fleet->failed = swarm_start(fleet->swarm, now_ms(), payload, len, fleet->err);
}

static void print_summary(const struct fleet *fleet, FILE *file)
{
    const struct swarm_counts *counts = &fleet->told;
    const struct ledger_counts *ledger = &counts->ledger;
    const struct links_counts *links = &fleet->told_links;

    (void)fprintf(file,
                  "{\"devices\":%" PRId64 ",\"connections\":%" PRIu64 ",\"connected\":%" PRIu64
                  ",\"listening\":%s,\"reconnects\":%" PRIu64 ",\"heartbeats\":%" PRIu64
                  ",\"starts\":%" PRIu64 ",\"ids\":%" PRIu64 ",\"repeated\":%" PRIu64
                  ",\"ignored\":%" PRIu64 ",\"elsewhere\":%" PRIu64 ",\"lost\":%" PRIu64
                  ",\"running\":%" PRIu64 ",\"stopped\":%" PRIu64 ",\"answered\":%" PRIu64
                  ",\"answers\":%" PRIu64 ",\"acknowledged\":%" PRIu64 ",\"unsent\":%" PRIu64
                  ",\"malformed\":%" PRIu64 ",\"unknown\":%" PRIu64 "}\n",
                  fleet->settings.swarm.devices, links->wanted, links->connected,
                  links->listening ? "true" : "false", links->reconnects, counts->heartbeats,
                  ledger->starts, ledger->ids, ledger->repeated, ledger->ignored, ledger->elsewhere,
                  ledger->lost, ledger->running, ledger->stopped, ledger->answered, ledger->answers,
                  links->acknowledged, links->unsent, counts->malformed, counts->unknown);
}

/* Whole or not at all. */
static int write_summary(struct fleet *fleet, struct error *err)
{
    char path[4096];
    int len = snprintf(path, sizeof(path), "%s.new", fleet->settings.summary);

    if (len < 0 || (size_t)len >= sizeof(path))
        return error_set(err, ERROR_INVALID, "--summary: the name is too long");
    FILE *file = fopen(path, "we");
    if (!file)
        return error_set(err, ERROR_INVALID, "--summary: '%s': %s", path, strerror(errno));
    print_summary(fleet, file);
    if (fclose(file) != 0 || rename(path, fleet->settings.summary) != 0)
        return error_set(err, ERROR_UNAVAILABLE, "--summary: '%s': %s", path, strerror(errno));
    return 0;
}

static int tell(struct fleet *fleet, struct error *err)
{
    fleet->told_ms = fleet->now_ms;
    fleet->told = swarm_counts(fleet->swarm);
    fleet->told_links = links_counts(fleet->links);
    if (fleet->journal)
        (void)fflush(fleet->journal);
    return fleet->settings.summary ? write_summary(fleet, err) : 0;
}

static void mute(struct fleet *fleet, int64_t began_ms)
{
    const struct swarm_settings *settings = &fleet->settings.swarm;

    if (fleet->muted || fleet->now_ms < began_ms + settings->mute_after_ms)
        return;
    fleet->muted = true;
    for (uint32_t i = 1; i <= settings->mute_devices && i <= settings->devices; i++)
        links_break(fleet->links, i);
}

static int run(struct fleet *fleet, struct error *err)
{
    int64_t began_ms = now_ms();
    int r = 0;

    while (r == 0 && !stopping) {
        fleet->now_ms = now_ms();
        int64_t wait_ms = swarm_next_ms(fleet->swarm) - fleet->now_ms;
        if (wait_ms > LONGEST_WAIT_MS)
            wait_ms = LONGEST_WAIT_MS;
        r = links_step(fleet->links, fleet->now_ms, wait_ms > 0 ? (int)wait_ms : 0, err);
        if (r == 0)
            r = fleet->failed;
        fleet->now_ms = now_ms();
        swarm_advance(fleet->swarm, fleet->now_ms, AT_A_TIME);
        mute(fleet, began_ms);
        if (r == 0 && fleet->now_ms >= fleet->told_ms + SUMMARY_MS)
            r = tell(fleet, err);
    }
    fleet->now_ms = now_ms();
    return r == 0 ? tell(fleet, err) : r;
}

/* Nobody speaks before all can, and are listened to. */
static int connect_all(struct fleet *fleet, struct error *err)
{
    int64_t progress_ms = now_ms();
    uint64_t connected = 0;

    while (!stopping) {
        int r = links_step(fleet->links, now_ms(), LONGEST_WAIT_MS, err);
        const struct links_counts counts = links_counts(fleet->links);
        if (r < 0 || (counts.connected == counts.wanted && counts.listening))
            return r;
        if (counts.connected > connected)
            progress_ms = now_ms();
        connected = counts.connected;
        if (now_ms() > progress_ms + PATIENCE_MS)
            return error_set(
                err, ERROR_UNAVAILABLE,
                "broker '%s': %" PRIu64 " of %" PRIu64 " connections made, and no more for %d s",
                fleet->settings.broker, counts.connected, counts.wanted, PATIENCE_MS / 1000);
    }
    return 0;
}

static int open_journal(struct fleet *fleet, struct error *err)
{
    if (!fleet->settings.journal)
        return 0;
    fleet->journal = fopen(fleet->settings.journal, "ae");
    if (!fleet->journal)
        return error_set(err, ERROR_INVALID, "--journal: '%s': %s", fleet->settings.journal,
                         strerror(errno));
    return 0;
}

static int run_fleet(struct fleet *fleet, struct error *err)
{
    int r = open_journal(fleet, err);
    if (r < 0)
        return r;
    r = links_create(&fleet->settings.links, command, fleet, &fleet->links, err);
    if (r < 0)
        return r;

    r = connect_all(fleet, err);
    if (r < 0 || stopping)
        return r;

    fleet->swarm = swarm_create(&fleet->settings.swarm, now_ms(), send_message, note, fleet);
    r = run(fleet, err);
    print_summary(fleet, stdout);
    return r;
}

int main(int argc, char **argv)
{
    const struct sigaction action = { .sa_handler = on_signal };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    struct fleet fleet = { .err = &err };
    int r = fleet_settings_parse(arena, argc, argv, &fleet.settings, &err);

    if (r != 0)
        return program_end_of_options(PROGRAM, r, &err);
    program_configure_log(fleet.settings.log_level, fleet.settings.log_format);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    r = run_fleet(&fleet, &err);
    swarm_destroy(fleet.swarm);
    links_destroy(fleet.links);
    if (fleet.journal)
        (void)fclose(fleet.journal);
    return program_end(PROGRAM, r, &err);
}
