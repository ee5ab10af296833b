#include "controller/page/viewers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/in_process.h"

#define REQUEST_TIMEOUT_MS 10000

static const struct kube_kind KIND_SELF = { .group = "authentication.k8s.io",
                                            .version = "v1",
                                            .kind = "SelfSubjectReview",
                                            .plural = "selfsubjectreviews" };
static const struct kube_kind KIND_ACCESS = { .group = "authorization.k8s.io",
                                              .version = "v1",
                                              .kind = "SelfSubjectAccessReview",
                                              .plural = "selfsubjectaccessreviews" };

struct right {
    const struct kube_kind *kind;
    char *ns; /* "": all */
    bool is_allowed;
    int64_t until_ms; /* asked again from then on */
};

struct viewer {
    struct viewers *of;
    struct viewer *previous, *next; /* all that live, with the lock of the viewers */
    atomic_uint references;
    char cookie_hash[SHA256_HEX_LEN];
    char *token;
    char *name;
    const struct clock *clock;
    struct kube_config *config;
    struct kube_client *client;
    const struct kube_in_process *base; /* NULL: there is a server */
    struct kube_in_process *api;        /* of base, as this viewer */
    int64_t began_ms;
    atomic_llong used_ms;
    atomic_bool has_ended;

    pthread_mutex_t lock; /* of the members below */
    struct right rights[VIEWER_MAX_RIGHTS];
    size_t next_right; /* a new answer replaces the one that is here */
    int64_t retry_ms;  /* no question before, if there is an older answer */
};

struct viewers {
    struct kube_config *config;
    const struct clock *clock;
    pthread_mutex_t lock; /* of the members below */
    struct viewer
        *living; /* also those that log in, and those whose login is over and that still ask */
    bool is_canceled;
    struct viewer *items[VIEWERS_MAX];
    int64_t failed_ms[VIEWERS_FAILED_LOGINS]; /* a ring of the last ones; 0: none */
    size_t next_failed;
};

/* --- one viewer --- */

static int get_token(void *ctx, char **ret, struct error *err UNUSED)
{
    *ret = xstrdup(((const struct viewer *)ctx)->token);
    return 0;
}

static void on_request(void *ctx, const char *method UNUSED, int status, int64_t duration_ms UNUSED)
{
    struct viewer *viewer = ctx;

    if (status == 401)
        atomic_store(&viewer->has_ended, true);
}

struct viewer *viewer_ref(struct viewer *viewer)
{
    atomic_fetch_add(&viewer->references, 1);
    return viewer;
}

static void enlist(struct viewer *viewer)
{
    struct viewers *viewers = viewer->of;

    pthread_mutex_lock(&viewers->lock);
    viewer->next = viewers->living;
    if (viewer->next)
        viewer->next->previous = viewer;
    viewers->living = viewer;
    if (viewers->is_canceled)
        kube_client_cancel(viewer->client);
    pthread_mutex_unlock(&viewers->lock);
}

/* One that was never listed is none's neighbour. */
static void unlist(struct viewer *viewer)
{
    struct viewers *viewers = viewer->of;

    pthread_mutex_lock(&viewers->lock);
    if (viewers->living == viewer)
        viewers->living = viewer->next;
    if (viewer->previous)
        viewer->previous->next = viewer->next;
    if (viewer->next)
        viewer->next->previous = viewer->previous;
    pthread_mutex_unlock(&viewers->lock);
}

/* Not with the lock of the viewers. */
void viewer_unref(struct viewer *viewer)
{
    if (!viewer || atomic_fetch_sub(&viewer->references, 1) != 1)
        return;
    unlist(viewer);
    kube_client_destroy(viewer->client);
    kube_config_destroy(viewer->config);
    if (viewer->api)
        viewer->base->leave(viewer->api);
    for (size_t i = 0; i < VIEWER_MAX_RIGHTS; i++)
        free(viewer->rights[i].ns);
    free_secret(viewer->token);
    free(viewer->name);
    pthread_mutex_destroy(&viewer->lock);
    free(viewer);
}
DEFINE_CLEANUP(struct viewer *, viewer_unref)

