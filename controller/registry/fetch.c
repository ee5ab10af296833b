#include "controller/registry/fetch.h"

#include <assert.h>
#include <string.h>

#include "common/base/file.h"
#include "common/runtime/metrics.h"

#define MAX_DOCKER_CONFIG ((size_t)1 << 20)

static struct metric pulls_total = {
    .type = METRIC_COUNTER,
    .name = "propeller_module_pulls_total",
    .help = "Modules that were asked for at a registry, by what became of it.",
    .labels = { "result" },
};
static struct metric hits_total = {
    .type = METRIC_COUNTER,
    .name = "propeller_module_cache_hits_total",
    .help = "Modules that were in the folder when a Task asked for them.",
};

static void put_off(struct fetch_result *ret, const char *message)
{
    ret->outcome = FETCH_LATER;
    ret->reason = REASON_REGISTRY_UNAVAILABLE;
    ret->message = message;
}

/* --- credentials ------------------------------------------------------------------------------ */

static void miss_secret(struct arena *arena, const struct kube_name *name, const char *problem,
                        struct fetch_result *ret)
{
    ret->outcome = FETCH_FAILED;
    ret->reason = REASON_PULL_SECRET_MISSING;
    ret->message =
        arena_printf(arena, "Secret '%s' of spec.imagePullSecrets %s", name->name, problem);
}

/* From memory or the API server. false: ret says why not. */
static bool read_secret(const struct fetch_means *means, struct arena *arena,
                        const struct kube_name *name, const cJSON **ret_secret,
                        struct fetch_result *ret)
{
    int64_t now_ms = clock_monotonic_ms(means->pull.clock);
    char key[KUBE_KEY_LEN];
    const char *text = NULL;
    struct error err = { 0 };

    (void)kube_name_key(name, key);
    if (memory_get(means->secrets, arena, key, now_ms, &text) &&
        json_parse_own(arena, text, strlen(text), ret_secret, &err) == 0)
        return true;

    int r = means->host->read_secret(means->host->ctx, arena, name, ret_secret, &err);
    if (r == 0) {
        memory_put(means->secrets, key, json_text(arena, *ret_secret, NULL), now_ms);
        return true;
    }
    if (r == -ERROR_NOT_FOUND)
        miss_secret(arena, name, "does not exist", ret);
    else if (r == -ERROR_FORBIDDEN)
        miss_secret(arena, name, "may not be read: apply rbac/module-pull-secrets in its namespace",
                    ret);
    else
        put_off(ret,
                arena_printf(arena, "Secret '%s' cannot be read: %s", name->name, err.message));
    return false;
}

static bool read_secrets(const struct fetch_means *means, struct arena *arena,
                         const struct fetch_order *order, const struct pull_target *target,
                         struct registry_logins *logins, struct fetch_result *ret)
{
    for (size_t i = 0; i < order->secrets.len; i++) {
        const cJSON *secret = NULL;
        struct kube_name name;
        struct error err = { 0 };

        if (!kube_name_set(&name, order->ns, order->secrets.items[i])) {
            miss_secret(arena, &name, "has a name that is too long", ret);
            return false;
        }
        if (!read_secret(means, arena, &name, &secret, ret))
            return false;
        if (registry_logins_add_secret(arena, secret, target->registry->asked,
                                       target->reference.path, logins, &err) < 0) {
            miss_secret(arena, &name, err.message, ret);
            return false;
        }
    }
    return true;
}

/* The Task's, then the operator's. false: ret says why not. */
static bool read_logins(const struct fetch_means *means, struct arena *arena,
                        const struct fetch_order *order, struct pull_target *target,
                        struct fetch_result *ret)
{
    const char *path = means->settings->docker_config, *text;
    struct error err = { 0 };
    int r;

    if (!read_secrets(means, arena, order, target, &target->logins, ret))
        return false;
    if (!path)
        return true;
    r = file_read_text(arena, path, MAX_DOCKER_CONFIG, NULL, &text, &err);
    if (r == 0)
        r = registry_logins_add(arena, text, strlen(text), false, target->registry->asked,
                                target->reference.path, &target->logins, &err);
    if (r < 0)
        put_off(ret, arena_printf(arena, "--module-docker-config: %s", err.message));
    return r == 0;
}

