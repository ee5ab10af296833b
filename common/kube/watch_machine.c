#include "common/kube/watch_internal.h"

#include <assert.h>
#include <sys/random.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/path.h"
#include "common/kube/status.h"

#define DEFAULT_PAGE_SIZE 500
#define DEFAULT_WATCH_TIMEOUT_S 290
/* The client waits so much longer than the server was asked to. */
#define CLIENT_MARGIN_MS 5000
/* Names, a selector of this program's own, and a continue token or a version, percent-encoded. */
#define MAX_PATH (64u << 10)
/* 1.6 s doubles to 30 s in 5 steps; more would only overflow the shift. */
#define MAX_DOUBLINGS 5

void watch_set_string(char **string, const char *value)
{
    char *copy = value ? xstrdup(value) : NULL;

    free(*string);
    *string = copy;
}

/* In an event the object is a member. */
#define EVENT_MEMBER "object."
#define MAX_PATHS 4096

/* Paths into the object of an event; paths->data moves while it grows, so pointers into it come later. */
static size_t put_path(struct buf *paths, const char *path)
{
    size_t begin = paths->len;
    bool fits = buf_printf(paths, EVENT_MEMBER "%s", path) && buf_append(paths, "", 1);

    assert(fits); /* lists are constants */
    return begin;
}

/* What is not built of items and of events: what nobody ever reads, and what the options say. */
static void set_paths(struct watch_machine *machine)
{
    const char *const *more = machine->options.unread;
    const char *const *texts = machine->options.kind->texts;
    size_t unread_at[JSON_MAX_UNREAD] = { 0 }, texts_at[JSON_MAX_TEXTS] = { 0 };
    size_t unread_len = 0, texts_len = 0;

    unread_at[unread_len++] = put_path(&machine->paths, "metadata.managedFields");
    for (; more && *more; more++) {
        assert(unread_len < JSON_MAX_UNREAD);
        unread_at[unread_len++] = put_path(&machine->paths, *more);
    }
    for (; texts && *texts; texts++) {
        assert(texts_len < JSON_MAX_TEXTS);
        texts_at[texts_len++] = put_path(&machine->paths, *texts);
    }
    for (size_t i = 0; i < unread_len; i++) {
        machine->unread_of_event[i] = machine->paths.data + unread_at[i];
        machine->unread_of_item[i] = machine->unread_of_event[i] + strlen(EVENT_MEMBER);
    }
    for (size_t i = 0; i < texts_len; i++)
        machine->texts_of_event[i] = machine->paths.data + texts_at[i];
}

struct watch_machine *watch_machine_create(const struct watch_options *options, watch_sink_fn *sink,
                                           void *ctx)
{
    struct watch_machine *machine = xcalloc(1, sizeof(*machine));
    const struct kube_kind *kind = options->kind;
    struct buf resource = BUF_INIT(MAX_PATH);
    struct buf field = BUF_INIT(MAX_PATH);

    machine->options = *options;
    machine->start = options->newest ? LIST_FRESH : LIST_CACHED;
    machine->ns = xstrdup(options->ns ? options->ns : "");
    machine->label_selector = xstrdup(options->label_selector ? options->label_selector : "");
    if (!machine->options.page_size)
        machine->options.page_size = DEFAULT_PAGE_SIZE;
    if (!machine->options.watch_timeout_s)
        machine->options.watch_timeout_s = DEFAULT_WATCH_TIMEOUT_S;
    machine->sink = sink;
    machine->ctx = ctx;
    machine->splitter = json_splitter_create(WATCH_MAX_ITEM, watch_on_part, machine);

    bool fits = !options->name || buf_printf(&field, "metadata.name=%s", options->name);
    assert(fits); /* names are short */
    machine->field_selector = xstrdup(buf_string(&field));
    buf_release(&field);
    fits = buf_printf(&resource, "%s%s%s", kind->plural, *kind->group ? "." : "", kind->group) &&
           (!kind->namespaced || !*machine->ns ||
            buf_printf(&resource, " of namespace '%s'", machine->ns));
    assert(fits); /* kinds are constants, names are short */
    machine->resource = resource.data;
    machine->paths = (struct buf)BUF_INIT(MAX_PATHS);
    set_paths(machine);
    return machine;
}

void watch_machine_set_page(struct watch_machine *machine, uint32_t page_size)
{
    machine->options.page_size = page_size;
    machine->start = LIST_FRESH;
}

