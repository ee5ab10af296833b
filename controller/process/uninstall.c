#include "controller/process/uninstall.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include "certs/cluster_place.h"
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/finalizer.h"
#include "common/kube/kinds.h"
#include "controller/process/uninstall_plan.h"

#define REQUEST_TIMEOUT_MS 10000
/* Between two looks: less than users notice, and rarely enough for ten thousand objects. */
#define REST_MS 500

#define LABEL_PART_OF "app.kubernetes.io/part-of=propeller"

static const struct kube_kind *const CONFIGURATIONS[] = {
    &KIND_MUTATING_WEBHOOKS,
    &KIND_VALIDATING_WEBHOOKS,
};
/* Objects that make objects of other kinds come before these. */
static const struct kube_kind *const OBJECTS[] = {
    &KIND_ENROLLMENT,   &KIND_FEDERATEDJOB, &KIND_TRAININGROUND,
    &KIND_PROPELLERJOB, &KIND_TASK,         &KIND_PROPLET,
};
/* Secrets are collected together with these, and are left out: no right to read all Secrets is needed. */
static const struct kube_kind *const CHILDREN[] = {
    &KIND_DEPLOYMENT,
    &KIND_STATEFULSET,
    &KIND_JOB,
    &KIND_CONFIGMAP,
};

/* One look, and what it is about at the moment. */
struct looking {
    const struct uninstall *self;
    struct uninstall_times times;
    int64_t begin_ms; /* of the uninstall */
    bool release;
    const struct kube_kind *kind;
    size_t deleted; /* of this kind */
    struct uninstall_look look;
    struct error failure; /* the last one of the look */
    struct arena *arena;  /* of the look */
    const char *
        left; /* one of the objects, "Task 'ns/a'", if it can be with finalizers of others; NULL: none */
    bool left_is_foreign;
};

static void say(const struct uninstall *self, const char *line)
{
    self->say(self->ctx, line);
}

/* Whether another look would follow the one that has this failure. A look at a server that does not answer has many
 * requests, each with its own time limit. */
static bool is_time_left(const struct looking *looking)
{
    int64_t elapsed_ms = clock_monotonic_ms(looking->self->clock) - looking->begin_ms;

    return uninstall_next(&looking->look, &looking->times, elapsed_ms) == UNINSTALL_AGAIN;
}

/* < 0: repeating cannot help, or there is no time for it. Otherwise the failure is kept. */
static int note_failure(struct looking *looking, int r, const struct error *failure,
                        struct error *err)
{
    if (r == 0 || r == -ERROR_NOT_FOUND)
        return 0;
    *err = *failure;
    if (!error_is_transient(failure))
        return r;
    looking->failure = *failure;
    looking->look.failed = true;
    return is_time_left(looking) ? 0 : r;
}

static int release(const struct looking *looking, const cJSON *object, const char *key,
                   struct error *err)
{
    static const char *const OURS[] = { FINALIZER_TASK, FINALIZER_PROPLET };

    for (size_t i = 0; i < ARRAY_LEN(OURS); i++) {
        if (!finalizer_has(object, OURS[i]))
            continue;
        int r = finalizer_remove(looking->self->client, looking->kind, object, OURS[i], err);
        if (r < 0)
            return r;
        const char *left = uninstall_foreign(looking->arena, object);
        say(looking->self, arena_printf(looking->arena, "finalizer removed: %s '%s'%s%s",
                                        looking->kind->kind, key, *left ? ", left: " : "", left));
    }
    return 0;
}

/* A finalizer of others is what a user can do something about. */
static void note_left(struct looking *looking, const cJSON *object, const char *key)
{
    const char *foreign = looking->left_is_foreign ? "" : uninstall_foreign(looking->arena, object);

    if (looking->left && !*foreign)
        return;
    looking->left = arena_printf(looking->arena, "%s '%s'%s%s", looking->kind->kind, key,
                                 *foreign ? " with finalizers of others: " : "", foreign);
    looking->left_is_foreign = *foreign != '\0';
}

