#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/curl_setup.h"
#include "common/kube/in_process.h"
#include "common/kube/watch.h"

/* Up to 16 kinds, in namespaced mode once for each of up to 64 namespaces. */
#define MAX_MACHINES 1024
/* Of a reply that is not 200: a Status object; a longer one is cut. */
#define MAX_REFUSAL (16u << 10)
/* Nothing is due: libcurl and curl_multi_wakeup end a wait on their own. */
#define MAX_WAIT_MS 60000
#define PAUSE_MS 100
#define MAX_PROBLEM 400
/* Of a stream of this process, before the other ones have their turn. */
#define LINES_AT_ONCE 100
/* Of a list of this process: a page is in memory as text. */
#define PAGE_IN_PROCESS 100
#define SETTLE_MS 100

/* One machine and its handle; the loop's thread alone, but for the problem. */
struct transfer {
    struct watch_loop *loop;
    struct watch_machine *machine;
    CURL *easy;
    bool running;
    struct watch_request request; /* waiting for its time, if not running */
    struct buf refusal;
    char detail[CURL_ERROR_SIZE];
    char problem[MAX_PROBLEM]; /* "": none. Written under the lock */
    unsigned unauthorized;     /* replies of 401 in a row */
    atomic_bool is_refused;    /* watch_loop_is_refused */
    enum error_code logged;    /* the problem that the log knows of */

    /* In place of a handle, with an API of this process: */
    struct http_stream stream; /* next NULL: there is none */
    atomic_bool has_more;      /* it may have; any thread */
    int64_t ask_ms;            /* when it is asked in any case */
};

struct watch_loop {
    const struct kube_in_process *api; /* NULL: there is a server, and the two below */
    struct curl_setup *setup;
    CURLM *multi;
    struct transfer *transfers[MAX_MACHINES];
    size_t count;
    bool started;
    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t lock;    /* of the problems, and of: */
    pthread_cond_t changed;  /* with an API of this process: is_awake, or the end */
    bool is_awake;           /* some stream may have more */
    uint64_t asked, settled; /* turns in which all streams are asked: wanted, done */
    pthread_cond_t has_settled;
};

struct watch_loop *watch_loop_create(struct kube_config *config)
{
    struct watch_loop *loop = xcalloc(1, sizeof(*loop));

    loop->api = kube_config_in_process(config);
    loop->setup = loop->api ? NULL : curl_setup_create(config);
    atomic_init(&loop->stopping, false);
    pthread_mutex_init(&loop->lock, NULL);
    cond_init(&loop->changed);
    cond_init(&loop->has_settled);
    return loop;
}

void watch_loop_destroy(struct watch_loop *loop)
{
    if (!loop)
        return;
    assert(!loop->started);
    for (size_t i = 0; i < loop->count; i++) {
        curl_easy_cleanup(loop->transfers[i]->easy);
        buf_release(&loop->transfers[i]->refusal);
        free(loop->transfers[i]);
    }
    curl_multi_cleanup(loop->multi);
    curl_setup_destroy(loop->setup);
    pthread_cond_destroy(&loop->changed);
    pthread_cond_destroy(&loop->has_settled);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

void watch_loop_add(struct watch_loop *loop, struct watch_machine *machine)
{
    assert(!loop->started && loop->count < MAX_MACHINES);

    struct transfer *transfer = xcalloc(1, sizeof(*transfer));
    transfer->loop = loop;
    transfer->machine = machine;
    if (loop->api)
        watch_machine_set_page(machine, PAGE_IN_PROCESS);
    transfer->refusal = (struct buf)BUF_INIT(MAX_REFUSAL);
    loop->transfers[loop->count++] = transfer;
}

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&CLOCK_SYSTEM);
}

static long status_of(const struct transfer *transfer)
{
    long status = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* --- one transfer --- */

/* Headers come line by line; an empty one ends them. */
static bool is_end_of_headers(const char *line, size_t len)
{
    return len > 0 && (*line == '\r' || *line == '\n');
}

static size_t on_header(char *bytes, size_t size, size_t count, void *ctx)
{
    struct transfer *transfer = ctx;
    size_t len = size * count;

    if (!is_end_of_headers(bytes, len) || status_of(transfer) != 200)
        return len;
    return watch_machine_feed(transfer->machine, "", 0, NULL) < 0 ? 0 : len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct transfer *transfer = ctx;
    size_t len = size * count;

    if (status_of(transfer) == 200)
        return watch_machine_feed(transfer->machine, bytes, len, NULL) < 0 ? 0 : len;

    size_t room = MAX_REFUSAL - transfer->refusal.len;
    bool kept = buf_append(&transfer->refusal, bytes, len < room ? len : room);
    assert(kept);
    return len;
}

static int open_handle(struct transfer *transfer, struct error *err)
{
    CURL *easy = curl_setup_handle(transfer->loop->setup);
    if (!easy)
        return error_set(err, ERROR_INTERNAL, "libcurl gives no handle");

    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->detail);
    transfer->easy = easy;
    return 0;
}