void watch_machine_destroy(struct watch_machine *machine)
{
    if (!machine)
        return;
    json_splitter_destroy(machine->splitter);
    free(machine->ns);
    free(machine->label_selector);
    free(machine->field_selector);
    free(machine->resource);
    buf_release(&machine->paths);
    free(machine->page);
    free(machine->set_version);
    free(machine->version);
    free(machine->path);
    free(machine);
}

const char *watch_machine_problem(const struct watch_machine *machine)
{
    return machine->problem_code ? machine->problem : NULL;
}

enum error_code watch_machine_problem_code(const struct watch_machine *machine)
{
    return machine->problem_code;
}

const char *watch_machine_resource(const struct watch_machine *machine)
{
    return machine->resource;
}

/* --- requests --- */

static bool add_number(struct buf *path, const char *key, uint32_t value)
{
    char digits[24];

    return kube_path_query(path, key, log_int(value, digits));
}

static bool add_list_query(const struct watch_machine *machine, struct buf *path)
{
    if (!add_number(path, "limit", machine->options.page_size))
        return false;
    if (machine->page) /* the token says where; a version beside it is refused */
        return kube_path_query(path, "continue", machine->page);
    if (machine->start == LIST_CACHED)
        return kube_path_query(path, "resourceVersion", "0");
    if (machine->start == LIST_KNOWN)
        return kube_path_query(path, "resourceVersion", machine->version) &&
               kube_path_query(path, "resourceVersionMatch", "NotOlderThan");
    return true;
}

static bool add_watch_query(const struct watch_machine *machine, struct buf *path)
{
    return kube_path_query(path, "watch", "true") &&
           kube_path_query(path, "allowWatchBookmarks", "true") &&
           kube_path_query(path, "resourceVersion", machine->version) &&
           add_number(path, "timeoutSeconds", machine->options.watch_timeout_s);
}

static bool build_path(const struct watch_machine *machine, struct buf *path)
{
    if (!kube_path_collection(path, machine->options.kind, machine->ns))
        return false;
    if (*machine->label_selector &&
        !kube_path_query(path, "labelSelector", machine->label_selector))
        return false;
    if (*machine->field_selector &&
        !kube_path_query(path, "fieldSelector", machine->field_selector))
        return false;
    return machine->watching ? add_watch_query(machine, path) : add_list_query(machine, path);
}

void watch_machine_next(struct watch_machine *machine, int64_t now_ms, struct watch_request *ret)
{
    struct buf path = BUF_INIT(MAX_PATH);

    bool fits = build_path(machine, &path);
    assert(fits); /* all that comes from outside has its limit */
    free(machine->path);
    machine->path = path.data;
    machine->reply = (struct watch_reply){ 0 };
    machine->started_ms = now_ms > machine->not_before_ms ? now_ms : machine->not_before_ms;
    json_splitter_start(machine->splitter,
                        machine->watching ? JSON_SPLIT_DOCUMENTS : JSON_SPLIT_LIST);

    ret->path = machine->path;
    ret->not_before_ms = machine->not_before_ms;
    ret->timeout_ms = machine->watching ? machine->options.watch_timeout_s * 1000 + CLIENT_MARGIN_MS
                                        : WATCH_LIST_TIMEOUT_MS;
}

int watch_machine_feed(struct watch_machine *machine, const char *bytes, size_t len,
                       struct error *err)
{
    struct watch_reply *reply = &machine->reply;

    reply->begun = true;
    if (machine->watching && !machine->must_tell)
        watch_no_problem(machine);

    int r = 0;
    if (reply->error.code)
        r = -(int)reply->error.code;
    else if (!reply->complete)
        r = json_splitter_feed(machine->splitter, bytes, len, &reply->error);
    if (r == 0 || reply->complete) /* what follows the end of a list does no harm */
        return 0;
    if (err)
        *err = reply->error;
    return r;
}

/* ERROR_NONE: as it should be. */
static struct error judge(const struct watch_machine *machine, int status, const char *text,
                          int64_t lasted_ms)
{
    const struct watch_reply *reply = &machine->reply;
    struct error why = { 0 };

    if (reply->complete)
        return why;
    if (reply->error.code)
        return reply->error;
    if (status == 0)
        error_set(&why, ERROR_UNAVAILABLE, "%s", text ? text : "no reply");
    else if (status != 200)
        kube_status_error_text(&why, status, text, text ? strlen(text) : 0);
    else if (!machine->watching)
        error_set(&why, ERROR_UNAVAILABLE, "the reply ended too early");
    else if (!reply->told && lasted_ms < WATCH_HASTY_MS)
        error_set(&why, ERROR_UNAVAILABLE, "the stream ended at once");
    return why;
}

