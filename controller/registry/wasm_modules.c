#include "controller/registry/wasm_modules.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/map.h"
#include "common/runtime/backoff.h"
#include "common/runtime/thread.h"
#include "controller/registry/fetch.h"
#include "controller/registry/key_file.h"
#include "controller/registry/wanted.h"

#define PULLERS 2
#define MAX_JOBS 256      /* that are not done; further Tasks wait for a place */
#define MAX_JOBS_EACH 128 /* of one registry, so that one that is away leaves places to others */
#define RESOLVED_MS 10000 /* an answer serves all who ask for the tag */
#define UNWANTED_MS 10000 /* a pull that no Task wants goes on for so long */
#define RETRY_MS 5000     /* doubled after each failure */
#define RETRY_MAX_MS 60000
#define RETRY_AFTER_MAX_MS 3600000
#define NO_ROOM_MS 30000
#define LOOK_MS 1000 /* how often times are looked at while any is awaited */
#define READER_MS (24 * 3600 * INT64_C(1000))
#define MAX_READERS 4096
#define SECRET_MS 60000
#define MAX_SECRETS 64 /* of at most 1 MiB each */

enum job_state {
    JOB_QUEUED, /* runs when next_ms has come */
    JOB_RUNNING,
    JOB_DONE,
    JOB_FAILED,
};

/*
 * The job of one or more Tasks. It is in `jobs` under its key while it may be joined: until it is done, or for a tag 10 s
 * longer. It lives as long as a want has it, it runs, or it may be joined.
 */
struct job {
    struct job *next; /* of all that are not done, the oldest first */
    struct arena *arena;
    const char *key;
    struct fetch_order order;
    const char *repository;
    const struct module_registry *registry;
    struct wasm_modules *owner;

    enum job_state state;
    int64_t next_ms;
    unsigned failures, wants;
    int64_t unwanted_ms;        /* since when wants is 0 */
    bool lacks_room;            /* tried again when a Task is released */
    struct fetch_result result; /* the last one; texts are in result_arena */
    struct arena *result_arena;
    int64_t done_ms;
};

/* The wish of one Task. */
struct want {
    struct kube_name task;
    char key[SHA256_HEX_LEN];               /* digest of the key of the job; "": none yet */
    struct job *job;                        /* NULL: it waits for a place, or is a file */
    const struct module_registry *registry; /* NULL: it is a file */
    char *file;    /* digest of the bytes of spec.file, pinned; NULL: none */
    int64_t bytes; /* likewise */
};

struct wasm_modules {
    struct arena *arena;
    struct wasm_modules_settings settings;
    struct wasm_modules_host host;
    struct fetch_means means;
    pthread_t threads[PULLERS];
    size_t running_threads;
    struct key_file *keys;

    pthread_mutex_t lock; /* leaf, of all below */
    pthread_cond_t changed;
    bool is_stopping;
    struct map *wants; /* uid -> want */
    struct map *jobs;  /* key -> job */
    struct job *queue; /* of those that are not done, the oldest first */
    size_t queue_len;
};

/* --- life ------------------------------------------------------------------------------------- */

int wasm_modules_ready(void *ctx, char *why, size_t size)
{
    CLEANUP(public_keys_unrefp) struct public_keys *keys = NULL;
    struct error err = { 0 };

    if (key_file_read(((struct wasm_modules *)ctx)->keys, &keys, &err) == 0)
        return 1;
    (void)snprintf(why, size, "%s", err.message);
    return 0;
}

int wasm_modules_check(const struct wasm_modules_settings *settings, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(public_keys_unrefp) struct public_keys *keys = NULL;
    struct module_registries registries;
    struct module_cache *cache = NULL;
    struct key_file *file = key_file_create(settings->public_keys);
    int r = module_registries_parse(arena, &settings->registries, &registries, err);

    if (r == 0)
        r = key_file_read(file, &keys, err);
    key_file_destroy(file);
    if (r == 0)
        r = module_cache_open(settings->cache_dir, settings->cache_bytes, &cache, err);
    module_cache_close(cache);
    return r;
}

