#include "controller/registry/gate.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"
#include "controller/registry/delivery_plan.h"

#define DIGEST_LEN 72 /* "sha256:", 64 digits and a NUL */
/* Nothing wakes a Task when there is room for its file. */
#define ROOM_RETRY_MS 30000
/* Others wait in its place, or the disk refuses. */
#define RETRY_MS 5000

enum source {
    SOURCE_UNKNOWN, /* the Task is not read yet: the cache does not have its file */
    SOURCE_FILE,
    SOURCE_REGISTRY,
    SOURCE_DEVICE, /* the device fetches it */
};

/* One Task whose module is brought: from its first start until it is no longer active. */
struct entry {
    int64_t attempt; /* what follows but is_wanted is of this one */
    enum source source;
    size_t rest_bytes;  /* of its start without the module; 0: not known yet */
    bool is_wanted;     /* the modules know that the Task needs its module */
    int64_t since_ms;   /* its start is held back since then; 0: it is not */
    int64_t started_ms; /* the last start in parts */
    /* The module of the last start. The digest is "" if this process sent none. */
    char manifest[DIGEST_LEN], digest[DIGEST_LEN];
    int64_t bytes;
};

struct gate {
    struct gate_options options;
    pthread_mutex_t lock; /* leaf: guards entries */
    struct map *entries;  /* uid of the Task -> struct entry */
};

struct gate *gate_create(const struct gate_options *options)
{
    struct gate *gate = xcalloc(1, sizeof(*gate));

    gate->options = *options;
    gate->entries = map_create(free);
    pthread_mutex_init(&gate->lock, NULL);
    return gate;
}

