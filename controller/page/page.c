#include "controller/page/page.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/net/http_server.h"
#include "common/view/means.h"
#include "common/view/state.h"
#include "common/view/timeline.h"
#include "controller/cache/indexes.h"
#include "controller/device/fleet.h"
#include "controller/page/files.h"
#include "controller/page/guard.h"
#include "controller/page/request.h"

#define MAX_CONNECTIONS (FEEDS_MAX + 64)
#define MAX_BODY (VIEWER_MAX_TOKEN + 256)
#define REQUEST_TIMEOUT_MS 30000

struct page {
    struct page_options options;
    struct http_server *http;
};

/* One request with what belongs to its answer. */
struct call {
    const struct page *page;
    struct arena *arena;
    const struct http_server_request *request;
    const char *method; /* GET for HEAD, too: the server leaves out the body */
    struct http_server_reply *reply;
    struct http_header extra; /* of the answer */
    struct viewer *viewer;    /* NULL: not logged in */
};

/* --- answers --- */

static void answer_text(struct call *call, int status, const char *type, const char *text,
                        size_t len)
{
    *call->reply = (struct http_server_reply){
        .status = status, .content_type = type, .body = text, .body_len = len
    };
}

static void answer_json(struct call *call, int status, const cJSON *document)
{
    size_t len;
    const char *text = json_text(call->arena, document, &len);

    answer_text(call, status, "application/json", text, len);
}

static void refuse(struct call *call, int status, const char *why)
{
    cJSON *document = json_object(call->arena);

    json_set_string(document, "error", why);
    answer_json(call, status, document);
}

/* An error of the API server as a status of this one. A token that it does not accept any more has ended the login. */
static void refuse_error(struct call *call, const struct error *err)
{
    int status = err->code == ERROR_NOT_FOUND ? 404 : err->code == ERROR_FORBIDDEN ? 403 : 502;

    if (viewer_has_ended(call->viewer))
        refuse(call, 401, "log in again");
    else
        refuse(call, status, err->message);
}

/* --- the request --- */

static const char *parameter(const struct call *call, const char *name)
{
    return page_parameter(call->arena, call->request->query, name);
}

static const char *cookie_name(const struct call *call)
{
    return page_cookie_name(call->arena, http_request_header(call->request, "Host"));
}

/* A namespace of the request that is one; false: refused. *ret NULL: all namespaces. */
static bool read_ns(struct call *call, const char **ret)
{
    struct error err;

    if (page_read_ns(call->arena, call->request->query, ret, &err) == 0)
        return true;
    refuse(call, 400, err.message);
    return false;
}

/* Whether the viewer may see the list; false: refused. */
static bool may_see(struct call *call, const struct kube_kind *kind, const char *ns)
{
    struct error err;
    bool may = false;

    if (viewer_may(call->viewer, kind, ns, &may, &err) < 0)
        refuse_error(call, &err);
    else if (!may)
        refuse(call, 403,
               arena_printf(call->arena, "%s may not list %s %s%s", viewer_name(call->viewer),
                            kind->plural, ns ? "in " : "in all namespaces", ns ? ns : ""));
    return may;
}

/* --- logins --- */

static void login(struct call *call)
{
    const struct http_server_request *request = call->request;
    const char *token;
    char cookie[VIEWER_COOKIE_LEN];
    struct error err = { 0 };

    if (page_read_token(call->arena, request->content_type, request->body, request->body_len,
                        &token, &err) < 0) {
        refuse(call, 400, err.message);
        return;
    }

    int r = viewers_login(call->page->options.viewers, token, cookie, &err);
    if (r == -ERROR_FORBIDDEN) {
        refuse(call, 401, err.message);
    } else if (r < 0 && err.retry_after_ms) {
        refuse(call, 429, err.message);
        call->extra =
            (struct http_header){ "Retry-After",
                                  arena_printf(call->arena, "%u", err.retry_after_ms / 1000 + 1) };
    } else if (r < 0) {
        refuse(call, 502, err.message);
    } else {
        answer_text(call, 204, NULL, NULL, 0);
        call->extra = (struct http_header){
            "Set-Cookie",
            arena_printf(call->arena, "%s%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld",
                         cookie_name(call), cookie, (long long)(VIEWER_LIFE_MS / 1000))
        };
    }
}

