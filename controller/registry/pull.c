#include "controller/registry/pull.h"

#include "common/base/str.h"
#include "common/runtime/metrics.h"

/* Requests for all but modules; those end by idleness alone. */
#define SMALL_TIMEOUT_MS 60000
#define IDLE_S 30
#define MAX_REDIRECTS 5
#define MAX_HEADERS ((size_t)16 << 10)

static struct metric pulled_bytes_total = {
    .type = METRIC_COUNTER,
    .name = "propeller_module_pulled_bytes_total",
    .help = "Bytes of modules that registries sent.",
};

/* A pull, and the file that its module goes to. */
struct carrier {
    struct pull *pull;
    const struct pull_means *means;
    struct module_writer *writer; /* NULL: not asked for yet */
    /* Of the present request for the module. */
    bool is_begun;
    bool is_over;         /* the body has more than the module */
    bool is_misplaced;    /* the body begins elsewhere */
    struct error refusal; /* of the disk */
};

/* The hook of http_client that takes bytes of the module. */
static bool take_bytes(void *ctx, int status, const char *headers, const void *bytes, size_t len)
{
    struct carrier *carrier = ctx;
    struct module_writer *writer = carrier->writer;
    int64_t written = module_writer_bytes(writer);

    if (!carrier->is_begun) {
        carrier->is_begun = true;
        carrier->is_misplaced =
            status == 206 && !pull_continues(status, headers, carrier->pull->arena, written);
        if (carrier->is_misplaced)
            return false;
        if (status != 206 && module_writer_restart(writer, &carrier->refusal) < 0)
            return false;
    }
    metric_add(&pulled_bytes_total, (double)len, NULL);

    int r = module_writer_add(writer, bytes, len, &carrier->refusal);

    carrier->is_over = r == -ERROR_TOO_LARGE;
    return r == 0;
}

static bool is_canceled(void *ctx)
{
    const struct pull_means *means = ((struct carrier *)ctx)->means;

    return means->is_canceled(means->ctx);
}

static int send_request(struct carrier *carrier, const struct pull_request *asked,
                        struct http_client_reply *ret, struct error *err)
{
    struct arena *arena = carrier->pull->arena;
    const char *headers[] = { "Accept-Encoding: identity", NULL, NULL, NULL };
    const struct http_client_hooks hooks = {
        .ctx = carrier,
        .take = asked->is_module ? take_bytes : NULL,
        .is_canceled = is_canceled,
    };
    const struct http_client_request request = {
        .method = asked->method,
        .url = asked->url,
        .headers = headers,
        .max_headers = MAX_HEADERS,
        .pool = carrier->means->pool,
        .max_reply = asked->max_reply,
        .timeout_ms = asked->is_module ? 0 : SMALL_TIMEOUT_MS,
        .idle_s = IDLE_S,
        .authorization = asked->authorization,
        .redirects = MAX_REDIRECTS,
        .redirects_plain = carrier->pull->target.registry->is_plain,
        .ca_file = carrier->means->ca_file,
        .hooks = &hooks,
    };
    size_t count = 1;

    if (asked->accept)
        headers[count++] = arena_printf(arena, "Accept: %s", asked->accept);
    if (asked->offset)
        headers[count++] = arena_printf(arena, "Range: bytes=%lld-", (long long)asked->offset);
    return http_client_send(arena, &request, ret, err);
}

/* Adds the state of the file to the reply. < 0: the disk refuses. */
static int describe_file(struct carrier *carrier, struct pull_reply *reply, struct error *err)
{
    struct module_writer *writer = carrier->writer;

    if (carrier->is_misplaced && module_writer_restart(writer, &carrier->refusal) == 0)
        reply->problem = "the registry sends another range than was asked for";
    if (carrier->refusal.code == ERROR_UNAVAILABLE)
        return error_set(err, ERROR_UNAVAILABLE, "%s", carrier->refusal.message);
    if (carrier->is_over) {
        reply->file_bytes = carrier->pull->module.bytes + 1;
        return 0;
    }
    reply->file_bytes = module_writer_bytes(writer);
    if (reply->file_bytes == carrier->pull->module.bytes) {
        reply->file_digest = module_writer_digest(writer, carrier->pull->arena);
        reply->file_is_wasm = module_writer_is_wasm(writer);
    }
    return 0;
}

