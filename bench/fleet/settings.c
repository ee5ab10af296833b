#include "bench/fleet/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/runtime/options.h"
#include "common/runtime/program.h"

#define HOUR_MS 3600000
#define MAX_DEVICES 1000000
#define MAX_PASSWORD 256

#define OPTION(flag, kind, member, value)                                                          \
    .name = (flag), .type = (kind), .offset = offsetof(struct fleet_settings, member),             \
    .fallback = (value)
#define COUNT(most) .value_name = "N", .min = 0, .max = (most)
#define PERCENT .value_name = "PERCENT", .min = 0, .max = 100

static const struct option OPTIONS[] = {
    { OPTION("broker", OPTION_STRING, broker, NULL), .value_name = "HOST:PORT",
      .help = "address of the broker, without TLS" },
    { OPTION("user", OPTION_STRING, links.user, NULL), .value_name = "NAME",
      .help = "user of all connections; may publish and subscribe on the channels" },
    { OPTION("password-file", OPTION_STRING, password_file, NULL), .value_name = "FILE",
      .help = "file with the password of the user in its first line" },
    { OPTION("domain", OPTION_STRING, links.domain, NULL), .value_name = "ID",
      .help = "domainId of the Proplets" },
    { OPTION("channel", OPTION_STRING, links.channel, NULL), .value_name = "ID",
      .help = "channelId of the Proplets" },
    { OPTION("channels", OPTION_INT, links.channels, "1"), .value_name = "N", .min = 1,
      .max = 10000,
      .help = "number of channels, CHANNEL-1 to CHANNEL-N; device i uses 1 + (i - 1) % N" },
    { OPTION("devices", OPTION_INT, swarm.devices, "100"), .value_name = "N", .min = 1,
      .max = MAX_DEVICES, .help = "number of devices" },
    { OPTION("prefix", OPTION_STRING, swarm.prefix, "device"), .value_name = "TEXT",
      .help = "prefix of the identities TEXT-1 to TEXT-N" },
    { OPTION("connections", OPTION_INT, links.count, "4"), .value_name = "N", .min = 1, .max = 1000,
      .help = "number of connections that publish for all devices; one more receives" },
    { OPTION("last-wills", OPTION_BOOL, links.last_wills, "false"),
      .help = "use a connection with a last will for each device instead" },
    { OPTION("source-addresses", OPTION_INT, links.addresses, "1"), .value_name = "N", .min = 1,
      .max = 250,
      .help = "number of local addresses, 127.0.0.1 to 127.0.0.N; each has 28,000 ports" },
    { OPTION("qos", OPTION_INT, qos, "1"), .min = 0, .max = 1, .help = "QoS of results" },

    { OPTION("alive-interval", OPTION_DURATION, swarm.alive_ms, "10s"), .min = 10, .max = HOUR_MS,
      .help = "time between two heartbeats of a device" },
    { OPTION("metrics-interval", OPTION_DURATION, swarm.metrics_ms, "10s"), .min = 0,
      .max = HOUR_MS, .help = "time between two metrics of a device; 0s is none" },
    { OPTION("result-delay", OPTION_DURATION, swarm.result_ms, "100ms"), .min = 0, .max = HOUR_MS,
      .help = "time from a start to its result" },
    { OPTION("result-spread", OPTION_DURATION, swarm.spread_ms, "0s"), .min = 0, .max = HOUR_MS,
      .help = "maximum random addition to --result-delay" },
    { OPTION("result-bytes", OPTION_INT, swarm.result_bytes, "2"), COUNT(1 << 20),
      .help = "length of a result in bytes" },
    { OPTION("task-metrics", OPTION_BOOL, swarm.samples, "true"),
      .help = "send a sample of a running Task after 100 ms and then every 10 s" },

    { OPTION("lost", OPTION_DOUBLE, swarm.lost_percent, "0"), PERCENT,
      .help = "share of starts that the device ignores" },
    { OPTION("duplicate", OPTION_DOUBLE, swarm.duplicate_percent, "0"), PERCENT,
      .help = "share of results that are sent twice" },
    { OPTION("late", OPTION_DOUBLE, swarm.late_percent, "0"), PERCENT,
      .help = "share of results that are sent --late-by later" },
    { OPTION("late-by", OPTION_DURATION, swarm.late_ms, "60s"), .min = 0, .max = HOUR_MS,
      .help = "delay of late results" },
    { OPTION("mute", OPTION_INT, swarm.mute_devices, "0"), COUNT(MAX_DEVICES),
      .help = "number of devices that fall silent; with --last-wills their connections break" },
    { OPTION("mute-after", OPTION_DURATION, swarm.mute_after_ms, "60s"), .min = 0, .max = HOUR_MS,
      .help = "time after which devices fall silent" },
    { OPTION("seed", OPTION_INT, swarm.seed, "1"), COUNT(INT32_MAX),
      .help = "seed that decides with the ids which devices have faults" },
    { OPTION("max-ids", OPTION_INT, swarm.max_ids, "2000000"), .value_name = "N", .min = 1,
      .max = 100000000,
      .help = "maximum number of different starts that are counted, 24 bytes each" },

    { OPTION("summary", OPTION_STRING, summary, NULL), .value_name = "FILE",
      .help = "file for counts in JSON, written twice a second" },
    { OPTION("journal", OPTION_STRING, journal, NULL), .value_name = "FILE",
      .help = "file with a line of JSON for each start and each result" },
    PROGRAM_LOG_OPTIONS(struct fleet_settings),
};

