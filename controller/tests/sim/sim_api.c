#include "controller/tests/sim/sim_api.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/watch.h"
#include "common/tests/fake_path.h"

#define MAX_CHANGES (1u << 20)
#define MAX_MACHINES 16
#define NEVER INT64_MAX
#define STREAM_MS 290000
#define BOOKMARK_MS 60000

struct sim_api_faults sim_api_faults;
struct fake_api *sim_api;

/* Every change since the beginning, in order: the watches report them from here. */
struct change {
    int64_t version;
    const char *type;
    cJSON *object;
    const char *scope; /* as that of a path */
    const char *text;  /* of the object; NULL: no client has received it */
};
static struct {
    struct arena *arena;
    struct change all[MAX_CHANGES];
    size_t count;
    unsigned writes;
} changes;

static const struct replica *holder;
static fake_change_fn *judge;

static int64_t version_of(const cJSON *object)
{
    int64_t version = 0;

    (void)str_to_int64(json_string(json_path(object, "metadata", "resourceVersion", NULL), ""),
                       &version);
    return version;
}

/* "/apis/<group>/<version>/<plural>|" of "<group>/<version>" and the kind. */
static const char *scope_of(const cJSON *object)
{
    const char *version = json_string(json_get(object, "apiVersion"), "");
    char plural[64];
    size_t len = 0;

    for (const char *c = json_string(json_get(object, "kind"), ""); *c && len < sizeof(plural) - 2;
         c++)
        plural[len++] = (char)tolower((unsigned char)*c);
    plural[len++] = 's';
    plural[len] = '\0';
    return arena_printf(changes.arena, "%s/%s/%s|", strchr(version, '/') ? "/apis" : "/api",
                        version, plural);
}

static void on_change(void *ctx UNUSED, const cJSON *old, const cJSON *current)
{
    const cJSON *object = current ? current : old;

    if (changes.count == MAX_CHANGES)
        sim_fail("more than %u changes of objects", MAX_CHANGES);
    changes.all[changes.count++] = (struct change){ .version = version_of(object),
                                                    .type = !old      ? "ADDED"
                                                            : current ? "MODIFIED"
                                                                      : "DELETED",
                                                    .object = json_copy(object),
                                                    .scope = scope_of(object) };
    sim_wake(&changes);
    judge(NULL, old, current);
}

void sim_api_begin(fake_change_fn *on_change_too)
{
    judge = on_change_too;
    changes.arena = arena_create();
    sim_api = fake_api_create();
    fake_api_set_clock(sim_api, &CLOCK_SYSTEM);
    fake_api_on_change(sim_api, on_change, NULL);
}

unsigned sim_api_writes(void)
{
    return changes.writes;
}

const struct replica *sim_api_holder(void)
{
    return holder;
}

/* ---- requests ---- */

struct transport {
    uint32_t timeout_ms;
    bool cancelled;
};

struct transport *transport_create(struct kube_config *config UNUSED, uint32_t timeout_ms)
{
    struct transport *transport = xcalloc(1, sizeof(*transport));

    transport->timeout_ms = timeout_ms;
    return transport;
}

void transport_destroy(struct transport *transport)
{
    free(transport);
}

void transport_cancel(struct transport *transport)
{
    transport->cancelled = true;
    sim_wake(transport);
}

void transport_close_idle(struct transport *transport UNUSED, uint32_t idle_ms UNUSED)
{
}

/* On the network for so long; < 0: cancelled meanwhile. */
static int travel(struct transport *transport, int64_t us, struct error *err)
{
    int64_t arrival_us = sim_now_us() + us;

    while (!transport->cancelled && sim_now_us() < arrival_us)
        (void)sim_wait(transport, arrival_us);
    return transport->cancelled ? error_set(err, ERROR_CANCELED, "canceled") : 0;
}

static int64_t latency_us(void)
{
    return sim_chance(50) ? 1000 + (int64_t)sim_random(2000000) : 200 + (int64_t)sim_random(5000);
}

static bool fails(unsigned one_in)
{
    return one_in && sim_chance(one_in);
}

static bool is_lease(const struct http_request *request)
{
    return strstr(request->path, "/leases") != NULL;
}

static bool is_write(const struct http_request *request)
{
    return !str_equal(request->method, "GET");
}

static void refuse(struct arena *arena, struct http_response *ret, int code, const char *reason)
{
    const char *body =
        arena_printf(arena,
                     "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                     "\"reason\":\"%s\",\"message\":\"asked for by the seed\",\"code\":%d}",
                     reason, code);
    *ret = (struct http_response){ .status = code, .body = body, .body_len = strlen(body) };
}

static int execute(struct arena *arena, const struct http_request *request,
                   struct http_response *ret, struct error *err)
{
    if (is_write(request) && !is_lease(request) && !strstr(request->path, "/events"))
        changes.writes++;
    sim_atomic_begin();
    int r = fake_api_roundtrip(sim_api, arena, request, ret, err);
    sim_atomic_end();
    if (r == 0 && is_write(request) && is_lease(request) && ret->status < 300)
        holder = strstr(request->body, "\"holderIdentity\":\"\"") ? NULL : sim_replica();
    return r;
}