static int connect_viewer(struct viewer *viewer, struct kube_config *config, struct error *err)
{
    const struct kube_token_source source = { .ctx = viewer, .get = get_token };
    int r = 0;

    viewer->base = kube_config_in_process(config);
    if (!viewer->base) {
        r = kube_config_create_as(config, &source, &viewer->config, err);
    } else if (viewer->base->enter) {
        viewer->api = viewer->base->enter(viewer->base->ctx, viewer->token);
        viewer->config = kube_config_create_in_process(viewer->api);
    } else {
        r = error_set(err, ERROR_INTERNAL, "the API of this process has no users");
    }
    if (r < 0)
        return r;
    viewer->client = kube_client_create(viewer->config, REQUEST_TIMEOUT_MS);
    kube_client_set_observer(viewer->client, on_request, viewer);
    return 0;
}

/* Asks the API server for the name of the user with this token. */
static int ask_name(struct viewer *viewer, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *review = json_object(arena);
    const cJSON *answer = NULL;

    json_set_string(review, "apiVersion", "authentication.k8s.io/v1");
    json_set_string(review, "kind", KIND_SELF.kind);
    int r = kube_review(viewer->client, arena, &KIND_SELF, review, &answer, err);
    if (atomic_load(&viewer->has_ended))
        return error_set(err, ERROR_FORBIDDEN, "the API server does not accept this token");
    if (r < 0)
        return r;
    viewer->name =
        xstrdup(json_string(json_path(answer, "status", "userInfo", "username", NULL), "unknown"));
    return 0;
}

const char *viewer_name(const struct viewer *viewer)
{
    return viewer->name;
}

struct kube_client *viewer_client(struct viewer *viewer)
{
    return viewer->client;
}

/* As viewer_has_ended, but it is no sign of life. */
static bool is_over(struct viewer *viewer, int64_t now_ms)
{
    return atomic_load(&viewer->has_ended) || now_ms - viewer->began_ms >= VIEWER_LIFE_MS ||
           now_ms - atomic_load(&viewer->used_ms) >= VIEWER_IDLE_MS;
}

bool viewer_has_ended(struct viewer *viewer)
{
    int64_t now_ms = clock_monotonic_ms(viewer->clock);

    if (is_over(viewer, now_ms))
        return true;
    atomic_store(&viewer->used_ms, now_ms);
    return false;
}

/* --- rights --- */

static int ask_right(struct viewer *viewer, const struct kube_kind *kind, const char *ns,
                     const char *verb, bool *ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *review = json_object(arena);
    const cJSON *answer = NULL;

    json_set_string(review, "apiVersion", "authorization.k8s.io/v1");
    json_set_string(review, "kind", KIND_ACCESS.kind);
    cJSON *attributes = json_set_object(json_set_object(review, "spec"), "resourceAttributes");
    json_set_string(attributes, "group", kind->group);
    json_set_string(attributes, "resource", kind->plural);
    json_set_string(attributes, "verb", verb);
    if (ns)
        json_set_string(attributes, "namespace", ns);
    int r = kube_review(viewer->client, arena, &KIND_ACCESS, review, &answer, err);
    if (r == 0)
        *ret = json_bool(json_path(answer, "status", "allowed", NULL), false);
    return r;
}

/* With the lock. NULL: never asked, or long ago. */
static struct right *find_right(struct viewer *viewer, const struct kube_kind *kind, const char *ns)
{
    for (size_t i = 0; i < VIEWER_MAX_RIGHTS; i++) {
        struct right *right = &viewer->rights[i];

        if (right->kind == kind && str_equal(right->ns, ns))
            return right;
    }
    return NULL;
}