static int look_at_object(void *ctx, const cJSON *object, struct error *err)
{
    struct looking *looking = ctx;
    struct kube_name name;
    struct error failure = { 0 };
    char key[KUBE_KEY_LEN];
    int r = 0;

    if (!kube_name_of(object, &name))
        return 0; /* no API server stores such a name */
    kube_name_key(&name, key);
    looking->look.objects++;
    switch (uninstall_action(object, looking->release)) {
    case UNINSTALL_DELETE:
        r = kube_delete(looking->self->client, looking->kind, &name, kube_uid(object), NULL,
                        &failure);
        looking->deleted += r == 0;
        break;
    case UNINSTALL_RELEASE:
        r = release(looking, object, key, &failure);
        looking->look.released += r == 0;
        break;
    case UNINSTALL_WAIT:
        break;
    }
    note_left(looking, object, key);
    return note_failure(looking, r, &failure, err);
}

static int look_at_child(void *ctx, const cJSON *object, struct error *err UNUSED)
{
    struct looking *looking = ctx;

    looking->look.children += uninstall_is_child(object);
    return 0;
}

/* Of all namespaces, or of each one. A kind that is not there has no objects. */
static int look_at_kind(struct looking *looking, const struct kube_kind *kind, const char *selector,
                        kube_item_fn *item, struct error *err)
{
    const struct str_list *namespaces = &looking->self->namespaces;
    size_t count = namespaces->len ? namespaces->len : 1;

    looking->kind = kind;
    looking->deleted = 0;
    for (size_t i = 0; i < count; i++) {
        const struct kube_list_options options = {
            .ns = namespaces->len ? namespaces->items[i] : NULL,
            .label_selector = selector,
            .metadata_only = true,
        };
        struct error failure = { 0 };
        int r = kube_list(looking->self->client, kind, &options, item, looking, &failure);

        r = note_failure(looking, r, &failure, err);
        if (r < 0)
            return r;
    }
    if (looking->deleted)
        say(looking->self,
            arena_printf(looking->arena, "%s: %zu deleted", kind->plural, looking->deleted));
    return 0;
}

/* kind and name are of the cluster. */
static int remove_configuration(struct looking *looking, const struct kube_kind *kind,
                                struct error *err)
{
    const char *name = looking->self->configuration;
    struct kube_name key;
    struct error failure = { 0 };

    if (!kube_name_set(&key, "", name))
        return error_set(err, ERROR_INVALID, "--webhook-configuration: '%.64s' is too long", name);
    int r = kube_delete(looking->self->client, kind, &key, NULL, NULL, &failure);

    if (r == 0)
        say(looking->self, arena_printf(looking->arena, "%s '%s' deleted", kind->kind, name));
    return note_failure(looking, r, &failure, err);
}

static int remove_secret(void *ctx, const cJSON *secret, struct error *err)
{
    struct looking *looking = ctx;
    struct kube_name name;
    struct error failure = { 0 };

    if (!kube_name_of(secret, &name) ||
        (!str_equal(name.name, CERT_SECRET_CA) && !str_equal(name.name, CERT_SECRET_LEAF)))
        return 0;
    int r =
        kube_delete(looking->self->client, &KIND_SECRET, &name, kube_uid(secret), NULL, &failure);

    return note_failure(looking, r, &failure, err);
}

/* Those that the controller made: a Secret without the label is of others. Rights to list are by name. */
static int remove_secrets(struct looking *looking, struct error *err)
{
    static const char *const FIELDS[] = { "metadata.name=" CERT_SECRET_CA,
                                          "metadata.name=" CERT_SECRET_LEAF };
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(FIELDS) && r == 0; i++) {
        const struct kube_list_options options = { .ns = looking->self->webhook_ns,
                                                   .label_selector = LABEL_PART_OF,
                                                   .field_selector = FIELDS[i],
                                                   .metadata_only = true };
        struct error failure = { 0 };

        r = kube_list(looking->self->client, &KIND_SECRET, &options, remove_secret, looking,
                      &failure);
        r = note_failure(looking, r, &failure, err);
    }
    return r;
}