static void free_want(void *value)
{
    struct want *want = value;

    free(want->file);
    free(want);
}

static void free_job(struct job *job)
{
    arena_destroy(job->result_arena);
    arena_destroy(job->arena);
}

int wasm_modules_create(const struct wasm_modules_settings *settings,
                        const struct wasm_modules_host *host, struct wasm_modules **ret,
                        struct error *err)
{
    struct arena *arena = arena_create();
    struct wasm_modules *modules = arena_new(arena, struct wasm_modules);
    struct fetch_means *means = &modules->means;
    int r = module_registries_parse(arena, &settings->registries, &means->registries, err);

    if (r == 0)
        r = module_cache_open(settings->cache_dir, settings->cache_bytes, &means->pull.cache, err);
    if (r < 0) {
        arena_destroy(arena);
        return r;
    }
    modules->arena = arena;
    modules->settings = *settings;
    modules->host = *host;
    modules->keys = key_file_create(settings->public_keys);
    means->settings = &modules->settings;
    means->host = &modules->host;
    means->secrets = memory_create(MAX_SECRETS, SECRET_MS);
    means->readers = memory_create(MAX_READERS, READER_MS);
    means->pull.pool = http_client_pool_create();
    means->pull.ca_file = settings->ca_file;
    means->pull.clock = host->clock;
    pthread_mutex_init(&modules->lock, NULL);
    cond_init(&modules->changed);
    modules->wants = map_create(free_want);
    modules->jobs = map_create(NULL);
    *ret = modules;
    return 0;
}

/* --- jobs, with the lock ---------------------------------------------------------------------- */

static bool is_over(const struct job *job)
{
    return job->state == JOB_DONE || job->state == JOB_FAILED;
}

static bool is_joinable(const struct wasm_modules *modules, const struct job *job)
{
    return map_get(modules->jobs, job->key) == job;
}

static void unqueue(struct wasm_modules *modules, struct job *job)
{
    struct job **at = &modules->queue;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    modules->queue_len--;
}

/* Returns the job if nothing has it any more: the caller disposes of it without the lock. Else NULL. */
static struct job *take_unused(struct wasm_modules *modules, struct job *job)
{
    if (job->wants || job->state == JOB_RUNNING || (is_over(job) && is_joinable(modules, job)))
        return NULL;
    if (job->state == JOB_QUEUED) {
        unqueue(modules, job);
        (void)map_remove(modules->jobs, job->key);
    }
    return job;
}

/* Without the lock; NULL is fine. */
static void dispose(struct wasm_modules *modules, struct job *job)
{
    if (!job)
        return;
    if (job->state == JOB_DONE && job->result.digest)
        module_cache_unpin(modules->means.pull.cache, job->result.digest);
    free_job(job);
}

/* Takes the job from a want. As take_unused. */
static struct job *leave(struct wasm_modules *modules, struct want *want)
{
    struct job *job = TAKE(want->job);

    if (!job)
        return NULL;
    job->wants--;
    job->unwanted_ms = clock_monotonic_ms(modules->host.clock);
    return take_unused(modules, job);
}

static void join(struct want *want, struct job *job)
{
    want->job = job;
    job->wants++;
}

/* Ends the time in which tags may be joined. Returns a list of jobs that nothing has any more. */
static struct job *take_expired(struct wasm_modules *modules)
{
    int64_t now_ms = clock_monotonic_ms(modules->host.clock);
    struct job *unused = NULL;
    const char *key;
    void *value;

    for (size_t i = 0; map_next(modules->jobs, &i, &key, &value);) {
        struct job *job = value;

        if (!is_over(job) || now_ms - job->done_ms < RESOLVED_MS)
            continue;
        (void)map_remove(modules->jobs, key);
        if (take_unused(modules, job)) {
            job->next = unused;
            unused = job;
        }
        i = 0; /* the map has changed */
    }
    return unused;
}

