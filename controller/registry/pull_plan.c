#include "controller/registry/pull_plan.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/net/http_client.h"
#include "controller/registry/pull_internal.h"

#define MAX_SMALL_REPLY ((size_t)64 << 10) /* of a HEAD, or of an error */

void pull_begin(struct pull *pull, struct arena *arena, const struct pull_target *target)
{
    *pull = (struct pull){
        .arena = arena,
        .target = *target,
        .step = target->aim == PULL_MODULE ? PULL_STEP_MANIFEST : PULL_STEP_HEAD,
        .authorization = { .logins = target->logins, .allows_plain = target->registry->is_plain },
        .manifest = target->reference.digest,
    };
    if (target->aim == PULL_KNOWN) {
        pull->module = target->known;
        pull->signed_by = target->known_signer;
    }
}

void pull_end(struct pull *pull, enum pull_next outcome, enum reason reason, const char *format,
              ...)
{
    va_list args;

    va_start(args, format);
    pull->step = PULL_STEP_END;
    pull->outcome = outcome;
    pull->reason = reason;
    pull->message = arena_printf(pull->arena, "'%s' %s", pull->target.reference.repository,
                                 arena_vprintf(pull->arena, format, args));
    va_end(args);
}

static void pull_done(struct pull *pull)
{
    pull->step = PULL_STEP_END;
    pull->outcome = PULL_DONE;
}

/* --- requests --------------------------------------------------------------------------------- */

void pull_get(const struct pull *pull, struct pull_request *ret, const char *below,
              const char *accept, size_t max_reply)
{
    *ret = (struct pull_request){
        .method = "GET",
        .url = arena_printf(pull->arena, "%s/v2/%s/%s", pull->target.registry->url,
                            pull->target.reference.path, below),
        .accept = accept,
        .authorization = authorization_value(&pull->authorization, pull->arena, false),
        .max_reply = max_reply,
    };
}

static void get_manifest(const struct pull *pull, struct pull_request *ret, const char *reference)
{
    pull_get(pull, ret, arena_printf(pull->arena, "manifests/%s", reference), MODULE_MANIFEST_TYPES,
             MODULE_MANIFEST_MAX);
}

static void request_step(const struct pull *pull, struct pull_request *ret)
{
    const struct module_reference *reference = &pull->target.reference;

    switch (pull->step) {
    case PULL_STEP_HEAD:
        get_manifest(pull, ret, reference->digest ? reference->digest : reference->tag);
        ret->method = "HEAD";
        break;
    case PULL_STEP_TAG:
        get_manifest(pull, ret, reference->tag);
        break;
    case PULL_STEP_MANIFEST:
        get_manifest(pull, ret, pull->manifest);
        break;
    case PULL_STEP_INNER:
        get_manifest(pull, ret, pull->module.digest);
        break;
    case PULL_STEP_BLOB:
        pull_get(pull, ret, arena_printf(pull->arena, "blobs/%s", pull->module.digest), NULL,
                 MAX_SMALL_REPLY);
        ret->is_module = true;
        ret->offset = pull->offset;
        break;
    default:
        pull_signatures_request(pull, ret);
    }
}

enum pull_next pull_next(struct pull *pull, int64_t now_ms, struct pull_request *ret)
{
    if (pull->step == PULL_STEP_END)
        return pull->outcome;

    pull->is_asking_token = authorization_needs_token(&pull->authorization, now_ms);
    if (pull->is_asking_token)
        *ret = (struct pull_request){
            .method = "GET",
            .url = pull->authorization.realm,
            .authorization = authorization_value(&pull->authorization, pull->arena, true),
            .max_reply = AUTHORIZATION_TOKEN_MAX,
        };
    else
        request_step(pull, ret);
    return PULL_ASK;
}

/* --- replies ---------------------------------------------------------------------------------- */

bool pull_body_is(const struct pull_reply *reply, const char *digest)
{
    char hex[SHA256_HEX_LEN];

    return str_equal(digest + strlen(MODULE_DIGEST_PREFIX),
                     sha256_hex(reply->body, reply->len, hex));
}

static void forbid(struct pull *pull, int status)
{
    pull_end(pull, PULL_FAILED, REASON_MODULE_FORBIDDEN, "is refused with status %d %s", status,
             pull->target.logins.len
                 ? "to all credentials: correct spec.imagePullSecrets or --module-docker-config"
                 : "without credentials: give them by spec.imagePullSecrets");
}