static int look(struct looking *looking, struct error *err)
{
    bool is_of_cluster = !looking->self->namespaces.len;
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(CONFIGURATIONS) && is_of_cluster && r == 0; i++)
        r = remove_configuration(looking, CONFIGURATIONS[i], err);
    for (size_t i = 0; i < ARRAY_LEN(OBJECTS) && r == 0; i++)
        r = look_at_kind(looking, OBJECTS[i], NULL, look_at_object, err);
    if (r < 0 || looking->look.objects || looking->look.failed)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(CHILDREN) && r == 0; i++)
        r = look_at_kind(looking, CHILDREN[i], LABEL_MANAGED_BY "=" LABEL_MANAGED_BY_VALUE,
                         look_at_child, err);
    return r < 0 || !is_of_cluster ? r : remove_secrets(looking, err);
}

static int fail_over_time(const struct looking *looking, struct error *err)
{
    long long seconds = (long long)(looking->self->timeout_ms / 1000);

    if (looking->look.failed) {
        *err = looking->failure;
        return error_wrap(err, "not uninstalled within %lld s", seconds);
    }
    return error_set(err, ERROR_TIMEOUT, "objects are left after %lld s: %zu, such as %s", seconds,
                     looking->look.objects, looking->left);
}

/* Says how many objects are left, when that changes. */
static void report(const struct looking *looking, size_t objects_before)
{
    if (looking->look.objects != objects_before)
        say(looking->self,
            arena_printf(looking->arena, "objects left: %zu", looking->look.objects));
}

int uninstall_run(const struct uninstall *self, struct error *err)
{
    const struct uninstall_times times = uninstall_times(self->timeout_ms);
    int64_t begin_ms = clock_monotonic_ms(self->clock);
    size_t objects = 0;

    for (;;) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        int64_t elapsed_ms = clock_monotonic_ms(self->clock) - begin_ms;
        struct looking looking = { .self = self,
                                   .times = times,
                                   .begin_ms = begin_ms,
                                   .arena = arena,
                                   .release = elapsed_ms >= times.release_ms };
        int r = look(&looking, err);

        if (r < 0)
            return error_is_transient(err) ? fail_over_time(&looking, err) : r;
        report(&looking, objects);
        objects = looking.look.objects;
        switch (uninstall_next(&looking.look, &times, elapsed_ms)) {
        case UNINSTALL_DONE:
            return 0;
        case UNINSTALL_FAILED:
            return fail_over_time(&looking, err);
        case UNINSTALL_TO_COLLECTOR:
            say(self, "left to the garbage collector: what was made for Proplets and Tasks");
            return 0;
        case UNINSTALL_AGAIN:
            self->rest(self->ctx, REST_MS);
        }
    }
}

static void print_line(void *ctx UNUSED, const char *line)
{
    printf("%s\n", line);
    (void)fflush(stdout);
}

static void rest(void *ctx UNUSED, int64_t ms)
{
    (void)poll(NULL, 0, (int)ms);
}

int uninstall_by_settings(const struct controller_settings *settings, struct error *err)
{
    static const struct kube_config_person PERSON = { .context = NULL };
    const struct kube_config_options options = { .path = settings->kubeconfig, .person = &PERSON };
    CLEANUP(kube_config_destroyp) struct kube_config *config = NULL;
    int r = kube_config_load_with(&options, &config, err);

    if (r < 0)
        return r;
    (void)signal(SIGPIPE, SIG_IGN); /* a server that hangs up is an error of that connection */
    struct kube_client *client = kube_client_create(config, REQUEST_TIMEOUT_MS);
    const struct uninstall uninstall = {
        .client = client,
        .clock = &CLOCK_SYSTEM,
        .namespaces = settings->namespaces,
        .configuration = settings->certificates.configuration,
        .webhook_ns = str_is_empty(settings->certificates.ns) ? kube_config_namespace(config)
                                                              : settings->certificates.ns,
        .timeout_ms = settings->uninstall_timeout_ms,
        .say = print_line,
        .rest = rest,
    };
    r = uninstall_run(&uninstall, err);
    kube_client_destroy(client);
    return r;
}