static void enqueue(struct wasm_modules *modules, struct job *job)
{
    struct job **at = &modules->queue;

    while (*at)
        at = &(*at)->next;
    *at = job;
    modules->queue_len++;
    map_set(modules->jobs, job->key, job);
    pthread_cond_broadcast(&modules->changed);
}

/* Writes the places that are left to each registry, in the order of the flag; at most `left` to all. */
static size_t *count_places(const struct wasm_modules *modules, struct arena *arena, size_t *left)
{
    const struct module_registries *registries = &modules->means.registries;
    size_t *places = arena_array(arena, size_t, registries->len);

    *left = MAX_JOBS - modules->queue_len;
    for (size_t i = 0; i < registries->len; i++)
        places[i] = MAX_JOBS_EACH;
    for (const struct job *job = modules->queue; job; job = job->next)
        places[job->registry - registries->items]--;
    return places;
}

static bool has_place(const struct wasm_modules *modules, const struct module_registry *registry)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t left;
    const size_t *places = count_places(modules, arena, &left);

    return left && places[registry - modules->means.registries.items];
}

/* The Tasks that have this job, and one for each free place. job may be NULL. */
static struct kube_name *tasks_to_wake(const struct wasm_modules *modules, const struct job *job,
                                       struct arena *arena, size_t *ret_len)
{
    struct kube_name *tasks = arena_array(arena, struct kube_name, map_len(modules->wants));
    size_t left, *places = count_places(modules, arena, &left);
    const char *uid;
    void *value;

    *ret_len = 0;
    for (size_t i = 0; map_next(modules->wants, &i, &uid, &value);) {
        const struct want *want = value;
        size_t *place =
            want->registry ? &places[want->registry - modules->means.registries.items] : NULL;
        bool has_place = place && !want->job && left && *place;

        if (has_place) {
            left--;
            --*place;
        }
        if (has_place || (job && want->job == job))
            tasks[(*ret_len)++] = want->task;
    }
    return tasks;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void say(struct wasm_module_answer *ret, enum wasm_module_state state, enum reason reason,
                const char *message)
{
    *ret = (struct wasm_module_answer){ .state = state, .reason = reason, .message = message };
}

static bool is_final(enum reason reason)
{
    return reason == REASON_REGISTRY_NOT_ALLOWED || reason == REASON_MODULE_TOO_LARGE ||
           reason == REASON_MODULE_INVALID || reason == REASON_MODULE_UNSIGNED;
}

/* With the lock. */
static void answer_by_job(const struct job *job, struct arena *arena,
                          struct wasm_module_answer *ret)
{
    const struct fetch_result *result = &job->result;

    if (job->state == JOB_DONE) {
        *ret = (struct wasm_module_answer){
            .state = result->digest ? WASM_MODULE_READY : WASM_MODULE_RESOLVED,
            .manifest = arena_strdup(arena, result->manifest),
            .digest = arena_strdup(arena, result->digest),
            .bytes = result->bytes,
            .repository = arena_strdup(arena, job->repository),
            .was_pulled = result->was_pulled,
        };
        return;
    }
    say(ret, job->state == JOB_FAILED ? WASM_MODULE_FAILED : WASM_MODULE_PENDING,
        result->reason ? result->reason : REASON_PULLING_MODULE,
        result->message ? arena_strdup(arena, result->message)
                        : arena_printf(arena, "'%s' is being pulled", job->repository));
    ret->is_final = job->state == JOB_FAILED && is_final(result->reason);
}

/* --- wants ------------------------------------------------------------------------------------ */

static struct job *create_job(struct wasm_modules *modules, const struct wanted *wanted)
{
    struct arena *arena = arena_create();
    struct job *job = arena_new(arena, struct job);
    const struct str_list *secrets = &wanted->order.secrets;