static void put_off(struct pull *pull, const struct pull_reply *reply, const char *asked)
{
    pull->retry_after_s = reply->retry_after_s;
    if (!reply->status)
        pull_end(pull, PULL_LATER, REASON_REGISTRY_UNAVAILABLE, "cannot be pulled: %s",
                 reply->problem);
    else
        pull_end(pull, PULL_LATER, REASON_REGISTRY_UNAVAILABLE,
                 "cannot be pulled: %s answers with status %d", asked, reply->status);
}

static void take_token(struct pull *pull, int64_t now_ms, const struct pull_reply *reply)
{
    struct error err = { 0 };

    if (reply->status == 401 || reply->status == 403) {
        if (!authorization_token_refused(&pull->authorization))
            forbid(pull, reply->status);
        return;
    }
    if (reply->status != 200) {
        put_off(pull, reply, "the token server");
        return;
    }
    if (authorization_take_token(&pull->authorization, pull->arena, reply->body, reply->len, now_ms,
                                 &err) < 0)
        pull_end(pull, PULL_LATER, REASON_REGISTRY_UNAVAILABLE, "cannot be pulled: %s",
                 err.message);
}

static void take_head(struct pull *pull, const struct pull_reply *reply)
{
    const char *digest = http_client_header(pull->arena, reply->headers, "Docker-Content-Digest");

    if (pull->target.aim == PULL_KNOWN) {
        pull_signed(pull);
        return;
    }
    if (!module_digest_is_valid(digest)) {
        pull->step = PULL_STEP_TAG;
        return;
    }
    pull->manifest = digest;
    pull_done(pull);
}

static void take_tag(struct pull *pull, const struct pull_reply *reply)
{
    const char *type = http_client_header(pull->arena, reply->headers, "Content-Type");
    char hex[SHA256_HEX_LEN];
    struct module_choice choice;
    struct error err = { 0 };

    if (module_manifest_choose(pull->arena, type, reply->body, reply->len, &choice, &err) < 0) {
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID, "%s", err.message);
        return;
    }

    pull->manifest = arena_printf(pull->arena, MODULE_DIGEST_PREFIX "%s",
                                  sha256_hex(reply->body, reply->len, hex));
    pull_done(pull);
}

void pull_signed(struct pull *pull)
{
    pull->step = PULL_STEP_BLOB;
}

/* The manifest names a layer. */
static void take_layer(struct pull *pull)
{
    if (pull->module.bytes > pull->target.max_bytes)
        pull_end(pull, PULL_FAILED, REASON_MODULE_TOO_LARGE,
                 "has %lld bytes, --module-max-bytes allows %lld", (long long)pull->module.bytes,
                 (long long)pull->target.max_bytes);
    else if (pull->target.keys)
        pull_signatures_begin(pull);
    else
        pull_signed(pull);
}

static void take_manifest(struct pull *pull, const struct pull_reply *reply)
{
    bool is_inner = pull->step == PULL_STEP_INNER;
    const char *digest = is_inner ? pull->module.digest : pull->manifest;
    const char *type = http_client_header(pull->arena, reply->headers, "Content-Type");
    struct module_choice choice;
    struct error err = { 0 };

    if (!pull_body_is(reply, digest)) {
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID,
                 "has another manifest than its digest '%s' says", digest);
        return;
    }
    if (pull->target.aim == PULL_KNOWN) {
        pull_signed(pull);
        return;
    }
    if (module_manifest_choose(pull->arena, type, reply->body, reply->len, &choice, &err) < 0) {
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID, "%s", err.message);
        return;
    }
    if (choice.is_index && is_inner) {
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID, "has an index inside of its index");
        return;
    }
    pull->signatures.digests[is_inner] = digest;
    pull->module = choice;
    if (choice.is_index)
        pull->step = PULL_STEP_INNER;
    else
        take_layer(pull);
}

/* "bytes 100-199/200" with this first byte. */
static bool range_begins_at(const char *range, int64_t offset)
{
    char *end = NULL;

    return range && str_has_prefix(range, "bytes ") && range[6] >= '0' && range[6] <= '9' &&
           strtoll(range + 6, &end, 10) == offset && *end == '-';
}

bool pull_continues(int status, const char *headers, struct arena *arena, int64_t offset)
{
    return status == 206 &&
           range_begins_at(http_client_header(arena, headers, "Content-Range"), offset);
}

/* Asks for the rest of the module, or for all of it. */
static void resume(struct pull *pull, const struct pull_reply *reply, int64_t offset)
{
    if (pull->resumes == PULL_MAX_RESUMES) {
        pull_end(pull, PULL_LATER, REASON_REGISTRY_UNAVAILABLE,
                 "breaks off after %lld of %lld bytes%s%s", (long long)reply->file_bytes,
                 (long long)pull->module.bytes, reply->problem ? ": " : "",
                 reply->problem ? reply->problem : "");
        return;
    }
    pull->resumes++;
    pull->offset = offset;
}