static void keep_right(struct viewer *viewer, const struct kube_kind *kind, const char *ns,
                       bool is_allowed, int64_t until_ms)
{
    pthread_mutex_lock(&viewer->lock);
    struct right *right = find_right(viewer, kind, ns);
    if (!right) {
        right = &viewer->rights[viewer->next_right];
        viewer->next_right = (viewer->next_right + 1) % VIEWER_MAX_RIGHTS;
        free(right->ns);
        right->kind = kind;
        right->ns = xstrdup(ns);
    }
    right->is_allowed = is_allowed;
    right->until_ms = until_ms;
    pthread_mutex_unlock(&viewer->lock);
}

/* An API server that hangs takes a time-out for each question, and the feed that asks it has caches to send. */
static void hold_questions(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    viewer->retry_ms = clock_monotonic_ms(viewer->clock) + VIEWER_RETRY_MS;
    pthread_mutex_unlock(&viewer->lock);
}

int viewer_may(struct viewer *viewer, const struct kube_kind *kind, const char *ns, bool *ret,
               struct error *err)
{
    int64_t now_ms = clock_monotonic_ms(viewer->clock);
    const char *key = ns ? ns : "";
    bool is_fresh = false;

    pthread_mutex_lock(&viewer->lock);
    struct right *right = find_right(viewer, kind, key);
    if (right) {
        is_fresh = now_ms < right->until_ms || now_ms < viewer->retry_ms;
        *ret = right->is_allowed;
    }
    pthread_mutex_unlock(&viewer->lock);
    if (is_fresh)
        return 0;

    int r = ask_right(viewer, kind, ns, "list", ret, err);
    if (r == 0 && *ret)
        r = ask_right(viewer, kind, ns, "watch", ret, err);
    if (r == 0)
        keep_right(viewer, kind, key, *ret, now_ms + VIEWER_RIGHTS_MS);
    else
        hold_questions(viewer);
    return r;
}

/* --- all of them --- */

struct viewers *viewers_create(struct kube_config *config, const struct clock *clock)
{
    struct viewers *viewers = xcalloc(1, sizeof(*viewers));

    viewers->config = config;
    viewers->clock = clock;
    pthread_mutex_init(&viewers->lock, NULL);
    return viewers;
}

void viewers_destroy(struct viewers *viewers)
{
    if (!viewers)
        return;
    for (size_t i = 0; i < VIEWERS_MAX; i++)
        viewer_unref(viewers->items[i]);
    pthread_mutex_destroy(&viewers->lock);
    free(viewers);
}

void viewers_cancel(struct viewers *viewers)
{
    pthread_mutex_lock(&viewers->lock);
    viewers->is_canceled = true;
    for (struct viewer *viewer = viewers->living; viewer; viewer = viewer->next)
        kube_client_cancel(viewer->client);
    pthread_mutex_unlock(&viewers->lock);
}

/* 0: a login may be tried; otherwise in how many milliseconds it may. */
static uint32_t login_wait_ms(struct viewers *viewers, int64_t now_ms)
{
    pthread_mutex_lock(&viewers->lock);
    int64_t oldest_ms = viewers->failed_ms[viewers->next_failed];
    pthread_mutex_unlock(&viewers->lock);
    return oldest_ms && now_ms - oldest_ms < VIEWERS_FAILED_MS
               ? (uint32_t)(oldest_ms + VIEWERS_FAILED_MS - now_ms)
               : 0;
}

static void note_failure(struct viewers *viewers, int64_t now_ms)
{
    pthread_mutex_lock(&viewers->lock);
    viewers->failed_ms[viewers->next_failed] = now_ms;
    viewers->next_failed = (viewers->next_failed + 1) % VIEWERS_FAILED_LOGINS;
    pthread_mutex_unlock(&viewers->lock);
}

static struct viewer **idler(struct viewer **a, struct viewer **b)
{
    return !a || atomic_load(&(*b)->used_ms) < atomic_load(&(*a)->used_ms) ? b : a;
}

/* With the lock: a place that is free, or whose login is over. Else that of the one idle longest, among those of this
 * user if the user has too many. */
static struct viewer **find_place(struct viewers *viewers, const char *name, int64_t now_ms)
{
    struct viewer **free_place = NULL, **idlest = NULL, **own = NULL;
    size_t own_count = 0;