/* --- memory ----------------------------------------------------------------------------------- */

static const char *reader_key(struct arena *arena, const char *login,
                              const struct module_reference *reference)
{
    char hex[SHA256_HEX_LEN];
    const char *text =
        arena_printf(arena, "%s\n%s@%s", login, reference->repository, reference->digest);

    return arena_strdup(arena, sha256_hex(text, strlen(text), hex));
}

/* Whether the repository gave this manifest without credentials, or with one of these. */
static bool may_read(const struct fetch_means *means, struct arena *arena,
                     const struct pull_target *target, const struct module_record *record)
{
    int64_t now_ms = clock_monotonic_ms(means->pull.clock);

    if (str_equal(record->public_in, target->reference.repository))
        return true;
    for (size_t i = 0; i < target->logins.len; i++) {
        if (memory_get(means->readers, arena,
                       reader_key(arena, target->logins.items[i], &target->reference), now_ms,
                       NULL))
            return true;
    }
    return false;
}

static bool is_signed(const struct pull_target *target, const struct module_record *record)
{
    return !target->keys ||
           (record->signed_by && public_keys_have(target->keys, record->signed_by));
}

/* Pins the module of a record. false: it is not there. */
static bool take_record(const struct fetch_means *means, const struct pull_target *target,
                        const struct module_record *record, bool may_hash, struct fetch_result *ret)
{
    if (record->bytes > target->max_bytes ||
        !module_cache_pin(means->pull.cache, record->layer, may_hash, &ret->bytes))
        return false;
    ret->outcome = FETCH_DONE;
    ret->manifest = target->reference.digest;
    ret->digest = record->layer;
    ret->signed_by = record->signed_by;
    metric_add(&hits_total, 1, NULL);
    return true;
}

/* --- the pull --------------------------------------------------------------------------------- */

static void make_target(const struct fetch_means *means, struct arena *arena,
                        const struct fetch_order *order, const struct public_keys *keys,
                        struct pull_target *ret)
{
    *ret = (struct pull_target){ .max_bytes = means->settings->max_bytes, .keys = keys };

    int r = module_reference_parse(arena, order->reference, &ret->reference, NULL);
    assert(r == 0); /* wasm_modules_want has parsed it */
    (void)r;
    ret->registry = module_registry_find(&means->registries, &ret->reference);
    if (order->manifest) {
        ret->reference.digest = order->manifest;
        ret->reference.tag = NULL;
    }
}

static void take_outcome(const struct fetch_means *means, const struct pull *pull, int r,
                         const struct error *err, struct arena *arena, struct fetch_result *ret)
{
    if (r == -ERROR_CANCELED) {
        ret->outcome = FETCH_CANCELED;
        return;
    }
    if (r < 0) {
        ret->outcome = FETCH_NO_ROOM;
        ret->reason = REASON_CACHE_FULL;
        ret->message = arena_strdup(arena, err->message);
        ret->bytes = pull->module.bytes;
        ret->is_disk_full = module_cache_has_room(means->pull.cache, ret->bytes);
        return;
    }
    ret->outcome = pull->outcome == PULL_DONE    ? FETCH_DONE
                   : pull->outcome == PULL_LATER ? FETCH_LATER
                                                 : FETCH_FAILED;
    ret->reason = pull->reason;
    ret->message = pull->message;
    ret->retry_after_s = pull->retry_after_s;
    ret->manifest = pull->manifest;
    ret->signed_by = pull->signed_by;
}

/* Runs a pull; one that brought something invalid is run once more, without what is remembered. */
static void pull_with_repeat(const struct fetch_means *means, struct arena *arena,
                             const struct pull_target *target, struct pull *pull,
                             struct fetch_result *ret)
{
    struct pull_target again = *target;
    struct error err = { 0 };