/* As by a webhook that does not answer for it. */
static bool is_refused_task(const struct http_request *request)
{
    const char *name = sim_api_faults.refused_task;
    const char *at = *name && is_write(request) ? strstr(request->path, name) : NULL;

    return at && str_equal(at + strlen(name), "/status");
}

static int execute_or_fail(struct arena *arena, const struct http_request *request,
                           struct http_response *ret, struct error *err)
{
    const struct sim_api_faults *faults = &sim_api_faults;

    if (fails(faults->refused))
        return error_set(err, ERROR_UNAVAILABLE, "connection refused");
    if (faults->forbidden && !is_lease(request)) {
        refuse(arena, ret, 403, "Forbidden");
        return 0;
    }
    if (fails(faults->server_error) || is_refused_task(request)) {
        refuse(arena, ret, 500, "InternalError");
        return 0;
    }
    if (is_write(request) && !str_equal(request->method, "POST") && fails(faults->conflict)) {
        refuse(arena, ret, 409, "Conflict");
        return 0;
    }
    int r = execute(arena, request, ret, err);
    return r == 0 && fails(faults->lost_reply) ? error_set(err, ERROR_TIMEOUT, "no reply in time")
                                               : r;
}

int transport_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                        struct http_response *ret, struct error *err)
{
    struct transport *transport = ctx;

    int r = travel(transport, latency_us(), err);
    if (r < 0)
        return r;
    if (sim_replica()->no_api) {
        r = travel(transport, (int64_t)transport->timeout_ms * 1000, err);
        return r < 0 ? r : error_set(err, ERROR_TIMEOUT, "no reply in time");
    }

    r = execute_or_fail(arena, request, ret, err);
    sim_trace("%s %s -> %d %s", request->method, request->path, r < 0 ? r : ret->status,
              request->body && strstr(request->path, "/status") ? request->body : "");
    int t = travel(transport, latency_us(), err);
    return t < 0 ? t : r;
}

/* ---- watches ---- */

struct feed {
    struct watch_machine *machine;
    struct watch_request request;
    struct fake_path path; /* of the request; in the feed's arena */
    struct arena *arena;
    bool running;
    bool watching;       /* otherwise a list, whose reply comes at next_us */
    size_t next;         /* change */
    int64_t version;     /* up to which it has been told */
    int64_t next_us;     /* nothing comes before */
    int64_t bookmark_us; /* the next bookmark */
    int64_t end_us;
};

struct watch_loop {
    struct feed feeds[MAX_MACHINES];
    size_t count;
    bool started, stopping;
    pthread_t thread;
};

struct watch_loop *watch_loop_create(struct kube_config *config UNUSED)
{
    return xcalloc(1, sizeof(struct watch_loop));
}

void watch_loop_destroy(struct watch_loop *loop)
{
    free(loop);
}

void watch_loop_settle(struct watch_loop *loop UNUSED)
{
}

void watch_loop_add(struct watch_loop *loop, struct watch_machine *machine)
{
    assert(loop->count < MAX_MACHINES);
    loop->feeds[loop->count++].machine = machine;
}

bool watch_loop_problem(struct watch_loop *loop, char *ret, size_t size)
{
    for (size_t i = 0; i < loop->count; i++) {
        const char *problem = watch_machine_problem(loop->feeds[i].machine);

        if (problem) {
            snprintf(ret, size, "%s", problem);
            return true;
        }
    }
    return false;
}

static int64_t now_ms(void)
{
    return sim_now_us() / 1000;
}

static void finish(struct feed *feed, int status, const char *text)
{
    feed->running = false;
    watch_machine_finish(feed->machine, status, text, now_ms());
    watch_machine_next(feed->machine, now_ms(), &feed->request);
}

static void begin(struct feed *feed)
{
    arena_destroy(feed->arena);
    feed->arena = arena_create();
    bool known = fake_path_parse(feed->arena, feed->request.path, &feed->path);
    assert(known);
    (void)known;
    feed->running = true;
    feed->watching = *fake_path_query(feed->arena, &feed->path, "watch");
    feed->next_us = sim_now_us() + latency_us();
    feed->end_us =
        sim_now_us() + (sim_chance(3) ? (int64_t)sim_random(60000000) : STREAM_MS * INT64_C(1000));
    feed->bookmark_us = sim_now_us() + BOOKMARK_MS * INT64_C(1000);
    if (!feed->watching)
        return;
    (void)str_to_int64(fake_path_query(feed->arena, &feed->path, "resourceVersion"),
                       &feed->version);
    feed->next = 0;
}