    for (size_t i = 0; i < VIEWERS_MAX; i++) {
        struct viewer **item = &viewers->items[i];

        if (!*item || is_over(*item, now_ms)) {
            free_place = item;
            continue;
        }
        idlest = idler(idlest, item);
        if (str_equal((*item)->name, name)) {
            own = idler(own, item);
            own_count++;
        }
    }
    if (own_count >= VIEWERS_OF_A_USER)
        return own;
    return free_place ? free_place : idlest;
}

static void add(struct viewers *viewers, struct viewer *viewer, int64_t now_ms)
{
    pthread_mutex_lock(&viewers->lock);
    struct viewer **place = find_place(viewers, viewer->name, now_ms);
    struct viewer *before = *place;
    *place = viewer;
    pthread_mutex_unlock(&viewers->lock);
    if (before)
        atomic_store(&before->has_ended, true); /* its streams end, too */
    viewer_unref(before);
}

/* Three random UUIDs have 366 random bits, of which the digest keeps 256. */
static void make_cookie(char ret[static VIEWER_COOKIE_LEN])
{
    char random[3 * UUID_LEN], digest[SHA256_HEX_LEN];

    for (size_t i = 0; i < 3; i++)
        uuid_random(random + i * UUID_LEN);
    sha256_hex(random, sizeof(random), digest);
    memcpy(ret, digest, VIEWER_COOKIE_LEN);
}

int viewers_login(struct viewers *viewers, const char *token, char ret[static VIEWER_COOKIE_LEN],
                  struct error *err)
{
    int64_t now_ms = clock_monotonic_ms(viewers->clock);
    uint32_t wait_ms = login_wait_ms(viewers, now_ms);

    if (wait_ms) {
        int r = error_set(err, ERROR_UNAVAILABLE, "too many logins have failed, try again later");
        err->retry_after_ms = wait_ms;
        return r;
    }

    CLEANUP(viewer_unrefp) struct viewer *viewer = xcalloc(1, sizeof(*viewer));
    atomic_init(&viewer->references, 1);
    pthread_mutex_init(&viewer->lock, NULL);
    viewer->clock = viewers->clock;
    viewer->token = xstrdup(token);
    viewer->began_ms = now_ms;
    atomic_init(&viewer->used_ms, now_ms);
    viewer->of = viewers;
    int r = connect_viewer(viewer, viewers->config, err);
    if (r == 0)
        enlist(viewer);
    if (r == 0)
        r = ask_name(viewer, err);
    if (r == -ERROR_FORBIDDEN)
        note_failure(viewers, now_ms);
    if (r < 0)
        return r;

    make_cookie(ret);
    sha256_hex(ret, strlen(ret), viewer->cookie_hash);
    add(viewers, TAKE(viewer), now_ms);
    return 0;
}

struct viewer *viewers_find(struct viewers *viewers, const char *cookie)
{
    char hash[SHA256_HEX_LEN];
    struct viewer *found = NULL;

    sha256_hex(cookie, strlen(cookie), hash);
    pthread_mutex_lock(&viewers->lock);
    for (size_t i = 0; i < VIEWERS_MAX && !found; i++) {
        struct viewer *viewer = viewers->items[i];

        if (viewer && str_equal(viewer->cookie_hash, hash) && !viewer_has_ended(viewer))
            found = viewer_ref(viewer);
    }
    pthread_mutex_unlock(&viewers->lock);
    return found;
}

void viewers_logout(struct viewers *viewers, struct viewer *viewer)
{
    bool was_listed = false;

    atomic_store(&viewer->has_ended, true);
    pthread_mutex_lock(&viewers->lock);
    for (size_t i = 0; i < VIEWERS_MAX && !was_listed; i++) {
        was_listed = viewers->items[i] == viewer;
        if (was_listed)
            viewers->items[i] = NULL;
    }
    pthread_mutex_unlock(&viewers->lock);
    if (was_listed)
        viewer_unref(viewer);
}