    pull_begin(pull, arena, target);
    int r = pull_carry_out(pull, &means->pull, &ret->was_pulled, &err);
    if (r == 0 && pull->outcome == PULL_FAILED && pull->reason == REASON_MODULE_INVALID) {
        again.aim = again.aim == PULL_KNOWN ? PULL_MODULE : again.aim;
        pull_begin(pull, arena, &again);
        r = pull_carry_out(pull, &means->pull, &ret->was_pulled, &err);
    }
    take_outcome(means, pull, r, &err, arena, ret);
}

static void count_pull(const struct fetch_result *result)
{
    if (result->outcome == FETCH_CANCELED)
        return;
    metric_add(&pulls_total, 1,
               result->outcome == FETCH_DONE ? "success" : reason_text(result->reason), NULL);
}

/* Writes down who was given the manifest, and which module it has. */
static void remember(const struct fetch_means *means, struct arena *arena, const struct pull *pull,
                     struct module_record record)
{
    const char *login = authorization_login(&pull->authorization);
    const struct module_reference *reference = &pull->target.reference;

    if (login)
        memory_put(means->readers, reader_key(arena, login, reference), NULL,
                   clock_monotonic_ms(means->pull.clock));
    else
        record.public_in = reference->repository;
    module_cache_remember(means->pull.cache, reference->digest, &record);
}

/* record: what is remembered of the manifest, and still holds; NULL: nothing. */
static void fetch_module(const struct fetch_means *means, struct arena *arena,
                         struct pull_target *target, const struct module_record *record,
                         struct fetch_result *ret)
{
    struct pull pull;

    target->aim = PULL_MODULE;
    if (record) {
        target->aim = PULL_KNOWN;
        target->known = (struct module_choice){ .digest = record->layer, .bytes = record->bytes };
        target->known_signer = record->signed_by;
    }
    pull_with_repeat(means, arena, target, &pull, ret);
    count_pull(ret);
    if (ret->outcome != FETCH_DONE)
        return;
    ret->digest = pull.module.digest;
    ret->bytes = pull.module.bytes;
    remember(means, arena, &pull,
             (struct module_record){
                 .layer = ret->digest,
                 .bytes = ret->bytes,
                 .public_in = record ? record->public_in : NULL,
                 .signed_by = ret->signed_by,
             });
    if (!ret->was_pulled)
        metric_add(&hits_total, 1, NULL);
}

void fetch_carry_out(const struct fetch_means *means, struct arena *arena,
                     const struct fetch_order *order, const struct public_keys *keys,
                     struct fetch_result *ret)
{
    struct pull_target target;
    struct module_record record;
    struct pull pull;

    *ret = (struct fetch_result){ 0 };
    make_target(means, arena, order, keys, &target);
    if (!read_logins(means, arena, order, &target, ret))
        return;
    if (!target.reference.digest) {
        target.aim = PULL_DIGEST;
        pull_with_repeat(means, arena, &target, &pull, ret);
        return;
    }

    bool is_known = module_cache_record(means->pull.cache, arena, target.reference.digest, &record);

    if (is_known && (!is_signed(&target, &record) || record.bytes > target.max_bytes))
        is_known = false;
    if (is_known && may_read(means, arena, &target, &record) &&
        take_record(means, &target, &record, true, ret))
        return;
    fetch_module(means, arena, &target, is_known ? &record : NULL, ret);
}

bool fetch_public(const struct fetch_means *means, struct arena *arena,
                  const struct fetch_order *order, const struct public_keys *keys,
                  struct fetch_result *ret)
{
    struct pull_target target;
    struct module_record record;

    *ret = (struct fetch_result){ 0 };
    if (!order->manifest ||
        !module_cache_record(means->pull.cache, arena, order->manifest, &record))
        return false;
    make_target(means, arena, order, keys, &target);
    return is_signed(&target, &record) &&
           str_equal(record.public_in, target.reference.repository) &&
           take_record(means, &target, &record, false, ret);
}

void fetch_result_copy(struct arena *arena, const struct fetch_result *from,
                       struct fetch_result *ret)
{
    *ret = *from;
    ret->message = arena_strdup(arena, from->message);
    ret->manifest = arena_strdup(arena, from->manifest);
    ret->digest = arena_strdup(arena, from->digest);
    ret->signed_by = arena_strdup(arena, from->signed_by);
}