    *job = (struct job){
        .arena = arena,
        .key = arena_strdup(arena, wanted->key),
        .order = { .reference = arena_strdup(arena, wanted->order.reference),
                   .manifest = arena_strdup(arena, wanted->order.manifest),
                   .ns = arena_strdup(arena, wanted->order.ns),
                   .secrets = { arena_array(arena, const char *, secrets->len), secrets->len } },
        .repository = arena_strdup(arena, wanted->reference.repository),
        .registry = wanted->registry,
        .owner = modules,
        .next_ms = clock_monotonic_ms(modules->host.clock),
    };
    for (size_t i = 0; i < secrets->len; i++)
        job->order.secrets.items[i] = arena_strdup(arena, secrets->items[i]);
    return job;
}

/* With the lock. The want of a Task, which holds nothing if it is new or was for something else; *ret_unused as
 * take_unused. */
static struct want *get_want(struct wasm_modules *modules, const struct wasm_module_wish *wish,
                             const struct wanted *wanted, struct job **ret_unused)
{
    struct want *want = map_get(modules->wants, wish->uid);
    char hex[SHA256_HEX_LEN];

    if (!want) {
        want = xcalloc(1, sizeof(*want));
        map_set(modules->wants, wish->uid, want);
    }
    want->task = wish->task;
    want->registry = wanted->registry;
    (void)sha256_hex(wanted->key, strlen(wanted->key), hex);
    if (!str_equal(want->key, hex)) {
        *ret_unused = leave(modules, want);
        (void)str_copy(want->key, sizeof(want->key), hex);
    }
    return want;
}

/* Answers by the job that this Task has. false: it has none. */
static bool answer_by_want(struct wasm_modules *modules, struct arena *arena,
                           const struct wasm_module_wish *wish, const struct wanted *wanted,
                           struct wasm_module_answer *ret)
{
    struct job *unused = NULL;
    struct want *want;
    bool is_answered;

    pthread_mutex_lock(&modules->lock);
    want = get_want(modules, wish, wanted, &unused);
    is_answered = want->job || modules->is_stopping;
    if (want->job)
        answer_by_job(want->job, arena, ret);
    if (modules->is_stopping)
        say(ret, WASM_MODULE_PENDING, REASON_PULLING_MODULE, "the controller stops");
    pthread_mutex_unlock(&modules->lock);
    dispose(modules, unused);
    return is_answered;
}

/* Whether a READY answer still holds: the file is there, and one of the keys of now signed it. */
static bool is_usable(struct wasm_modules *modules, const char *uid, const char *digest,
                      const struct public_keys *keys)
{
    const struct want *want;
    int64_t bytes;
    bool is_signed;

    pthread_mutex_lock(&modules->lock);
    want = map_get(modules->wants, uid);
    is_signed = !keys || (want && want->job && want->job->result.signed_by &&
                          public_keys_have(keys, want->job->result.signed_by));
    pthread_mutex_unlock(&modules->lock);
    if (!is_signed || !module_cache_pin(modules->means.pull.cache, digest, false, &bytes))
        return false;
    module_cache_unpin(modules->means.pull.cache, digest);
    return true;
}

/* Gives the Task a job: one that is done, one of others, or a new one. */
static void start_job(struct wasm_modules *modules, struct arena *arena,
                      const struct wasm_module_wish *wish, const struct wanted *wanted,
                      struct job *created, struct wasm_module_answer *ret)
{
    struct job *unused, *left = NULL, *shared;
    struct want *want;

    pthread_mutex_lock(&modules->lock);
    unused = take_expired(modules);
    want = get_want(modules, wish, wanted, &left);
    if (left) { /* another wish of this Task was earlier */
        left->next = unused;
        unused = left;
    }
    shared = is_over(created) ? NULL : map_get(modules->jobs, wanted->key);
    if (want->job || shared) { /* another worker of this Task, or another Task, was earlier */
        created->next = unused;
        unused = created;
        if (!want->job)
            join(want, shared);
    } else if (is_over(created)) {
        join(want, created);
    } else if (has_place(modules, wanted->registry)) {
        join(want, created);
        enqueue(modules, created);
    } else {
        created->next = unused;
        unused = created;
    }
    if (want->job)
        answer_by_job(want->job, arena, ret);
    else
        say(ret, WASM_MODULE_PENDING, REASON_PULLING_MODULE, "waits for other pulls to end");
    pthread_mutex_unlock(&modules->lock);