static void finish(struct transfer *transfer, int status, const char *text)
{
    log_debug("watch request ended", "resource", watch_machine_resource(transfer->machine),
              "status", LOG_INT(status), "reason", text, NULL);
    watch_machine_finish(transfer->machine, status, text, now_ms());
    watch_machine_next(transfer->machine, now_ms(), &transfer->request);
}

static void begin_transfer(struct transfer *transfer)
{
    struct error err = { 0 };

    buf_clear(&transfer->refusal);
    *transfer->detail = '\0';
    if (curl_setup_request(transfer->loop->setup, transfer->easy, transfer->request.path, &err) <
        0) {
        finish(transfer, 0, err.message);
        return;
    }
    curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, (long)transfer->request.timeout_ms);

    CURLMcode code = curl_multi_add_handle(transfer->loop->multi, transfer->easy);
    if (code == CURLM_OK)
        transfer->running = true;
    else
        finish(transfer, 0, curl_multi_strerror(code));
}

/* A 401 has the token renewed, so that the second one in a row is about the newest token. */
static void note_refusal(struct transfer *transfer, long status)
{
    transfer->unauthorized = status == 401 ? transfer->unauthorized + 1 : 0;
    if (status == 401)
        curl_setup_refuse_token(transfer->loop->setup);
    atomic_store(&transfer->is_refused,
                 status == 403 || status == 404 || transfer->unauthorized > 1);
}

static void end(struct transfer *transfer, CURLcode result)
{
    long status = status_of(transfer);
    const char *why = *transfer->detail ? transfer->detail : curl_easy_strerror(result);

    curl_multi_remove_handle(transfer->loop->multi, transfer->easy);
    transfer->running = false;
    /* A request that nobody answered in time may hang on a connection that only looks alive. */
    curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT,
                     result == CURLE_OPERATION_TIMEDOUT ? 1L : 0L);

    note_refusal(transfer, status);
    if (status != 0 && status != 200)
        finish(transfer, (int)status, buf_string(&transfer->refusal));
    else if (result == CURLE_OK)
        finish(transfer, (int)status, NULL);
    else
        finish(transfer, 0, why);
}

/* --- the same with an API of this process --- */

static void wake(struct watch_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->is_awake = true;
    pthread_cond_signal(&loop->changed);
    if (atomic_load(&loop->stopping))
        pthread_cond_broadcast(&loop->has_settled);
    pthread_mutex_unlock(&loop->lock);
}

/* Any thread; the store may hold locks. */
static void on_more(void *ctx)
{
    struct transfer *transfer = ctx;

    atomic_store(&transfer->has_more, true);
    wake(transfer->loop);
}

static void end_stream(struct transfer *transfer)
{
    transfer->stream.close(transfer->stream.ctx);
    transfer->stream = (struct http_stream){ 0 };
    transfer->running = false;
}

/* A list is answered at once; a watch that begins has its stream. */
static void begin_in_process(struct transfer *transfer)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_in_process *api = transfer->loop->api;
    struct http_response reply = { 0 };
    struct error err = { 0 };

    api->get(api->ctx, arena, transfer->request.path, &reply, &transfer->stream);
    if (transfer->stream.next) {
        transfer->running = true;
        transfer->ask_ms = now_ms();
        transfer->stream.set_notify(transfer->stream.ctx, on_more, transfer);
    } else if (reply.status != 200) {
        finish(transfer, reply.status, reply.body);
        return;
    }
    if (watch_machine_feed(transfer->machine, "", 0, &err) < 0 ||
        (!transfer->running &&
         watch_machine_feed(transfer->machine, reply.body, reply.body_len, &err) < 0)) {
        if (transfer->running)
            end_stream(transfer);
        finish(transfer, 0, err.message);
    } else if (!transfer->running) {
        finish(transfer, 200, NULL);
    }
}