static int missing(const char *flag, struct error *err)
{
    return error_set(err, ERROR_INVALID, "--%s is missing", flag);
}

static int parse_broker(struct arena *arena, struct fleet_settings *settings, struct error *err)
{
    char *host = arena_strdup(arena, settings->broker);
    char *colon = strrchr(host, ':');

    if (!colon || colon == host || !str_to_int64(colon + 1, &settings->links.port) ||
        settings->links.port < 1 || settings->links.port > 65535)
        return error_set(err, ERROR_INVALID, "--broker: '%s' is not HOST:PORT", settings->broker);
    *colon = '\0';
    settings->links.host = host;
    return 0;
}

static int read_password(struct arena *arena, struct fleet_settings *settings, struct error *err)
{
    char line[MAX_PASSWORD] = "";
    FILE *file = fopen(settings->password_file, "re");

    if (!file)
        return error_set(err, ERROR_INVALID, "--password-file: '%s': %s", settings->password_file,
                         strerror(errno));
    bool ok = fgets(line, sizeof(line), file) != NULL;
    (void)fclose(file);
    line[strcspn(line, "\n")] = '\0';
    if (!ok || !*line)
        return error_set(err, ERROR_INVALID, "--password-file: '%s' is empty",
                         settings->password_file);
    settings->links.password = arena_strdup(arena, line);
    return 0;
}

static int check(struct arena *arena, struct fleet_settings *settings, struct error *err)
{
    if (str_is_empty(settings->broker))
        return missing("broker", err);
    if (str_is_empty(settings->links.domain))
        return missing("domain", err);
    if (str_is_empty(settings->links.channel))
        return missing("channel", err);
    if (strpbrk(settings->swarm.prefix, "\"\\/+#") || str_is_empty(settings->swarm.prefix))
        return error_set(err, ERROR_INVALID, "--prefix: '%s' must not be empty or hold \" \\ / + #",
                         settings->swarm.prefix);
    int r = parse_broker(arena, settings, err);
    if (r == 0 && !str_is_empty(settings->password_file))
        r = read_password(arena, settings, err);
    return r;
}

static const struct option_program PROGRAM = {
    .name = "propeller-fleet",
    .about = "Simulates devices on a broker, and counts their starts and results.",
};

int fleet_settings_parse(struct arena *arena, int argc, char *const *argv,
                         struct fleet_settings *ret, struct error *err)
{
    int r = options_parse(arena, &PROGRAM, OPTIONS, ARRAY_LEN(OPTIONS), argc, argv, ret, err);
    if (r != 0)
        return r;

    r = check(arena, ret, err);
    if (r < 0)
        return r;
    ret->links.prefix = ret->swarm.prefix;
    if (ret->links.last_wills)
        ret->links.count = ret->swarm.devices;
    return 0;
}