    for (struct job *job = unused, *next; job; job = next) {
        next = job->next;
        dispose(modules, job);
    }
}

static void forget_job(struct wasm_modules *modules, const char *uid)
{
    struct job *unused = NULL;
    struct want *want;

    pthread_mutex_lock(&modules->lock);
    want = map_get(modules->wants, uid);
    if (want)
        unused = leave(modules, want);
    pthread_mutex_unlock(&modules->lock);
    dispose(modules, unused);
}

void wasm_modules_want(struct wasm_modules *modules, struct arena *arena,
                       const struct wasm_module_wish *wish, struct wasm_module_answer *ret)
{
    CLEANUP(public_keys_unrefp) struct public_keys *keys = NULL;
    struct wanted wanted;
    const char *message;
    struct error err = { 0 };

    enum reason refusal = wanted_read(arena, &modules->means.registries, wish, &wanted, &message);
    if (refusal) {
        say(ret, WASM_MODULE_FAILED, refusal, message);
        ret->is_final = true;
        return;
    }
    bool has_keys =
        key_file_read(modules->keys, &keys, &err) == 0; /* else the job waits for them */
    if (answer_by_want(modules, arena, wish, &wanted, ret) &&
        (ret->state != WASM_MODULE_READY ||
         (has_keys && is_usable(modules, wish->uid, ret->digest, keys))))
        return;
    forget_job(modules, wish->uid);

    struct job *job = create_job(modules, &wanted);

    job->result_arena = arena_create();
    if (has_keys &&
        fetch_public(&modules->means, job->result_arena, &job->order, keys, &job->result))
        job->state = JOB_DONE;
    start_job(modules, arena, wish, &wanted, job, ret);
}

/* --- files ------------------------------------------------------------------------------------ */

static void answer_by_file(const struct want *want, struct arena *arena,
                           struct wasm_module_answer *ret)
{
    *ret = (struct wasm_module_answer){
        .state = WASM_MODULE_READY,
        .digest = arena_strdup(arena, want->file),
        .bytes = want->bytes,
    };
}

bool wasm_modules_has(struct wasm_modules *modules, struct arena *arena, const char *uid,
                      struct wasm_module_answer *ret)
{
    const struct want *want;
    int64_t bytes;
    bool is_file;