static void logout(struct call *call)
{
    viewers_logout(call->page->options.viewers, call->viewer);
    answer_text(call, 204, NULL, NULL, 0);
    call->extra =
        (struct http_header){ "Set-Cookie", arena_printf(call->arena, "%s; Path=/; Max-Age=0",
                                                         cookie_name(call)) };
}

static void me(struct call *call)
{
    cJSON *document = json_object(call->arena);
    struct error err;

    json_set_string(document, "user", viewer_name(call->viewer));
    json_set_int(document, "now", clock_wall_us(call->page->options.clock) / 1000);
    cJSON *all = json_set_object(document, "all");
    for (size_t i = 0; i < PAGE_LISTS; i++) {
        bool may = false;

        if (viewer_may(call->viewer, PAGE_LIST[i].kind, NULL, &may, &err) < 0) {
            refuse_error(call, &err);
            return;
        }
        json_set_bool(all, PAGE_LIST[i].name, may);
    }
    answer_json(call, 200, document);
}

/* --- feeds --- */

/* The overview has the kinds that the viewer may see; false: refused, as that is none of them. */
static bool may_see_any(struct call *call, const char *ns)
{
    struct error err;
    bool may = false;

    for (size_t i = 0; i < PAGE_LISTS && !may; i++) {
        if (viewer_may(call->viewer, PAGE_LIST[i].kind, ns, &may, &err) < 0) {
            refuse_error(call, &err);
            return false;
        }
    }
    return may || may_see(call, PAGE_LIST[0].kind, ns);
}

static void stream(struct call *call)
{
    const char *name = parameter(call, "list"), *ns = NULL;
    bool is_fleet = str_equal(name, "fleet");
    size_t list = is_fleet ? FEED_FLEET : page_list_find(name);

    if (!is_fleet && list == PAGE_LISTS) {
        refuse(call, 400, "list: must be fleet, proplets, tasks, jobs, federated or rounds");
        return;
    }
    if (!read_ns(call, &ns))
        return;
    if (!(is_fleet ? may_see_any(call, ns) : may_see(call, PAGE_LIST[list].kind, ns)))
        return;
    const struct http_stream *feed =
        feed_open(call->page->options.feeds, call->arena, call->viewer, list, ns);
    if (!feed) {
        refuse(call, 429, "too many streams are open: close a tab");
        return;
    }
    answer_text(call, 200, "text/event-stream", NULL, 0);
    call->reply->stream = feed;
}

/* --- details --- */

static const char *event_time(const cJSON *event)
{
    const char *last = json_string(json_path(event, "series", "lastObservedTime", NULL), NULL);
    const char *at = last ? last : json_string(json_get(event, "eventTime"), NULL);

    return at ? at : json_string(json_path(event, "metadata", "creationTimestamp", NULL), "");
}

/* The oldest one goes when there are too many; the array is in the order of time. */
static int take_event(void *ctx, const cJSON *event, struct error *err UNUSED)
{
    cJSON *ring = ctx;
    int at = 0;

    json_for_each (other, ring) {
        if (strcmp(event_time(other), event_time(event)) > 0)
            break;
        at++;
    }
    cJSON_InsertItemInArray(ring, at, json_copy(event));
    if (json_len(ring) > PAGE_EVENTS)
        cJSON_DeleteItemFromArray(ring, 0);
    return 0;
}

/* uid NULL: Events of all objects. */
static int list_events(struct call *call, const char *ns, const char *uid, cJSON *ret,
                       struct error *err)
{
    const struct kube_list_options options = {
        .ns = ns, .field_selector = uid ? arena_printf(call->arena, "regarding.uid=%s", uid) : NULL
    };

    return kube_list(viewer_client(call->viewer), &KIND_EVENT, &options, take_event, ret, err);
}

static void events(struct call *call)
{
    cJSON *document = json_object(call->arena), *found = json_array(call->arena);
    const char *ns = NULL;
    struct error err;

    if (!read_ns(call, &ns))
        return;
    if (list_events(call, ns, NULL, found, &err) < 0) {
        refuse_error(call, &err);
        return;
    }
    cJSON *rows = json_set_array(document, "events");
    json_for_each (event, found) {
        cJSON *row = json_add_object(rows);

        json_set_string(row, "time", event_time(event));
        json_set_copy(row, "type", json_get(event, "type"));
        json_set_copy(row, "reason", json_get(event, "reason"));
        json_set_copy(row, "note", json_get(event, "note"));
        json_set_copy(row, "kind", json_path(event, "regarding", "kind", NULL));
        json_set_copy(row, "ns", json_path(event, "regarding", "namespace", NULL));
        json_set_copy(row, "name", json_path(event, "regarding", "name", NULL));
        json_set_copy(row, "count", json_path(event, "series", "count", NULL));
    }
    answer_json(call, 200, document);
}

