/* The watch machine: the first byte says how the others are split; they come as a list and then as
 * a watch. However they are split, the sink is told the same, in an order that makes sense. */
#include "common/base/log.h"
#include "common/kube/watch.h"
#include "common/tests/fuzz/target.h"

static const struct kube_kind KIND = { .group = "example.org",
                                       .version = "v1",
                                       .kind = "Gadget",
                                       .plural = "gadgets",
                                       .namespaced = true };
static const char GOOD_LIST[] = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}";

struct told {
    uint64_t hash; /* of everything the sink was told */
    bool in_set;
    bool had_set;
};

static void mix(struct told *told, const void *bytes, size_t len)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < len; i++)
        told->hash = (told->hash ^ byte[i]) * 1099511628211u; /* FNV-1a */
}

static bool is_of_set(enum watch_event_type type)
{
    return type == WATCH_INIT_APPLY || type == WATCH_INIT_KEEP;
}

static void sink(void *ctx, enum watch_event_type type, struct kube_object *object,
                 const char *version)
{
    struct told *told = ctx;

    if (type == WATCH_REFUSED) { /* may come at any time, and changes nothing */
        REQUIRE(!object && !version);
        mix(told, &type, sizeof(type));
        return;
    }
    bool has_object = type == WATCH_INIT_APPLY || type == WATCH_APPLY || type == WATCH_DELETE;

    REQUIRE(has_object == (object != NULL));
    REQUIRE(type == WATCH_INIT_KEEP ||
            (type == WATCH_INIT || type == WATCH_INIT_APPLY) == (version == NULL));
    if (is_of_set(type) || type == WATCH_INIT_DONE)
        REQUIRE(told->in_set);
    else if (type != WATCH_INIT)
        REQUIRE(told->had_set && !told->in_set);
    told->in_set = type == WATCH_INIT || is_of_set(type);
    told->had_set = told->had_set || type == WATCH_INIT_DONE;

    mix(told, &type, sizeof(type));
    if (object)
        mix(told, object->packed, object->packed_len);
    if (version)
        mix(told, version, strlen(version));
}

static int64_t next(struct watch_machine *machine, int64_t now_ms)
{
    struct watch_request request;

    watch_machine_next(machine, now_ms, &request);
    REQUIRE(request.path[0] == '/' && request.timeout_ms > 0);
    REQUIRE(request.not_before_ms <= now_ms + (int64_t)WATCH_BACKOFF_MAX_MS);
    return request.not_before_ms > now_ms ? request.not_before_ms : now_ms;
}

static void reply(struct watch_machine *machine, const char *bytes, size_t len, size_t chunk,
                  int64_t now_ms)
{
    struct error err = { 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < len; i += chunk) {
        size_t part = len - i < chunk ? len - i : chunk;
        r = watch_machine_feed(machine, bytes + i, part, &err);
        REQUIRE((r < 0) == (err.message[0] != '\0'));
    }
    watch_machine_finish(machine, r < 0 ? 0 : 200, NULL, now_ms);
}

static uint64_t run(const char *bytes, size_t len, size_t chunk)
{
    struct watch_options options = { .kind = &KIND };
    struct told told = { .hash = 14695981039346656037u };
    struct watch_machine *machine = watch_machine_create(&options, sink, &told);
    int64_t now_ms = next(machine, 1000);

    reply(machine, bytes, len, chunk, now_ms);
    now_ms = next(machine, now_ms);
    while (!told.had_set) { /* of pages, and of what was no list */
        reply(machine, GOOD_LIST, strlen(GOOD_LIST), SIZE_MAX / 2, now_ms);
        now_ms = next(machine, now_ms);
    }
    reply(machine, bytes, len, chunk, now_ms);
    next(machine, now_ms);

    const char *problem = watch_machine_problem(machine);
    if (problem)
        mix(&told, problem, strlen(problem));
    watch_machine_destroy(machine);
    return told.hash;
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    if (len == 0)
        return;

    const char *text = (const char *)bytes + 1;
    size_t chunk = 1 + (size_t)*bytes % 64;
    json_init();
    log_configure(LOG_ERROR, LOG_TEXT);
    REQUIRE(run(text, len - 1, chunk) == run(text, len - 1, SIZE_MAX / 2));
}