    pthread_mutex_lock(&modules->lock);
    want = map_get(modules->wants, uid);
    is_file = want && want->file;
    if (is_file)
        answer_by_file(want, arena, ret);
    pthread_mutex_unlock(&modules->lock);
    if (!is_file || !module_cache_pin(modules->means.pull.cache, ret->digest, false, &bytes))
        return false;
    module_cache_unpin(modules->means.pull.cache, ret->digest);
    return true;
}

void wasm_modules_put(struct wasm_modules *modules, struct arena *arena, const char *uid,
                      const void *bytes, size_t len, struct wasm_module_answer *ret)
{
    if (modules->settings.public_keys) {
        say(ret, WASM_MODULE_FAILED, REASON_MODULE_UNSIGNED,
            "spec.file has no signature: imageUrl by a registry is needed");
        ret->is_final = true;
        return;
    }
    if ((int64_t)len > modules->settings.max_bytes) {
        say(ret, WASM_MODULE_FAILED, REASON_MODULE_TOO_LARGE,
            arena_printf(arena, "spec.file has %zu bytes, --module-max-bytes allows %lld", len,
                         (long long)modules->settings.max_bytes));
        ret->is_final = true;
        return;
    }
    wasm_modules_release(modules, uid);

    char hex[SHA256_HEX_LEN];
    const char *digest =
        arena_printf(arena, MODULE_DIGEST_PREFIX "%s", sha256_hex(bytes, len, hex));

    if (!module_cache_put(modules->means.pull.cache, digest, bytes, len)) {
        say(ret, WASM_MODULE_PENDING, REASON_CACHE_FULL,
            arena_printf(arena, "the folder of modules has no room for %zu bytes", len));
        return;
    }

    struct want *want = xcalloc(1, sizeof(*want));

    want->file = xstrdup(digest);
    want->bytes = (int64_t)len;
    answer_by_file(want, arena, ret);
    pthread_mutex_lock(&modules->lock);
    map_set(modules->wants, uid, want);
    pthread_mutex_unlock(&modules->lock);
}

/* Without the lock. */
static void wake_tasks(const struct wasm_modules *modules, const struct kube_name *tasks,
                       size_t len)
{
    for (size_t i = 0; i < len; i++)
        modules->host.wake(modules->host.ctx, &tasks[i]);
}

/* --- release ---------------------------------------------------------------------------------- */

/* Lets jobs that lack room try at once if there is room for the smallest. */
static void use_room(struct wasm_modules *modules)
{
    int64_t least = INT64_MAX;

    pthread_mutex_lock(&modules->lock);
    for (const struct job *job = modules->queue; job; job = job->next) {
        if (job->lacks_room && job->result.bytes < least)
            least = job->result.bytes;
    }
    pthread_mutex_unlock(&modules->lock);
    if (least == INT64_MAX || !module_cache_has_room(modules->means.pull.cache, least))
        return;

    pthread_mutex_lock(&modules->lock);
    for (struct job *job = modules->queue; job; job = job->next)
        job->next_ms = job->lacks_room ? clock_monotonic_ms(modules->host.clock) : job->next_ms;
    pthread_cond_broadcast(&modules->changed);
    pthread_mutex_unlock(&modules->lock);
}

void wasm_modules_release(struct wasm_modules *modules, const char *uid)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_name *tasks = NULL;
    struct job *unused = NULL;
    struct want *want;
    size_t len = 0;

    pthread_mutex_lock(&modules->lock);
    want = map_take(modules->wants, uid);
    if (want)
        unused = leave(modules, want);
    if (unused && !is_over(unused)) /* its place is free */
        tasks = tasks_to_wake(modules, NULL, arena, &len);
    pthread_mutex_unlock(&modules->lock);
    if (!want)
        return;
    wake_tasks(modules, tasks, len);
    dispose(modules, unused);
    if (want->file)
        module_cache_unpin(modules->means.pull.cache, want->file);
    free_want(want);
    use_room(modules);
}

int wasm_modules_read(struct wasm_modules *modules, const char *digest, int64_t offset, void *ret,
                      size_t len, struct error *err)
{
    return module_cache_read(modules->means.pull.cache, digest, offset, ret, len, err);
}

/* --- threads ---------------------------------------------------------------------------------- */

static bool is_due(const struct job *job, int64_t now_ms)
{
    return job->state == JOB_QUEUED && job->next_ms <= now_ms;
}

static bool have_one_registry(const struct job *a, const struct job *b)
{
    return str_equal(a->registry->asked, b->registry->asked);
}

/* With the lock. Whether this pull and an earlier one keep all threads with one registry while a job of another one is
 * due. The later one ends, and begins again when a thread is free. */
static bool gives_way(const struct wasm_modules *modules, const struct job *job, int64_t now_ms)
{
    size_t earlier = 0;
    bool is_awaited = false;

    for (const struct job *other = modules->queue; other != job; other = other->next)
        earlier += other->state == JOB_RUNNING && have_one_registry(other, job);
    for (const struct job *other = modules->queue; other; other = other->next)
        is_awaited |= is_due(other, now_ms) && !have_one_registry(other, job);
    return is_awaited && earlier == PULLERS - 1;
}