/* A Task of a participant; ctx: means. */
static int take_update(void *ctx, const cJSON *task, struct error *err UNUSED)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *owner = kube_controller_uid(task);

    if (owner)
        means_add(ctx, owner, json_opened(arena, json_path(task, "status", "results", NULL)));
    return 0;
}

/* The means of the metrics that the participants of each round sent; without the right to read Tasks: none. */
static const struct means *read_means(struct call *call, const char *ns)
{
    struct means *means = means_create(call->arena);
    struct error err;

    (void)!kube_list(viewer_client(call->viewer), &KIND_TASK,
                     &(struct kube_list_options){ .ns = ns, .label_selector = LABEL_ROUND },
                     take_update, means, &err);
    return means;
}

/* The states in the round that has not ended: the job has those of the round before it. */
static void take_participants(const cJSON *round, cJSON *document)
{
    const cJSON *participants = json_path(round, "status", "participants", NULL);

    if (!participants || state_of(&KIND_TRAININGROUND, round).is_final)
        return;
    json_remove(document, "participants");
    json_set_copy(document, "participants", participants);
}

/* The objects that this one controls: Tasks of a job or a round, rounds of a FederatedJob. "cut": there are more. */
static void add_children(struct call *call, size_t list, const cJSON *object, cJSON *document)
{
    cJSON *rows = json_set_array(document, "children");
    const struct kube_kind *kind = PAGE_LIST[list].kind;
    bool has_rounds = kind == &KIND_FEDERATEDJOB;
    const char *ns = json_string(json_path(object, "metadata", "namespace", NULL), "");
    size_t of = page_list_find(has_rounds ? "rounds" : "tasks");
    bool may = false;
    struct error err;

    if (kind == &KIND_TASK || kind == &KIND_PROPLET ||
        viewer_may(call->viewer, PAGE_LIST[of].kind, ns, &may, &err) < 0 || !may)
        return;

    struct store *store = informer_store(call->page->options.informers[of]);
    struct object_list children =
        has_rounds ? store_list(store, call->arena, ns)
                   : store_find(store, call->arena, INDEX_OWNER, kube_uid(object));
    const struct means *means = has_rounds ? read_means(call, ns) : NULL;
    for (size_t i = 0; i < children.len; i++) {
        if (json_len(rows) == PAGE_MAX_CHILDREN) {
            json_set_bool(document, "cut", true);
            return;
        }
        const cJSON *json = kube_object_json(call->arena, children.items[i]);

        /* a user of another namespace may write any owner into a Task */
        if (!str_equal(children.items[i]->ns, ns) ||
            (has_rounds && !str_equal(kube_controller_uid(json), kube_uid(object))))
            continue;
        cJSON *row = json_add_object(rows);
        page_row(PAGE_LIST[of].kind, json, row);
        if (!has_rounds)
            continue;
        means_show(means, children.items[i]->uid, json_set_object(row, "means"));
        take_participants(json, document);
    }
}

static void add_load(struct call *call, size_t list, const cJSON *object, cJSON *document)
{
    struct fleet_device device;
    char key[FLEET_KEY_LEN];

    if (PAGE_LIST[list].kind != &KIND_PROPLET || !proplet_identity_of(object, NULL, key))
        return;
    fleet_get(call->page->options.fleet, call->arena, key, &device);
    trend_show(&device.trend, clock_wall_us(call->page->options.clock), document);
}