/* 1: a line was fed; 0: there is none now; -1: the stream has ended. */
static int pull_line(struct transfer *transfer)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *line = "";
    struct error err = { 0 };
    size_t len = 0;
    int r = transfer->stream.next(transfer->stream.ctx, arena, &line, &len);

    if (r == 0)
        return 0;
    if (r > 0 && watch_machine_feed(transfer->machine, line, len, &err) == 0)
        return 1;
    end_stream(transfer);
    finish(transfer, r < 0 ? 200 : 0, r < 0 ? NULL : err.message);
    return -1;
}

/* true: others had to have their turn before its end. */
static bool pull(struct transfer *transfer)
{
    int r = 1;

    atomic_store(&transfer->has_more, false); /* what comes from now on is told again */
    for (int i = 0; i < LINES_AT_ONCE && r > 0; i++)
        r = pull_line(transfer);
    if (r > 0)
        on_more(transfer);
    else if (r == 0)
        transfer->ask_ms = now_ms() + transfer->stream.wait_ms(transfer->stream.ctx);
    return r > 0;
}

/* Returns how many turns were asked for until now. */
static uint64_t await_more(struct watch_loop *loop, int wait_ms)
{
    const struct timespec deadline = cond_deadline((uint32_t)wait_ms);

    pthread_mutex_lock(&loop->lock);
    while (!loop->is_awake && !atomic_load(&loop->stopping) &&
           cond_wait_until(&loop->changed, &loop->lock, &deadline))
        ;
    loop->is_awake = false;

    uint64_t asked = loop->asked;

    pthread_mutex_unlock(&loop->lock);
    return asked;
}

static void settle(struct watch_loop *loop, uint64_t asked)
{
    pthread_mutex_lock(&loop->lock);
    loop->settled = asked;
    pthread_cond_broadcast(&loop->has_settled);
    pthread_mutex_unlock(&loop->lock);
}

void watch_loop_settle(struct watch_loop *loop)
{
    const struct timespec deadline = cond_deadline(SETTLE_MS);

    if (!loop->api)
        return;
    pthread_mutex_lock(&loop->lock);

    uint64_t turn = ++loop->asked;

    loop->is_awake = true;
    pthread_cond_signal(&loop->changed);
    while (loop->settled < turn && !atomic_load(&loop->stopping) &&
           cond_wait_until(&loop->has_settled, &loop->lock, &deadline))
        ;
    pthread_mutex_unlock(&loop->lock);
}

static void turn_in_process(struct watch_loop *loop, int wait_ms)
{
    uint64_t asked = await_more(loop, wait_ms);
    bool asks_all = asked > loop->settled, has_more = false; /* settled: this thread's to write */

    for (size_t i = 0; i < loop->count && !atomic_load(&loop->stopping); i++) {
        struct transfer *transfer = loop->transfers[i];

        if (!transfer->running) { /* one that is about to begin may be told of the write */
            has_more = has_more || transfer->request.not_before_ms <= now_ms();
            continue;
        }
        if (asks_all || atomic_load(&transfer->has_more) || transfer->ask_ms <= now_ms())
            has_more = pull(transfer) || has_more;
    }
    if (asks_all && !has_more)
        settle(loop, asked);
}

/* --- the loop --- */

static void begin(struct transfer *transfer)
{
    log_debug("watch request begins", "resource", watch_machine_resource(transfer->machine), "path",
              transfer->request.path, NULL);
    if (transfer->loop->api)
        begin_in_process(transfer);
    else
        begin_transfer(transfer);
}

static void end_finished(struct watch_loop *loop)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(loop->multi, &left))) {
        struct transfer *transfer = NULL;
        CURLcode result = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        end(transfer, result);
    }
}

/* Begins what is due; returns how long until the next is. */
static int begin_due(struct watch_loop *loop)
{
    int64_t now = now_ms();
    int64_t wait_ms = MAX_WAIT_MS;

    for (size_t i = 0; i < loop->count; i++) {
        struct transfer *transfer = loop->transfers[i];
        if (!transfer->running && transfer->request.not_before_ms <= now)
            begin(transfer);
        int64_t due_ms = transfer->running ? transfer->ask_ms : transfer->request.not_before_ms;
        if ((!transfer->running || loop->api) && due_ms - now < wait_ms)
            wait_ms = due_ms - now;
    }
    return wait_ms > 0 ? (int)wait_ms : 0;
}

