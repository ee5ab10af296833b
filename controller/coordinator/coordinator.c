#include "controller/coordinator/coordinator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"

struct served {
    const struct coordinator_service *service;
    void *self;
    size_t max_body;
};

struct coordinator {
    struct coordinator_options options;
    struct http_server *server;
    struct uploads *uploads;
    struct served services[COORDINATOR_MAX_SERVICES];
    size_t len;
};

static struct metric REQUESTS = { .type = METRIC_COUNTER,
                                  .name = "propeller_coordinator_requests_total",
                                  .help = "Number of requests of devices, by what they ask for.",
                                  .labels = { "what", "code" } };

struct coordinator *coordinator_create(const struct coordinator_options *options)
{
    struct coordinator *coordinator = xcalloc(1, sizeof(*coordinator));

    coordinator->options = *options;
    coordinator->uploads = uploads_create();
    return coordinator;
}

void coordinator_destroy(struct coordinator *coordinator)
{
    if (!coordinator)
        return;
    coordinator_stop(coordinator);
    uploads_destroy(coordinator->uploads);
    free(coordinator);
}

void coordinator_serve(struct coordinator *coordinator, const struct coordinator_service *service,
                       void *self, size_t max_body)
{
    assert(coordinator->len < COORDINATOR_MAX_SERVICES);
    coordinator->services[coordinator->len++] = (struct served){ service, self, max_body };
}

/* NULL: no service owns the path. */
static const struct served *find_service(const struct coordinator *coordinator, const char *path)
{
    for (size_t i = 0; i < coordinator->len; i++) {
        if (coordinator->services[i].service->owns(path))
            return &coordinator->services[i];
    }
    return NULL;
}

static size_t limit_body(void *ctx, const struct http_server_request *request)
{
    const struct served *served = find_service(ctx, request->path);

    return served ? served->max_body : 0;
}

static void refuse(void *ctx, struct arena *arena, const struct http_server_request *request,
                   int status, struct http_server_reply *ret)
{
    const struct served *served = find_service(ctx, request->path);

    if (served && served->service->refuse)
        served->service->refuse(served->self, arena, request, status, ret);
}

int coordinator_start(struct coordinator *coordinator, struct error *err)
{
    struct http_server_options options = {
        .address = coordinator->options.address,
        .handler = coordinator_handle,
        .admit = coordinator_admit,
        .limit = limit_body,
        .refuse = refuse,
        .ctx = coordinator,
        .threads = COORDINATOR_THREADS,
        .max_connections = COORDINATOR_MAX_CONNECTIONS,
        .max_bodies = COORDINATOR_MAX_BODIES,
        .small_body = UPLOADS_LARGE,
        .wait_ms = COORDINATOR_PATIENCE_MS,
        .request_timeout_ms = COORDINATOR_TIMEOUT_MS,
        .min_rate = COORDINATOR_MIN_RATE,
    };

    for (size_t i = 0; i < coordinator->len; i++) {
        if (coordinator->services[i].max_body > options.max_body)
            options.max_body = coordinator->services[i].max_body;
    }
    int r = http_server_start(&options, &coordinator->server, err);
    if (r == 0)
        uploads_open(coordinator->uploads, coordinator->server);
    return r;
}

unsigned coordinator_port(const struct coordinator *coordinator)
{
    return coordinator->server ? http_server_port(coordinator->server) : 0;
}

void coordinator_stop(struct coordinator *coordinator)
{
    uploads_close(coordinator->uploads);
    http_server_stop(coordinator->server);
    coordinator->server = NULL;
}

static const struct served *served_by(const struct coordinator *coordinator,
                                      const struct upload_sender *sender)
{
    const struct served *served = coordinator->services;

    while (served->service != sender->service)
        served++;
    return served;
}

/* Those whose turn has come go to their services. */
static void hand_out(struct coordinator *coordinator)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct upload_sender sender;

    while (uploads_next(coordinator->uploads, arena, &sender)) {
        const struct served *served = served_by(coordinator, &sender);
        int status = served->service->deliver(served->self, arena, &sender);

        if (status)
            uploads_tell(coordinator->uploads, sender.token, status);
    }
}

const char *coordinator_read(struct coordinator *coordinator, struct arena *arena, uint64_t token,
                             size_t *ret_len)
{
    return coordinator ? uploads_read(coordinator->uploads, arena, token, ret_len) : NULL;
}

size_t coordinator_count(struct coordinator *coordinator, const struct coordinator_service *service,
                         const char *uid)
{
    return coordinator ? uploads_count(coordinator->uploads, service, uid) : 0;
}

void coordinator_pass(struct coordinator *coordinator, const char *uid)
{
    if (!coordinator)
        return;
    uploads_pass(coordinator->uploads, uid);
    hand_out(coordinator);
}

void coordinator_forget(struct coordinator *coordinator, const char *uid)
{
    if (!coordinator)
        return;
    uploads_forget(coordinator->uploads, uid);
    hand_out(coordinator);
}

void coordinator_tell(struct coordinator *coordinator, uint64_t token, int status)
{
    uploads_tell(coordinator->uploads, token, status);
    hand_out(coordinator);
}

/* A request that waits, as long as its arena lives. */
struct ticket {
    struct uploads *uploads;
    uint64_t token;
};

static void leave(void *data)
{
    const struct ticket *ticket = data;

    (void)uploads_leave(ticket->uploads, ticket->token);
}

int coordinator_take(struct coordinator *coordinator, struct arena *arena,
                     const struct http_server_request *request, struct upload_sender *sender)
{
    if (request->is_last_call) {
        int status = uploads_leave(coordinator->uploads, request->id);
        return status ? status : 503;
    }
    sender->token = request->id;
    if (!uploads_add(coordinator->uploads, sender, http_body_keep(request)))
        return 503;

    struct ticket *ticket = arena_new(arena, struct ticket);
    *ticket = (struct ticket){ coordinator->uploads, sender->token };
    arena_own(arena, ticket, leave);
    hand_out(coordinator);
    return HTTP_LATER;
}

const char *coordinator_part(struct arena *arena, const char *path, const char *prefix,
                             const char *suffix)
{
    size_t len = strlen(path), before = strlen(prefix), after = strlen(suffix);

    if (!str_has_prefix(path, prefix) || len <= before + after ||
        !str_equal(path + len - after, suffix))
        return NULL;
    const char *part = arena_strndup(arena, path + before, len - before - after);
    return strchr(part, '/') ? NULL : part;
}

static void count(struct arena *arena, const struct served *served, int status)
{
    if (status != HTTP_LATER)
        metric_add(&REQUESTS, 1, served ? served->service->what : "other",
                   arena_printf(arena, "%d", status), NULL);
}

static bool leads(const struct coordinator *coordinator)
{
    return coordinator->options.leads(coordinator->options.leads_ctx);
}

int coordinator_admit(void *ctx, struct arena *arena, const struct http_server_request *request)
{
    struct coordinator *coordinator = ctx;
    const struct served *served = find_service(coordinator, request->path);
    int status = 405;

    if (!leads(coordinator))
        status = 503;
    else if (served && served->service->admit)
        status = served->service->admit(served->self, arena, request);
    count(arena, served, status);
    return status;
}

void coordinator_handle(void *ctx, struct arena *arena, const struct http_server_request *request,
                        struct http_server_reply *ret)
{
    struct coordinator *coordinator = ctx;
    const struct served *served = find_service(coordinator, request->path);

    if (!leads(coordinator))
        ret->status = 503;
    else if (!served)
        ret->status = 404;
    else
        ret->status = served->service->answer(served->self, arena, request, ret);
    count(arena, served, ret->status);
}