/* Somewhere between half and the whole of what doubles with each failure. */
static uint32_t backoff_ms(unsigned failures)
{
    unsigned doublings = failures <= MAX_DOUBLINGS ? failures - 1 : MAX_DOUBLINGS;
    uint32_t whole = WATCH_BACKOFF_MIN_MS << doublings;
    uint32_t random = 0;

    if (whole > WATCH_BACKOFF_MAX_MS)
        whole = WATCH_BACKOFF_MAX_MS;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
        random = 0; /* too early after boot: all wait the shortest time */
    return whole / 2 + random % (whole / 2 + 1);
}

void watch_no_problem(struct watch_machine *machine)
{
    machine->problem_code = ERROR_NONE;
    *machine->problem = '\0';
}

/* The API server's own words for it are "404 page not found". */
static const char NOT_INSTALLED[] = "the API server does not have this kind, is its CRD installed?";

static void set_problem(struct watch_machine *machine, const struct error *why)
{
    machine->problem_code = why->code;
    snprintf(machine->problem, sizeof(machine->problem), "%s %s: %s: %s",
             machine->watching ? "watch" : "list", machine->resource, error_code_name(why->code),
             why->code == ERROR_NOT_FOUND ? NOT_INSTALLED : why->message);
}

/*
 * Gone is the answer of a server that works: after an outage, in which waits have grown, all
 * versions are too old, and nothing new would be known until the list.
 */
static unsigned count_failure(struct watch_machine *machine, const struct error *why)
{
    if (why->code != ERROR_GONE)
        return ++machine->failures;
    machine->failures = 0;
    return ++machine->gones;
}

static void back_off(struct watch_machine *machine, const struct error *why, int64_t now_ms)
{
    unsigned count = count_failure(machine, why);
    uint32_t wait_ms = backoff_ms(count);
    uint32_t asked_ms =
        why->retry_after_ms < WATCH_BACKOFF_MAX_MS ? why->retry_after_ms : WATCH_BACKOFF_MAX_MS;

    machine->not_before_ms = now_ms + (asked_ms > wait_ms ? asked_ms : wait_ms);
    if (why->code == ERROR_GONE && count == 1)
        watch_no_problem(machine); /* the list that follows is all there is to it */
    else
        set_problem(machine, why);
}

/* True when the same request has a chance later: the state is kept. */
static bool is_worth_repeating(const struct error *why)
{
    switch (why->code) {
    case ERROR_UNAVAILABLE:
    case ERROR_TIMEOUT:
    case ERROR_INTERNAL:
    case ERROR_FORBIDDEN:
        return true;
    default:
        return false;
    }
}

static void restart_list(struct watch_machine *machine, enum list_start start)
{
    machine->watching = false;
    machine->start = start == LIST_KNOWN && !machine->version ? LIST_FRESH : start;
    machine->in_set = false;
    watch_set_string(&machine->page, NULL);
    watch_set_string(&machine->set_version, NULL);
}

static void after_failure(struct watch_machine *machine, const struct error *why)
{
    bool was_known = !machine->watching && machine->start == LIST_KNOWN;

    if (why->code == ERROR_NOT_FOUND && !machine->watching && machine->options.other) {
        const struct kube_kind *other = machine->options.other;

        machine->options.other = machine->options.kind;
        machine->options.kind = other;
    }
    if (why->code == ERROR_GONE)
        restart_list(machine, was_known ? LIST_FRESH : LIST_KNOWN);
    else if (machine->watching && !is_worth_repeating(why))
        restart_list(machine, LIST_KNOWN);
    else if (!machine->watching && (machine->reply.begun || !is_worth_repeating(why)))
        restart_list(machine, machine->start);
}

void watch_machine_finish(struct watch_machine *machine, int status, const char *text,
                          int64_t now_ms)
{
    int64_t lasted_ms = now_ms - machine->started_ms;
    struct error why = judge(machine, status, text, lasted_ms);
    bool was_watching = machine->watching;

    if (was_watching && machine->reply.begun && lasted_ms >= WATCH_STEADY_MS)
        machine->failures = machine->gones = 0;
    machine->must_tell = was_watching && why.code && lasted_ms < WATCH_HASTY_MS &&
                         (status == 200 || machine->reply.error.code);
    if (why.code) {
        back_off(machine, &why, now_ms);
        after_failure(machine, &why);
        if (why.code == ERROR_FORBIDDEN)
            machine->sink(machine->ctx, WATCH_REFUSED, NULL, NULL);
    } else {
        watch_no_problem(machine);
        machine->not_before_ms = now_ms;
        machine->watching = was_watching || !machine->page;
    }
    if (was_watching && machine->reply.list_next)
        restart_list(machine, LIST_KNOWN);
}