/* The hook of a transfer. */
static bool is_to_end(void *ctx)
{
    struct job *job = ctx;
    struct wasm_modules *modules = job->owner;
    int64_t now_ms = clock_monotonic_ms(modules->host.clock);
    bool is_end;

    pthread_mutex_lock(&modules->lock);
    is_end = modules->is_stopping || (!job->wants && now_ms - job->unwanted_ms >= UNWANTED_MS) ||
             gives_way(modules, job, now_ms);
    pthread_mutex_unlock(&modules->lock);
    return is_end;
}

/* Without the lock. */
static void run_job(struct wasm_modules *modules, struct job *job, struct arena *arena,
                    struct fetch_result *ret)
{
    CLEANUP(arena_destroyp) struct arena *of_run = arena_create();
    CLEANUP(public_keys_unrefp) struct public_keys *keys = NULL;
    struct fetch_means means = modules->means;
    struct fetch_result result;
    struct error err = { 0 };

    if (key_file_read(modules->keys, &keys, &err) < 0) {
        *ret = (struct fetch_result){ .outcome = FETCH_LATER,
                                      .reason = REASON_PULLING_MODULE,
                                      .message = arena_strdup(arena, err.message) };
        return;
    }
    means.pull.ctx = job;
    means.pull.is_canceled = is_to_end;
    fetch_carry_out(&means, of_run, &job->order, keys, &result);
    fetch_result_copy(arena, &result, ret);
}

static bool is_registry_busy(const struct wasm_modules *modules, const struct job *job)
{
    for (const struct job *other = modules->queue; other; other = other->next) {
        if (other->state == JOB_RUNNING && have_one_registry(other, job))
            return true;
    }
    return false;
}

/* With the lock. The oldest job that is due, of a registry that has no pull if there is one. NULL: none is due;
 * *ret_awaits: one will be, by time alone. */
static struct job *pick(struct wasm_modules *modules, bool *ret_awaits)
{
    int64_t now_ms = clock_monotonic_ms(modules->host.clock);
    struct job *oldest = NULL;

    *ret_awaits = false;
    for (struct job *job = modules->queue; job; job = job->next) {
        *ret_awaits |= job->state == JOB_QUEUED;
        if (!is_due(job, now_ms))
            continue;
        if (!is_registry_busy(modules, job))
            return job;
        oldest = oldest ? oldest : job;
    }
    return oldest;
}

static void plan_retry(struct job *job, int64_t now_ms)
{
    uint32_t delay_ms = job->result.outcome == FETCH_NO_ROOM ? NO_ROOM_MS : 0;

    job->state = JOB_QUEUED;
    job->lacks_room = job->result.outcome == FETCH_NO_ROOM && !job->result.is_disk_full;
    if (job->result.outcome == FETCH_LATER) {
        int64_t asked_ms = (int64_t)job->result.retry_after_s * 1000;

        delay_ms = backoff_ms(RETRY_MS, RETRY_MAX_MS, ++job->failures);
        if (asked_ms > delay_ms)
            delay_ms = (uint32_t)(asked_ms < RETRY_AFTER_MAX_MS ? asked_ms : RETRY_AFTER_MAX_MS);
    }
    job->next_ms = now_ms + delay_ms;
}

/* With the lock: what the run of a job has come to. Returns the job if nothing has it any more. */
static struct job *settle(struct wasm_modules *modules, struct job *job,
                          const struct fetch_result *result, struct arena *arena)
{
    int64_t now_ms = clock_monotonic_ms(modules->host.clock);
    bool is_wanted = job->wants > 0;

    arena_destroy(job->result_arena);
    job->result_arena = arena;
    job->result = *result;
    if (result->outcome == FETCH_LATER || result->outcome == FETCH_NO_ROOM ||
        (result->outcome == FETCH_CANCELED && is_wanted)) {
        plan_retry(job, now_ms);
    } else {
        job->state = result->outcome == FETCH_DONE ? JOB_DONE : JOB_FAILED;
        job->done_ms = now_ms;
        unqueue(modules, job);
        if (job->state == JOB_FAILED || result->digest) /* a tag may be joined for a while */
            (void)map_remove(modules->jobs, job->key);
    }
    return take_unused(modules, job);
}

