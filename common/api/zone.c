#include "common/api/zone.h"

#include <string.h>

#include "common/base/str.h"

#define HEADER_LEN 44
#define TYPE_LEN 6
/* "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45" is a long one. */
#define MAX_RULE_LEN 120

struct zone {
    int32_t first_offset_s; /* before the first change */
    size_t len;
    const struct zone_span *changes; /* ascending; end_s of the last is INT64_MAX */
    bool has_rule;                   /* for what comes after the last change */
    struct zone_rule rule;
};

struct reader {
    const unsigned char *at;
    size_t left;
};

/* Of one data block. */
struct counts {
    size_t utc_flags;
    size_t standard_flags;
    size_t leaps;
    size_t changes;
    size_t types;
    size_t characters;
    size_t time_len; /* of each time: 4, then 8 */
};

static const unsigned char *take(struct reader *reader, size_t len)
{
    const unsigned char *at = reader->at;

    if (reader->left < len)
        return NULL;
    reader->at += len;
    reader->left -= len;
    return at;
}

static uint64_t big_endian(const unsigned char *at, size_t len)
{
    uint64_t value = 0;

    for (size_t i = 0; i < len; i++)
        value = value << 8 | at[i];
    return value;
}

static int64_t signed_time(const unsigned char *at, size_t len)
{
    uint64_t value = big_endian(at, len);

    return len == 4 ? (int64_t)(int32_t)(uint32_t)value : (int64_t)value;
}

/* Counts are limited by the bytes that are there, so sums of them do not overflow. */
static bool take_header(struct reader *reader, struct counts *ret, unsigned char *ret_version)
{
    size_t counts[6];
    const unsigned char *header = take(reader, HEADER_LEN);

    if (!header || memcmp(header, "TZif", 4) != 0)
        return false;
    for (size_t i = 0; i < 6; i++) {
        counts[i] = big_endian(header + 20 + 4 * i, 4);
        if (counts[i] > ZONE_MAX_BYTES)
            return false;
    }
    *ret = (struct counts){ counts[0], counts[1], counts[2],    counts[3],
                            counts[4], counts[5], ret->time_len };
    *ret_version = header[4];
    return true;
}

static bool skip_block(struct reader *reader, const struct counts *counts)
{
    return take(reader, counts->changes * (counts->time_len + 1) + counts->types * TYPE_LEN +
                            counts->characters + counts->leaps * (counts->time_len + 4) +
                            counts->standard_flags + counts->utc_flags);
}

static bool take_offset(const unsigned char *types, size_t index, int32_t *ret)
{
    *ret = (int32_t)(uint32_t)big_endian(types + index * TYPE_LEN, 4);
    return *ret > -ZONE_MAX_OFFSET_S && *ret < ZONE_MAX_OFFSET_S;
}

static bool take_block(struct arena *arena, struct reader *reader, const struct counts *counts,
                       struct zone *zone)
{
    const unsigned char *times = reader->at;
    const unsigned char *indexes = times + counts->changes * counts->time_len;
    const unsigned char *types = indexes + counts->changes;

    if (!counts->types || counts->leaps || !skip_block(reader, counts) ||
        !take_offset(types, 0, &zone->first_offset_s))
        return false;

    /* Not before the block is known to have that many. */
    struct zone_span *changes = arena_array(arena, struct zone_span, counts->changes + 1);
    for (size_t i = 0; i < counts->changes; i++) {
        changes[i].begin_s = signed_time(times + i * counts->time_len, counts->time_len);
        changes[i].end_s = INT64_MAX;
        if (indexes[i] >= counts->types || !take_offset(types, indexes[i], &changes[i].offset_s))
            return false;
        if (i && changes[i].begin_s <= changes[i - 1].begin_s)
            return false;
        if (i)
            changes[i - 1].end_s = changes[i].begin_s;
    }
    zone->changes = changes;
    zone->len = counts->changes;
    return true;
}

/* A line of its own behind the second block; empty: no rule. */
static bool take_rule(struct reader *reader, struct zone *zone)
{
    char text[MAX_RULE_LEN + 1];
    const unsigned char *begin = take(reader, 1);
    const unsigned char *end = begin ? memchr(reader->at, '\n', reader->left) : NULL;

    if (!end || *begin != '\n' || end - reader->at > MAX_RULE_LEN)
        return false;

    size_t len = (size_t)(end - reader->at);
    memcpy(text, reader->at, len);
    text[len] = '\0';
    zone->has_rule = len > 0;
    return !len || zone_rule_parse(text, &zone->rule);
}

int zone_parse(struct arena *arena, const void *bytes, size_t len, const struct zone **ret,
               struct error *err)
{
    struct reader reader = { bytes, len };
    struct counts counts = { .time_len = 4 };
    struct zone *zone = arena_new(arena, struct zone);
    unsigned char version;

    if (len > ZONE_MAX_BYTES || !take_header(&reader, &counts, &version))
        return error_set(err, ERROR_INVALID, "no time zone file");

    bool good;
    if (version) { /* what the first block says with short times is said again */
        good = skip_block(&reader, &counts);
        counts.time_len = 8;
        good = good && take_header(&reader, &counts, &version) &&
               take_block(arena, &reader, &counts, zone) && take_rule(&reader, zone);
    } else {
        good = take_block(arena, &reader, &counts, zone);
    }
    if (!good)
        return error_set(err, ERROR_INVALID, "%s",
                         counts.leaps ? "a time zone file that counts leap seconds"
                                      : "a broken time zone file");
    *ret = zone;
    return 0;
}

/* The last one at or before this second, or NULL. */
static const struct zone_span *last_change(const struct zone *zone, int64_t at_s)
{
    size_t low = 0;
    size_t high = zone->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->changes[middle].begin_s <= at_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &zone->changes[low - 1] : NULL;
}

struct zone_span zone_span_at(const struct zone *zone, int64_t at_s)
{
    struct zone_span span = { INT64_MIN, INT64_MAX, 0 };

    if (!zone)
        return span;

    const struct zone_span *change = last_change(zone, at_s);
    if (change && change->end_s != INT64_MAX)
        return *change;
    if (!change && zone->len) {
        span.end_s = zone->changes[0].begin_s;
        span.offset_s = zone->first_offset_s;
        return span;
    }
    if (zone->has_rule) {
        span = zone_rule_span(&zone->rule, at_s);
    } else {
        span.offset_s = change ? change->offset_s : zone->first_offset_s;
    }
    if (change && span.begin_s < change->begin_s)
        span.begin_s = change->begin_s;
    return span;
}

int64_t zone_instant(const struct zone *zone, int64_t local_s)
{
    /* No clock shows it yet. */
    int64_t at_s = local_s - (int64_t)2 * ZONE_MAX_OFFSET_S;

    for (;;) {
        struct zone_span span = zone_span_at(zone, at_s);
        int64_t instant_s = local_s - span.offset_s;
        if (instant_s < span.begin_s)
            instant_s = span.begin_s;
        if (instant_s < span.end_s)
            return instant_s;
        at_s = span.end_s;
    }
}