static const char GONE[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"Expired\","
    "\"message\":\"too old resource version\",\"code\":410}";

static void list(struct feed *feed)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct http_request request = { .method = "GET", .path = feed->request.path };
    struct http_response response;
    struct error err = { 0 };

    sim_atomic_begin();
    int r = fake_api_roundtrip(sim_api, arena, &request, &response, &err);
    sim_atomic_end();
    if (sim_api_faults.forbidden) {
        refuse(arena, &response, 403, "Forbidden");
        finish(feed, response.status, response.body);
    } else if (r < 0 || fails(sim_api_faults.refused)) {
        finish(feed, 0, "connection refused");
    } else if (watch_machine_feed(feed->machine, response.body, response.body_len, NULL) < 0) {
        finish(feed, 0, "not understood");
    } else {
        finish(feed, 200, NULL);
    }
}

static bool is_of(const struct feed *feed, const struct change *change)
{
    return str_equal(change->scope, feed->path.scope) &&
           fake_path_selects(feed->arena,
                             fake_path_query(feed->arena, &feed->path, "labelSelector"),
                             change->object);
}

static bool send(struct feed *feed, const char *type, const char *object)
{
    const char *line = arena_printf(feed->arena, "{\"type\":\"%s\",\"object\":%s}\n", type, object);

    if (watch_machine_feed(feed->machine, line, strlen(line), NULL) == 0)
        return true;
    finish(feed, 0, "not understood");
    return false;
}

/* The version of the next change that this stream tells; skips the others. */
static struct change *next_change(struct feed *feed)
{
    for (; feed->next < changes.count; feed->next++) {
        struct change *change = &changes.all[feed->next];

        if (change->version > feed->version && is_of(feed, change))
            return change;
    }
    return NULL;
}

static int64_t bookmark_version(void)
{
    return changes.count ? changes.all[changes.count - 1].version : 0;
}

/* The first bytes of the reply; false: the stream is over. */
static bool begin_stream(struct feed *feed)
{
    if (feed->next > 0)
        return true;
    if (fails(sim_api_faults.gone)) {
        finish(feed, 410, GONE);
        return false;
    }
    if (watch_machine_feed(feed->machine, "", 0, NULL) == 0)
        return true;
    finish(feed, 0, "not understood");
    return false;
}

static void send_bookmark(struct feed *feed)
{
    feed->version = bookmark_version();
    feed->bookmark_us = sim_now_us() + BOOKMARK_MS * INT64_C(1000);
    (void)send(feed, "BOOKMARK",
               arena_printf(feed->arena, "{\"metadata\":{\"resourceVersion\":\"%lld\"}}",
                            (long long)feed->version));
}

static void watch(struct feed *feed)
{
    struct change *change;

    if (!begin_stream(feed))
        return;
    while (feed->next_us <= sim_now_us() && (change = next_change(feed))) {
        feed->version = change->version;
        feed->next++;
        if (!change->text)
            change->text = json_text(changes.arena, change->object, NULL);
        if (!send(feed, change->type, change->text))
            return;
        if (fails(sim_api_faults.slow_watch))
            feed->next_us = sim_now_us() + (int64_t)sim_random(5000000);
    }
    if (feed->bookmark_us <= sim_now_us() && !next_change(feed))
        send_bookmark(feed);
    if (feed->running && feed->end_us <= sim_now_us())
        finish(feed, sim_chance(2) ? 200 : 0, NULL);
}

/* Returns when there is more to do. */
static int64_t step(struct feed *feed, bool no_api)
{
    if (!feed->running && feed->request.not_before_ms * 1000 <= sim_now_us())
        begin(feed);
    if (!feed->running)
        return feed->request.not_before_ms * 1000;
    if (feed->next_us > sim_now_us())
        return feed->next_us;
    if (no_api)
        finish(feed, 0, "connection lost");
    else if (feed->watching)
        watch(feed);
    else
        list(feed);
    if (!feed->running)
        return feed->request.not_before_ms * 1000;
    int64_t due_us = feed->bookmark_us < feed->end_us ? feed->bookmark_us : feed->end_us;
    return feed->next < changes.count && feed->next_us > sim_now_us() ? feed->next_us : due_us;
}

static void *run(void *ctx)
{
    struct watch_loop *loop = ctx;

    for (size_t i = 0; i < loop->count; i++)
        watch_machine_next(loop->feeds[i].machine, now_ms(), &loop->feeds[i].request);
    while (!loop->stopping) {
        int64_t due_us = NEVER;

        for (size_t i = 0; i < loop->count; i++) {
            int64_t feed_us = step(&loop->feeds[i], sim_replica()->no_api);
            if (feed_us < due_us)
                due_us = feed_us;
        }
        if (due_us > sim_now_us())
            (void)sim_wait(&changes, due_us);
    }
    for (size_t i = 0; i < loop->count; i++)
        arena_destroy(loop->feeds[i].arena);
    return NULL;
}

int watch_loop_start(struct watch_loop *loop, struct error *err)
{
    loop->started = true;
    if (pthread_create(&loop->thread, NULL, run, loop))
        return error_set(err, ERROR_INTERNAL, "watch thread");
    return 0;
}

void watch_loop_stop(struct watch_loop *loop)
{
    if (!loop->started)
        return;
    loop->started = false;
    loop->stopping = true;
    sim_wake(&changes);
    (void)pthread_join(loop->thread, NULL);
}