/* With the lock, which is given up for the run. */
static void work_on(struct wasm_modules *modules, struct job *job)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct arena *result_arena = arena_create();
    struct fetch_result result;
    struct kube_name *tasks;
    struct job *unused;
    size_t len;

    job->state = JOB_RUNNING;
    job->lacks_room = false;
    pthread_mutex_unlock(&modules->lock);
    run_job(modules, job, result_arena, &result);

    pthread_mutex_lock(&modules->lock);
    unused = settle(modules, job, &result, result_arena);
    tasks = tasks_to_wake(modules, job, arena, &len);
    pthread_cond_broadcast(&modules->changed);
    pthread_mutex_unlock(&modules->lock);
    dispose(modules, unused);
    wake_tasks(modules, tasks, len);
    pthread_mutex_lock(&modules->lock);
}

static void *pull_jobs(void *ctx)
{
    struct wasm_modules *modules = ctx;
    bool holds_secrets = false, awaits;

    pthread_mutex_lock(&modules->lock);
    while (!modules->is_stopping) {
        struct job *job = pick(modules, &awaits);

        if (job) {
            work_on(modules, job);
            holds_secrets = true; /* perhaps */
        } else if (awaits || holds_secrets) {
            struct timespec deadline = cond_deadline(LOOK_MS);

            (void)cond_wait_until(&modules->changed, &modules->lock, &deadline);
            pthread_mutex_unlock(&modules->lock);
            holds_secrets =
                memory_forget(modules->means.secrets, clock_monotonic_ms(modules->host.clock));
            pthread_mutex_lock(&modules->lock);
        } else {
            pthread_cond_wait(&modules->changed, &modules->lock);
        }
    }
    pthread_mutex_unlock(&modules->lock);
    return NULL;
}

int wasm_modules_start(struct wasm_modules *modules, struct error *err)
{
    int r = 0;

    while (r == 0 && modules->running_threads < PULLERS) {
        r = thread_start(&modules->threads[modules->running_threads], "module-pull", pull_jobs,
                         modules, err);
        modules->running_threads += r == 0;
    }
    if (r < 0)
        wasm_modules_stop(modules);
    return r;
}

void wasm_modules_stop(struct wasm_modules *modules)
{
    pthread_mutex_lock(&modules->lock);
    modules->is_stopping = true;
    pthread_cond_broadcast(&modules->changed);
    pthread_mutex_unlock(&modules->lock);
    while (modules->running_threads)
        thread_join(modules->threads[--modules->running_threads]);
}

/* Takes all wants, then all jobs, which nothing has then. */
static void release_all(struct wasm_modules *modules)
{
    const char *key;
    void *value;

    for (size_t i = 0; map_next(modules->wants, &i, &key, &value); i = 0)
        wasm_modules_release(modules, key);
    for (size_t i = 0; map_next(modules->jobs, &i, &key, &value); i = 0) {
        struct job *job = value;

        (void)map_remove(modules->jobs, key);
        dispose(modules, job);
    }
}

void wasm_modules_destroy(struct wasm_modules *modules)
{
    if (!modules)
        return;
    release_all(modules);
    map_destroy(modules->wants);
    map_destroy(modules->jobs);
    key_file_destroy(modules->keys);
    pthread_mutex_destroy(&modules->lock);
    (void)pthread_cond_destroy(&modules->changed);
    memory_destroy(modules->means.secrets);
    memory_destroy(modules->means.readers);
    http_client_pool_destroy(modules->means.pull.pool);
    module_cache_close(modules->means.pull.cache);
    arena_destroy(modules->arena);
}
