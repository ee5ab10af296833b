#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/curl_setup.h"
#include "common/kube/watch.h"

/* Up to 16 kinds, in namespaced mode once for each of up to 64 namespaces. */
#define MAX_MACHINES 1024
/* Of a reply that is not 200: a Status object; a longer one is cut. */
#define MAX_REFUSAL (16u << 10)
/* Nothing is due: libcurl and curl_multi_wakeup end a wait on their own. */
#define MAX_WAIT_MS 60000
#define PAUSE_MS 100
#define MAX_PROBLEM 400

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
    enum error_code logged;    /* the problem that the log knows of */
};

struct watch_loop {
    struct curl_setup *setup;
    CURLM *multi;
    struct transfer *transfers[MAX_MACHINES];
    size_t count;
    bool started;
    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t lock; /* of the problems */
};

struct watch_loop *watch_loop_create(struct kube_config *config)
{
    struct watch_loop *loop = xcalloc(1, sizeof(*loop));

    loop->setup = curl_setup_create(config);
    atomic_init(&loop->stopping, false);
    pthread_mutex_init(&loop->lock, NULL);
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
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

void watch_loop_add(struct watch_loop *loop, struct watch_machine *machine)
{
    assert(!loop->started && loop->count < MAX_MACHINES);

    struct transfer *transfer = xcalloc(1, sizeof(*transfer));
    transfer->loop = loop;
    transfer->machine = machine;
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

static void begin(struct transfer *transfer)
{
    struct error err = { 0 };

    log_debug("watch request begins", "resource", watch_machine_resource(transfer->machine), "path",
              transfer->request.path, NULL);
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

static void end(struct transfer *transfer, CURLcode result)
{
    long status = status_of(transfer);
    const char *why = *transfer->detail ? transfer->detail : curl_easy_strerror(result);

    curl_multi_remove_handle(transfer->loop->multi, transfer->easy);
    transfer->running = false;
    /* A request that nobody answered in time may hang on a connection that only looks alive. */
    curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT,
                     result == CURLE_OPERATION_TIMEDOUT ? 1L : 0L);

    if (status != 0 && status != 200)
        finish(transfer, (int)status, buf_string(&transfer->refusal));
    else if (result == CURLE_OK)
        finish(transfer, (int)status, NULL);
    else
        finish(transfer, 0, why);
}

/* --- the loop --- */

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
        if (!transfer->running && transfer->request.not_before_ms - now < wait_ms)
            wait_ms = transfer->request.not_before_ms - now;
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
        log_warn("watch is not getting anywhere, trying again", "resource", resource, "problem",
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

static void *run(void *ctx)
{
    struct watch_loop *loop = ctx;
    int running;

    for (size_t i = 0; i < loop->count; i++)
        watch_machine_next(loop->transfers[i]->machine, now_ms(), &loop->transfers[i]->request);

    while (!atomic_load(&loop->stopping)) {
        int wait_ms = begin_due(loop);
        CURLMcode code = curl_multi_poll(loop->multi, NULL, 0, wait_ms, NULL);
        if (code == CURLM_OK)
            code = curl_multi_perform(loop->multi, &running);
        if (code != CURLM_OK)
            after_libcurl_error(code);
        end_finished(loop);
        tell_problems(loop);
    }
    for (size_t i = 0; i < loop->count; i++) {
        if (loop->transfers[i]->running)
            curl_multi_remove_handle(loop->multi, loop->transfers[i]->easy);
    }
    return NULL;
}

int watch_loop_start(struct watch_loop *loop, struct error *err)
{
    assert(!loop->started);
    loop->multi = curl_multi_init();
    if (!loop->multi)
        return error_set(err, ERROR_INTERNAL, "libcurl gives no multi handle");
    for (size_t i = 0; i < loop->count; i++) {
        int r = open_handle(loop->transfers[i], err);
        if (r < 0)
            return r;
    }

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