/* Said when it begins, ends, or becomes another; not when its words change ("connection lost",
 * "connection refused"). */
static void log_problem(struct transfer *transfer)
{
    const char *resource = watch_machine_resource(transfer->machine);
    enum error_code code = watch_machine_problem_code(transfer->machine);

    if (code == transfer->logged)
        return;
    transfer->logged = code;
    if (code)
        log_warn("watch failed, trying again", "resource", resource, "problem",
                 watch_machine_problem(transfer->machine), NULL);
    else
        log_info("watch works again", "resource", resource, NULL);
}

static void tell_problems(struct watch_loop *loop)
{
    for (size_t i = 0; i < loop->count; i++) {
        struct transfer *transfer = loop->transfers[i];
        const char *problem = watch_machine_problem(transfer->machine);
        if (!problem)
            problem = "";
        if (!str_equal(transfer->problem, problem)) {
            pthread_mutex_lock(&loop->lock);
            snprintf(transfer->problem, sizeof(transfer->problem), "%s", problem);
            pthread_mutex_unlock(&loop->lock);
        }
        log_problem(transfer);
    }
}

/* Nothing is known to cause one; if it lasts, it must not take a whole processor. */
static void after_libcurl_error(CURLMcode code)
{
    log_error("libcurl failed, going on", "error", curl_multi_strerror(code), NULL);
    poll(NULL, 0, PAUSE_MS);
}

static void turn_with_server(struct watch_loop *loop, int wait_ms)
{
    int running;
    CURLMcode code = curl_multi_poll(loop->multi, NULL, 0, wait_ms, NULL);

    if (code == CURLM_OK)
        code = curl_multi_perform(loop->multi, &running);
    if (code != CURLM_OK)
        after_libcurl_error(code);
    end_finished(loop);
}

static void *run(void *ctx)
{
    struct watch_loop *loop = ctx;

    for (size_t i = 0; i < loop->count; i++)
        watch_machine_next(loop->transfers[i]->machine, now_ms(), &loop->transfers[i]->request);

    while (!atomic_load(&loop->stopping)) {
        int wait_ms = begin_due(loop);

        if (loop->api)
            turn_in_process(loop, wait_ms);
        else
            turn_with_server(loop, wait_ms);
        tell_problems(loop);
    }
    for (size_t i = 0; i < loop->count; i++) {
        if (loop->transfers[i]->running && loop->api)
            end_stream(loop->transfers[i]);
        else if (loop->transfers[i]->running)
            curl_multi_remove_handle(loop->multi, loop->transfers[i]->easy);
    }
    return NULL;
}

static int open_handles(struct watch_loop *loop, struct error *err)
{
    int r = 0;

    if (loop->api)
        return 0;
    loop->multi = curl_multi_init();
    if (!loop->multi)
        return error_set(err, ERROR_INTERNAL, "libcurl gives no multi handle");
    for (size_t i = 0; i < loop->count && r == 0; i++)
        r = open_handle(loop->transfers[i], err);
    return r;
}

int watch_loop_start(struct watch_loop *loop, struct error *err)
{
    assert(!loop->started);
    int r = open_handles(loop, err);
    if (r < 0)
        return r;

    int code = pthread_create(&loop->thread, NULL, run, loop);
    if (code)
        return error_set(err, ERROR_INTERNAL, "watch thread: %s", strerror(code));
    pthread_setname_np(loop->thread, "watch");
    loop->started = true;
    return 0;
}

void watch_loop_stop(struct watch_loop *loop)
{
    if (!loop->started)
        return;
    atomic_store(&loop->stopping, true);
    if (loop->api)
        wake(loop);
    else
        curl_multi_wakeup(loop->multi);
    pthread_join(loop->thread, NULL);
    loop->started = false;
}

bool watch_loop_problem(struct watch_loop *loop, char *ret, size_t size)
{
    bool found = false;

    pthread_mutex_lock(&loop->lock);
    for (size_t i = 0; i < loop->count && !found; i++) {
        found = *loop->transfers[i]->problem;
        if (found)
            snprintf(ret, size, "%s", loop->transfers[i]->problem);
    }
    pthread_mutex_unlock(&loop->lock);
    return found;
}

bool watch_loop_is_refused(const struct watch_loop *loop)
{
    bool is_refused = false;

    for (size_t i = 0; i < loop->count; i++)
        is_refused = is_refused || atomic_load(&loop->transfers[i]->is_refused);
    return is_refused;
}