static void object_detail(struct call *call)
{
    cJSON *document = json_object(call->arena), *found = json_array(call->arena);
    cJSON *object = NULL;
    size_t list;
    struct kube_name key;
    struct error err;

    if (page_read_object(call->arena, call->request->query, &list, &key, &err) < 0) {
        refuse(call, 400, err.message);
        return;
    }
    if (kube_get(viewer_client(call->viewer), call->arena, PAGE_LIST[list].kind, &key, &object,
                 &err) < 0) {
        refuse_error(call, &err);
        return;
    }
    (void)!list_events(call, key.ns, kube_uid(object), found, &err); /* without the right: none */
    page_explain(PAGE_LIST[list].kind, object, json_set_object(document, "why"));
    timeline_rows(call->arena, object, found, json_set_array(document, "timeline"));
    add_children(call, list, object, document);
    add_load(call, list, object, document);
    page_clean(call->arena, object);
    json_set_copy(document, "object", object);
    answer_json(call, 200, document);
}

/* --- routes --- */

static const struct {
    const char *method, *path;
    void (*function)(struct call *call);
    bool is_open; /* needs no login */
} ROUTES[] = {
    { "POST", "/login", login, true },
    { "POST", "/logout", logout, false },
    { "GET", "/api/me", me, false },
    { "GET", "/api/stream", stream, false },
    { "GET", "/api/object", object_detail, false },
    { "GET", "/api/events", events, false },
};

static void answer_route(struct call *call)
{
    const char *path = call->request->path, *method = call->method;
    struct page_file file;

    for (size_t i = 0; i < ARRAY_LEN(ROUTES); i++) {
        if (!str_equal(ROUTES[i].path, path))
            continue;
        if (!str_equal(ROUTES[i].method, method))
            refuse(call, 405, "this method is not for this path");
        else if (!ROUTES[i].is_open && !call->viewer)
            refuse(call, 401, "log in first");
        else
            ROUTES[i].function(call);
        return;
    }
    if (str_equal(method, "GET") && page_file_find(path, &file))
        answer_text(call, 200, file.type, file.text, file.len);
    else
        refuse(call, 404, "there is no such page");
}

/* A person who follows a link on another site, in a chat or a runbook. The file has no data, and the browser sends no
 * cookie with this request. */
static bool is_link_to_a_file(const struct call *call)
{
    const struct http_server_request *request = call->request;
    struct page_file file;

    return str_equal(call->method, "GET") &&
           str_equal(http_request_header(request, "Sec-Fetch-Mode"), "navigate") &&
           str_equal(http_request_header(request, "Sec-Fetch-Dest"), "document") &&
           page_file_find(request->path, &file);
}

static void handle(void *ctx, struct arena *arena, const struct http_server_request *request,
                   struct http_server_reply *ret)
{
    const struct page *page = ctx;
    struct call call = { .page = page,
                         .arena = arena,
                         .request = request,
                         .method = str_equal(request->method, "HEAD") ? "GET" : request->method,
                         .reply = ret };

    if (!page_host_is_known(http_request_header(request, "Host"), page->options.hosts,
                            page->options.host_count)) {
        refuse(&call, 403, "this name of the server is not known: --page-host allows further ones");
    } else if (!page_site_is_own(http_request_header(request, "Sec-Fetch-Site")) &&
               !is_link_to_a_file(&call)) {
        refuse(&call, 403, "pages of other sites may not ask this one");
    } else {
        const char *cookie =
            page_cookie(arena, http_request_header(request, "Cookie"), cookie_name(&call));

        call.viewer = cookie ? viewers_find(page->options.viewers, cookie) : NULL;
        if (call.viewer)
            http_request_set_known(request);
        answer_route(&call);
    }
    page_set_headers(ret, call.extra);
    viewer_unref(call.viewer);
}

int page_start(const struct page_options *options, struct page **ret, struct error *err)
{
    struct page *page = xcalloc(1, sizeof(*page));
    const struct http_server_options http = {
        .address = options->address,
        .handler = handle,
        .ctx = page,
        .thread_per_connection = true,
        .max_connections = MAX_CONNECTIONS,
        .max_strangers = MAX_CONNECTIONS / 4,
        .max_body = MAX_BODY,
        .request_timeout_ms = REQUEST_TIMEOUT_MS,
    };

    page->options = *options;
    int r = http_server_start(&http, &page->http, err);
    if (r < 0) {
        free(page);
        return error_wrap(err, "--page-bind-address");
    }
    *ret = page;
    return 0;
}

void page_stop(struct page *page)
{
    if (!page)
        return;
    http_server_stop(page->http);
    free(page);
}

unsigned page_port(const struct page *page)
{
    return http_server_port(page->http);
}
