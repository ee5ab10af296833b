#include "controller/tests/page_fixture.h"

#include <string.h>

#include "common/base/str.h"
#include "common/kube/in_process.h"
#include "common/tests/parsed.h"
#include "controller/cache/indexes.h"

struct page_fixture page_fixture;

/* The API as the user of a token. */
static struct guest {
    struct kube_in_process api;
    char token[32];
} guests[VIEWERS_MAX * 2];
static size_t guest_count;
static struct kube_in_process base;

static const char *answer(struct arena *scratch, const struct guest *guest,
                          const struct http_request *request, int *status)
{
    bool is_good = str_has_prefix(guest->token, "good");
    bool has_tasks = str_equal(guest->token, "tasks");
    const cJSON *review = NULL;

    *status = 201;
    if (page_fixture.is_revoked || !(is_good || has_tasks || str_equal(guest->token, "lab"))) {
        *status = 401;
        return "{}";
    }
    if (strstr(request->path, "selfsubjectreviews"))
        return arena_printf(scratch, "{\"status\":{\"userInfo\":{\"username\":\"user-%s\"}}}",
                            guest->token);
    if (strstr(request->path, "selfsubjectaccessreviews")) {
        page_fixture.reviews++;
        review = parsed(scratch, request->body);
        const char *ns =
            json_string(json_path(review, "spec", "resourceAttributes", "namespace", NULL), "");
        const char *plural =
            json_string(json_path(review, "spec", "resourceAttributes", "resource", NULL), "");
        bool may = has_tasks ? str_equal(plural, "tasks") : is_good || str_equal(ns, "lab");
        return may ? "{\"status\":{\"allowed\":true}}" : "{\"status\":{\"allowed\":false}}";
    }
    *status = 200;
    if (strstr(request->path, "/events")) {
        const char *items = strstr(request->path, "fieldSelector=regarding.uid%3Du")
                                ? page_fixture.events_of_u
                                : page_fixture.events;

        return arena_printf(scratch, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[%s]}",
                            items ? items : "");
    }
    if (!page_fixture.object)
        *status = 404;
    return page_fixture.object ? page_fixture.object : "{}";
}

static int roundtrip(void *ctx, struct arena *scratch, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (page_fixture.is_away)
        return error_set(err, ERROR_UNAVAILABLE, "the test took it away");
    if (page_fixture.cancels)
        viewers_cancel(page_fixture.viewers);
    *ret = (struct http_response){ 0 };
    ret->body = answer(scratch, ctx, request, &ret->status);
    ret->body_len = strlen(ret->body);
    return 0;
}

static struct kube_in_process *enter(void *ctx UNUSED, const char *token)
{
    struct guest *guest = &guests[guest_count++ % ARRAY_LEN(guests)];

    (void)str_copy(guest->token, sizeof(guest->token), token);
    guest->api = (struct kube_in_process){ .ctx = guest, .roundtrip = roundtrip };
    return &guest->api;
}

static void leave(struct kube_in_process *api UNUSED)
{
}

static void count(void *ctx UNUSED, struct arena *scratch UNUSED, const char *ns, cJSON *ret)
{
    cJSON *kinds = json_set_object(ret, "kinds");

    json_set_string(ret, "of", ns ? ns : "all");
    json_set_int(json_set_object(kinds, "proplets"), "Running", 2);
    json_set_int(json_set_object(kinds, "tasks"), "pending", 3);
}

void page_set_up(void)
{
    struct feeds_options options = { .count = count };

    arena_set_up();
    page_fixture = (struct page_fixture){ .object = NULL };
    fake_clock_init(&page_fixture.clock);
    base = (struct kube_in_process){ .roundtrip = roundtrip, .enter = enter, .leave = leave };
    page_fixture.config = kube_config_create_in_process(&base);
    page_fixture.loop = watch_loop_create(page_fixture.config);
    for (size_t i = 0; i < PAGE_LISTS; i++) {
        const struct watch_options watch = { .kind = PAGE_LIST[i].kind };

        page_fixture.informers[i] = informer_create(page_fixture.loop, &watch);
        options.informers[i] = page_fixture.informers[i];
    }
    indexes_add_task(informer_store(page_fixture.informers[page_list_find("tasks")]));
    page_fixture.fleet = fleet_create();
    options.fleet = page_fixture.fleet;
    options.clock = &page_fixture.clock.clock;
    page_fixture.feeds = feeds_create(&options);
    page_fixture.viewers = viewers_create(page_fixture.config, &page_fixture.clock.clock);
}

void page_tear_down(void)
{
    feeds_destroy(page_fixture.feeds);
    viewers_destroy(page_fixture.viewers);
    watch_loop_destroy(page_fixture.loop);
    for (size_t i = 0; i < PAGE_LISTS; i++)
        informer_destroy(page_fixture.informers[i]);
    fleet_destroy(page_fixture.fleet);
    kube_config_destroy(page_fixture.config);
    arena_tear_down();
}

void page_put(const char *list, const char *json)
{
    cJSON *own = arena_own(arena, json_copy(parsed(arena, json)), json_free);

    informer_observed(page_fixture.informers[page_list_find(list)], own);
}

struct viewer *page_login(const char *token)
{
    char cookie[VIEWER_COOKIE_LEN];
    struct error err = { 0 };
    int r = viewers_login(page_fixture.viewers, token, cookie, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    struct viewer *viewer = viewers_find(page_fixture.viewers, cookie);
    ck_assert_ptr_nonnull(viewer);
    return viewer;
}