static int ask(struct carrier *carrier, const struct pull_request *request, struct pull_reply *ret,
               struct error *err)
{
    struct http_client_reply reply = { .headers = "" };
    struct error problem = { 0 };

    carrier->is_begun = carrier->is_over = carrier->is_misplaced = false;
    carrier->refusal = (struct error){ 0 };
    int r = send_request(carrier, request, &reply, &problem);
    if (is_canceled(carrier))
        return error_set(err, ERROR_CANCELED, "the pull was ended");

    *ret = (struct pull_reply){
        .status = r < 0 ? 0 : reply.status,
        .problem = r < 0 ? arena_strdup(carrier->pull->arena, problem.message) : NULL,
        .is_too_large = r == -ERROR_TOO_LARGE,
        .headers = reply.headers,
        .body = reply.body,
        .len = reply.len,
        .retry_after_s = reply.retry_after_s,
    };
    return request->is_module ? describe_file(carrier, ret, err) : 0;
}

/* Pins the module if it is in the folder, for example by another manifest. */
static bool is_there(const struct carrier *carrier)
{
    const struct module_choice *module = &carrier->pull->module;
    struct module_cache *cache = carrier->means->cache;
    int64_t bytes = 0;

    if (!module_cache_pin(cache, module->digest, true, &bytes))
        return false;
    if (bytes == module->bytes)
        return true;
    module_cache_unpin(cache, module->digest); /* the manifest lies: the pull will say so */
    return false;
}

/* Takes the module from the folder if the repository has it for these credentials. *ret_is_taken: it is pinned. An answer
 * that is no yes takes nothing: the request for the module itself says what it means. */
static int take_there(struct carrier *carrier, const struct pull_request *request,
                      struct pull_reply *ret, bool *ret_is_taken, struct error *err)
{
    const struct module_choice *module = &carrier->pull->module;
    struct pull_request head = *request;
    struct pull_reply reply;

    *ret_is_taken = false;
    if (!is_there(carrier))
        return 0;
    head.method = "HEAD";
    head.is_module = false;

    int r = ask(carrier, &head, &reply, err);
    *ret_is_taken = r == 0 && reply.status / 100 == 2;
    if (!*ret_is_taken) {
        module_cache_unpin(carrier->means->cache, module->digest);
        return r;
    }
    *ret = (struct pull_reply){
        .status = 200,
        .headers = "",
        .file_bytes = module->bytes,
        .file_digest = module->digest,
        .file_is_wasm = true,
    };
    return 0;
}

static int ask_for_module(struct carrier *carrier, const struct pull_request *request,
                          struct pull_reply *ret, struct error *err)
{
    if (!carrier->writer) {
        int64_t bytes = carrier->pull->module.bytes;
        bool is_taken;
        int r = take_there(carrier, request, ret, &is_taken, err);

        if (r < 0 || is_taken)
            return r;
        carrier->writer = module_writer_create(carrier->means->cache, bytes);
        if (!carrier->writer)
            return error_set(err, ERROR_UNAVAILABLE,
                             "the folder of modules has no room for %lld bytes", (long long)bytes);
    }
    return ask(carrier, request, ret, err);
}

static int ask_until_end(struct carrier *carrier, struct error *err)
{
    const struct pull_means *means = carrier->means;
    struct pull_request request;
    struct pull_reply reply;
    int r = 0;

    while (r == 0 &&
           pull_next(carrier->pull, clock_monotonic_ms(means->clock), &request) == PULL_ASK) {
        r = request.is_module ? ask_for_module(carrier, &request, &reply, err)
                              : ask(carrier, &request, &reply, err);
        if (r == 0)
            pull_take(carrier->pull, clock_monotonic_ms(means->clock), &reply);
    }
    if (r == 0 && carrier->pull->outcome == PULL_DONE && carrier->writer)
        r = module_writer_commit(carrier->writer, err);
    return r;
}

int pull_carry_out(struct pull *pull, const struct pull_means *means, bool *ret_was_pulled,
                   struct error *err)
{
    struct carrier carrier = { .pull = pull, .means = means };
    int r = ask_until_end(&carrier, err);

    *ret_was_pulled = carrier.writer != NULL;
    module_writer_destroy(carrier.writer);
    return r;
}