void gate_destroy(struct gate *gate)
{
    if (!gate)
        return;
    map_destroy(gate->entries);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

/* Another attempt may be on another channel, so nothing of the entry holds for it. */
static struct entry entry_get(struct gate *gate, const char *uid, int64_t attempt)
{
    struct entry ret = { .attempt = attempt };

    pthread_mutex_lock(&gate->lock);
    const struct entry *entry = map_get(gate->entries, uid);
    if (entry && entry->attempt == attempt)
        ret = *entry;
    else if (entry)
        ret.is_wanted = entry->is_wanted;
    pthread_mutex_unlock(&gate->lock);
    return ret;
}

/* Only the worker that has the turn of the Task changes its entry. */
static void entry_put(struct gate *gate, const char *uid, const struct entry *entry)
{
    struct entry *copy = xmalloc(sizeof(*copy));

    *copy = *entry;
    pthread_mutex_lock(&gate->lock);
    map_set(gate->entries, uid, copy);
    pthread_mutex_unlock(&gate->lock);
}

/* One start that is due. */
struct due {
    struct gate *gate;
    struct reconcile *rc;
    const struct task_observed *attempt;
    struct start_request *request; /* NULL: the Task is not read yet */
    const char *uid;               /* of the Task */
    struct entry entry;
    struct bringing *ret;
};

static bool is_web(const char *url)
{
    return str_has_prefix(url, "http://") || str_has_prefix(url, "https://");
}

static enum source source_of(const struct task_spec *spec)
{
    if (!spec->encrypted && !str_is_empty(spec->file))
        return SOURCE_FILE;
    if (spec->encrypted || str_is_empty(spec->image_url) || is_web(spec->image_url))
        return SOURCE_DEVICE;
    return SOURCE_REGISTRY;
}

static void refuse(struct due *due, enum reason reason, const char *message)
{
    due->ret->step = BRING_REFUSED;
    due->ret->reason = reason;
    due->ret->message = message;
}

static void wait(struct due *due, enum reason reason, const char *message, int64_t retry_ms)
{
    if (!due->entry.since_ms)
        due->entry.since_ms = due->attempt->now_ms;
    due->ret->step = BRING_WAIT;
    due->ret->reason = reason;
    due->ret->message = message ? message : "";
    due->ret->since_ms = due->entry.since_ms;
    due->ret->limit_ms =
        reason == REASON_DELIVERING_MODULE ? 0 : due->gate->options.pull_timeout_ms;
    due->ret->retry_ms = retry_ms;
}

static struct task_module *module_of(struct arena *arena, const char *manifest, const char *digest,
                                     int64_t bytes)
{
    struct task_module *module = arena_new(arena, struct task_module);

    module->manifest = arena_strdup(arena, manifest);
    module->digest = digest ? arena_strdup(arena, digest) : NULL;
    module->bytes = (struct json_opt_int){ digest != NULL, bytes };
    return module;
}

/* --- into the start, or in parts --- */

static bool has_microcontroller(const struct due *due)
{
    return store_count(due->gate->options.proplets, INDEX_EMBEDDED, due->attempt->proplet.channel);
}

/* Returns the bytes of the start without the module; 0: they are not known, or it cannot be made. */
static size_t rest_of_start(struct due *due)
{
    static const char NAMED[] = "\"image_url\":\"-\"", GIVEN[] = "\"file\":\"\"";
    struct task_spec spec;
    struct start_request request;
    const char *text;
    size_t len = 0;

    if (!due->request)
        return due->entry.rest_bytes;
    spec = *due->request->task;
    spec.file = NULL;
    spec.image_url = "-";
    request = *due->request;
    request.task = &spec;
    if (payload_start(due->rc->arena, &request, &text, &len, NULL) < 0)
        return 0;
    due->entry.rest_bytes = len - strlen(NAMED) + strlen(GIVEN);
    return due->entry.rest_bytes;
}

static size_t base64_len(size_t len)
{
    return (len + 2) / 3 * 4;
}

/* Base64 needs no escapes in JSON. Targets of a broadcast may be on channels that differ in it. */
static bool needs_parts(struct due *due, size_t module_len)
{
    size_t proplets =
        store_count(due->gate->options.proplets, INDEX_CHANNEL, due->attempt->proplet.channel);
    size_t len = module_len + rest_of_start(due);

    if (due->attempt->proplet.dialect == DIALECT_EMBEDDED)
        return false;
    return len > PAYLOAD_STANDARD_MAX || len * (proplets ? proplets : 1) > PAYLOAD_STANDARD_MAX;
}

static void give(struct due *due, const char *file, const char *image_url, const char *reference)
{
    struct task_spec *spec;

    due->entry.since_ms = 0;
    due->ret->step = BRING_READY;
    if (!due->request)
        return;
    spec = arena_new(due->rc->arena, struct task_spec);
    *spec = *due->request->task;
    spec->file = file;
    spec->image_url = image_url;
    due->request->task = spec;
    due->request->module_reference = reference;
}

static void bring_in_parts(struct due *due, const struct wasm_module_answer *answer,
                           const char *reference)
{
    const struct delivery_wish wish = {
        .key = due->attempt->uid,
        .attempt = due->attempt->task.status.attempt,
        .task = due->rc->name,
        .channel = due->attempt->proplet.channel,
        .digest = answer->digest,
        .bytes = answer->bytes,
        .client_id = due->attempt->proplet.client_id,
        .fresh_ms = due->attempt->proplet.fresh_since_ms,
    };
    int64_t after_ms = 0;

    if (has_microcontroller(due)) {
        refuse(due, REASON_PAYLOAD_TOO_LARGE,
               arena_printf(due->rc->arena,
                            "a module of %" PRId64 " bytes is sent in parts, which the "
                            "microcontrollers of its channel do not take",
                            answer->bytes));
        return;
    }
    switch (
        deliveries_want(due->gate->options.deliveries, &wish, due->request != NULL, &after_ms)) {
    case DELIVERY_REACHED:
        if (due->request)
            due->entry.started_ms = due->attempt->now_ms;
        give(due, NULL, arena_strdup(due->rc->arena, answer->digest), reference);
        return;
    case DELIVERY_TOO_SLOW:
        refuse(due, REASON_DELIVERY_TOO_SLOW,
               arena_printf(due->rc->arena,
                            "%" PRId64 " bytes were not sent within %d s, after which devices "
                            "forget the first of them",
                            answer->bytes, DELIVERY_KEPT_MS / 1000));
        return;
    case DELIVERY_NO_ROOM:
        wait(due, REASON_DELIVERING_MODULE, "too many modules are sent at once", RETRY_MS);
        return;
    case DELIVERY_WAITS:
        wait(due, REASON_DELIVERING_MODULE,
             arena_printf(due->rc->arena, "%s (%" PRId64 " bytes) is sent to its channel",
                          answer->digest, answer->bytes),
             after_ms);
        return;
    }
}

static void bring_inline(struct due *due, const struct wasm_module_answer *answer,
                         const char *reference)
{
    struct arena *arena = due->rc->arena;
    size_t len = (size_t)answer->bytes;
    char digest[SHA256_HEX_LEN];
    struct error err = { 0 };

    if (due->attempt->proplet.dialect == DIALECT_EMBEDDED && len > PAYLOAD_EMBEDDED_MAX) {
        refuse(due, REASON_PAYLOAD_TOO_LARGE,
               arena_printf(arena, "the module has %zu bytes, the device takes starts of %d", len,
                            PAYLOAD_EMBEDDED_MAX));
        return;
    }
    if (!due->request) {
        give(due, NULL, NULL, NULL);
        return;
    }
    void *bytes = arena_alloc(arena, len ? len : 1, 1);
    int r = wasm_modules_read(due->gate->options.modules, answer->digest, 0, bytes, len, &err);
    if (r == 0 && !str_equal(sha256_hex(bytes, len, digest), answer->digest + strlen("sha256:")))
        r = error_set(&err, ERROR_NOT_FOUND, "the file of %s has other bytes", answer->digest);
    if (r < 0) { /* asked for again, it is pulled again */
        wait(due, REASON_PULLING_MODULE, arena_strdup(arena, err.message), RETRY_MS);
        return;
    }
    give(due, base64_encode(arena, bytes, len), NULL, reference);
}

/* --- from a registry --- */

static const char *manifest_of(const struct due *due)
{
    const struct task_module *module = due->attempt->task.status.module;

    return module ? module->manifest : NULL;
}

static struct str_list secrets_of(struct arena *arena, const struct task_spec *spec)
{
    size_t count = json_len(spec->image_pull_secrets);
    const char **items = arena_array(arena, const char *, count + 1);
    struct str_list ret = { .items = items };

    json_for_each (secret, spec->image_pull_secrets)
        items[ret.len++] = json_string(json_get(secret, "name"), "");
    return ret;
}

static void ask(struct due *due, struct wasm_module_answer *ret)
{
    const struct task_spec *spec = &due->attempt->task.spec;
    const struct wasm_module_wish wish = {
        .task = due->rc->name,
        .uid = due->uid,
        .reference = spec->image_url,
        .manifest = manifest_of(due),
        .secrets = secrets_of(due->rc->arena, spec),
    };

    due->entry.is_wanted = true;
    wasm_modules_want(due->gate->options.modules, due->rc->arena, &wish, ret);
}

/* A device gets the module that the run chose. A tag without a choice is never READY. */
static bool is_chosen(struct due *due, const struct wasm_module_answer *answer)
{
    const struct task_module *module = due->attempt->task.status.module;
    const char *manifest = manifest_of(due);

    if ((!manifest || str_equal(manifest, answer->manifest)) &&
        (!module || !module->digest || str_equal(module->digest, answer->digest)))
        return true;
    refuse(due, REASON_MODULE_INVALID,
           "the module is another one than that of status.module, which the run began with");
    return false;
}

static void note_brought(struct due *due, const struct wasm_module_answer *answer)
{
    struct entry *entry = &due->entry;

    due->ret->module = module_of(due->rc->arena, answer->manifest, answer->digest, answer->bytes);
    if (!due->request)
        return;
    (void)str_copy(entry->manifest, sizeof(entry->manifest), answer->manifest);
    (void)str_copy(entry->digest, sizeof(entry->digest), answer->digest);
    entry->bytes = answer->bytes;
    if (answer->was_pulled)
        due->ret->note = arena_printf(due->rc->arena, "pulled %s (%" PRId64 " bytes) from %s",
                                      answer->digest, answer->bytes, answer->repository);
}

static void bring_of_registry(struct due *due)
{
    struct wasm_module_answer answer = { .state = WASM_MODULE_PENDING };
    struct arena *arena = due->rc->arena;

    ask(due, &answer);
    if (answer.state == WASM_MODULE_PENDING) {
        wait(due, answer.reason ? answer.reason : REASON_PULLING_MODULE, answer.message, 0);
        return;
    }
    if (answer.state == WASM_MODULE_FAILED) {
        refuse(due, answer.reason, answer.message ? answer.message : "");
        return;
    }
    if (answer.state == WASM_MODULE_RESOLVED) {
        due->ret->step = BRING_CHOICE;
        due->ret->module = module_of(arena, answer.manifest, NULL, 0);
        return;
    }
    if (!is_chosen(due, &answer))
        return;

    const char *reference = arena_printf(arena, "%s@%s", answer.repository, answer.manifest);
    if (needs_parts(due, base64_len((size_t)answer.bytes)))
        bring_in_parts(due, &answer, reference);
    else
        bring_inline(due, &answer, reference);
    if (due->ret->step == BRING_READY)
        note_brought(due, &answer);
}

/* --- of the spec --- */

/* false: the start goes out with the file, or the Task is to be read again. */
static bool keep_file(struct due *due, struct wasm_module_answer *ret)
{
    struct arena *arena = due->rc->arena;
    size_t len;

    if (wasm_modules_has(due->gate->options.modules, arena, due->uid, ret))
        return true;
    if (!due->request)
        return false;

    const char *file = due->request->task->file;
    const char *bytes = base64_decode(arena, file, strlen(file), &len);
    if (!bytes) /* the device, or the limit of a start, says so */
        return false;
    due->entry.is_wanted = true;
    wasm_modules_put(due->gate->options.modules, arena, due->uid, bytes, len, ret);
    return true;
}

static void bring_of_file(struct due *due)
{
    struct wasm_module_answer answer = { .state = WASM_MODULE_PENDING };

    if (due->request && !needs_parts(due, strlen(due->request->task->file)))
        return;
    if (!keep_file(due, &answer))
        return;
    if (!due->request && !needs_parts(due, base64_len((size_t)answer.bytes)))
        return;
    if (answer.state == WASM_MODULE_READY)
        bring_in_parts(due, &answer, NULL);
    else if (answer.state == WASM_MODULE_FAILED)
        refuse(due, answer.reason, answer.message ? answer.message : "");
    else
        wait(due, answer.reason, answer.message, ROOM_RETRY_MS);
}

static const char *uid_of(struct arena *arena, const struct task_observed *attempt)
{
    return attempt->target_id ? message_id_uid(arena, attempt->target_id) : attempt->uid;
}

static void bring(void *self, struct reconcile *rc, const struct task_observed *attempt,
                  struct start_request *request, struct bringing *ret)
{
    struct gate *gate = self;
    struct due due = { .gate = gate,
                       .rc = rc,
                       .attempt = attempt,
                       .request = request,
                       .uid = uid_of(rc->arena, attempt),
                       .ret = ret };

    due.entry = entry_get(gate, due.uid, attempt->task.status.attempt);
    if (request)
        due.entry.source = source_of(request->task);
    if (due.entry.source == SOURCE_UNKNOWN)
        return;
    if (due.entry.source != SOURCE_REGISTRY && gate->options.needs_signatures) {
        refuse(&due, REASON_MODULE_UNSIGNED,
               "--module-public-keys is set: imageUrl by a registry is needed");
        return;
    }
    if (due.entry.source == SOURCE_REGISTRY)
        bring_of_registry(&due);
    else if (due.entry.source == SOURCE_FILE)
        bring_of_file(&due);
    if (ret->step != BRING_NOTHING)
        entry_put(gate, due.uid, &due.entry);
}

/* --- no start is due --- */

static void entry_drop(struct gate *gate, const char *uid)
{
    pthread_mutex_lock(&gate->lock);
    bool was_there = map_remove(gate->entries, uid);
    pthread_mutex_unlock(&gate->lock);
    if (!was_there)
        return;
    deliveries_drop(gate->options.deliveries, uid, true);
    wasm_modules_release(gate->options.modules, uid);
}

/* Its device may lack parts, and ask for them. */
static int64_t may_ask_ms(const struct entry *entry, const struct task_observed *observed)
{
    int64_t left_ms = entry->started_ms + DELIVERY_LOOK_MS - observed->now_ms;

    return entry->started_ms && !observed->attempt.confirmed_ms && left_ms > 0 ? left_ms : 0;
}

static int64_t rest(void *self, const struct task_observed *observed)
{
    struct gate *gate = self;
    struct entry entry = entry_get(gate, observed->uid, observed->task.status.attempt);
    enum task_phase phase = observed->task.status.phase;

    if ((phase != TASK_SCHEDULED && phase != TASK_RUNNING) || observed->deleted_us) {
        entry_drop(gate, observed->uid);
        return 0;
    }
    int64_t left_ms = may_ask_ms(&entry, observed);
    if (!entry.is_wanted)
        return 0;
    deliveries_drop(gate->options.deliveries, observed->uid, false);
    if (left_ms)
        return left_ms;
    wasm_modules_release(gate->options.modules, observed->uid);
    entry.is_wanted = false;
    entry.since_ms = 0;
    entry_put(gate, observed->uid, &entry);
    return 0;
}

/* The status names what the start had. */
static int read_results(void *self, struct reconcile *rc, const cJSON *task UNUSED,
                        struct task_observed *observed, struct error *err UNUSED)
{
    const struct entry entry = entry_get(self, observed->uid, observed->task.status.attempt);

    if (entry.digest[0] && entry.source == SOURCE_REGISTRY)
        observed->brought = module_of(rc->arena, entry.manifest, entry.digest, entry.bytes);
    return 0;
}

static void forget(void *self, const char *uid)
{
    entry_drop(self, uid);
}

const struct task_owner GATE_OWNER = {
    .bring = bring,
    .rest = rest,
    .read_results = read_results,
    .forget = forget,
};