static void take_module(struct pull *pull, const struct pull_reply *reply)
{
    int64_t expected = pull->module.bytes;

    if (reply->file_bytes > expected)
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID,
                 "sends more than the %lld bytes that its manifest states", (long long)expected);
    else if (reply->file_bytes < expected && reply->status != 200)
        resume(pull, reply, reply->status == 416 ? 0 : reply->file_bytes);
    else if (reply->file_bytes < expected)
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID,
                 "sends %lld of the %lld bytes that its manifest states",
                 (long long)reply->file_bytes, (long long)expected);
    else if (!str_equal(reply->file_digest, pull->module.digest))
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID,
                 "sends other bytes than its digest '%s' says", pull->module.digest);
    else if (!reply->file_is_wasm)
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID,
                 "has a layer that is not WebAssembly (00 61 73 6d)");
    else
        pull_done(pull);
}

static void take_step(struct pull *pull, const struct pull_reply *reply)
{
    switch (pull->step) {
    case PULL_STEP_HEAD:
        take_head(pull, reply);
        break;
    case PULL_STEP_TAG:
        take_tag(pull, reply);
        break;
    case PULL_STEP_MANIFEST:
    case PULL_STEP_INNER:
        take_manifest(pull, reply);
        break;
    case PULL_STEP_BLOB:
        take_module(pull, reply);
        break;
    default:
        pull_signatures_take(pull, reply);
    }
}

static bool is_about_signatures(enum pull_step step)
{
    return step >= PULL_STEP_SIGNATURES && step <= PULL_STEP_BUNDLE;
}

static void miss(struct pull *pull, const char *kind, const char *name)
{
    pull_end(pull, PULL_FAILED, REASON_MODULE_NOT_FOUND, "with the %s %s is not in the registry",
             kind, name);
}

static void take_failed_module(struct pull *pull, const struct pull_reply *reply)
{
    if (!reply->status || reply->status == 416)
        take_module(pull, reply);
    else if (reply->status == 404)
        miss(pull, "blob", pull->module.digest);
    else
        put_off(pull, reply, "the registry");
}

static void take_failed_manifest(struct pull *pull, const struct pull_reply *reply)
{
    const char *tag = pull->target.reference.tag;

    if (!reply->status && reply->is_too_large)
        pull_end(pull, PULL_FAILED, REASON_MODULE_INVALID, "has a manifest of more than %zu bytes",
                 MODULE_MANIFEST_MAX);
    else if (pull->step == PULL_STEP_HEAD && reply->status == 405) /* a registry without HEAD */
        pull->step = pull->target.aim == PULL_DIGEST ? PULL_STEP_TAG : PULL_STEP_MANIFEST;
    else if (reply->status == 404)
        miss(pull, "tag or digest", tag ? tag : pull->manifest);
    else
        put_off(pull, reply, "the registry");
}

/* A reply that says for good that a signature is not there is no failure. */
static void take_failed_signature(struct pull *pull, const struct pull_reply *reply)
{
    int status = reply->status;
    bool is_transient =
        status ? status == 429 || status == 408 || status >= 500 : !reply->is_too_large;

    if (is_transient)
        put_off(pull, reply, "the registry");
    else
        pull_signatures_take(pull, reply);
}

/* Replies that are no refusal, and not 2xx. */
static void take_failure(struct pull *pull, const struct pull_reply *reply)
{
    if (is_about_signatures(pull->step))
        take_failed_signature(pull, reply);
    else if (pull->step == PULL_STEP_BLOB)
        take_failed_module(pull, reply);
    else
        take_failed_manifest(pull, reply);
}

void pull_take(struct pull *pull, int64_t now_ms, const struct pull_reply *reply)
{
    const char *scope =
        arena_printf(pull->arena, "repository:%s:pull", pull->target.reference.path);

    if (pull->is_asking_token) {
        take_token(pull, now_ms, reply);
        return;
    }
    if (reply->status == 401 || reply->status == 403) {
        if (!authorization_refused(&pull->authorization, pull->arena, reply->headers, scope))
            forbid(pull, reply->status);
        return;
    }
    if (reply->status / 100 != 2) {
        take_failure(pull, reply);
        return;
    }
    authorization_accepted(&pull->authorization);
    take_step(pull, reply);
}
