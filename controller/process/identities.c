#include "controller/process/identities.h"

#include <stdlib.h>

#include "common/api/names.h"
#include "common/base/alloc.h"
#include "common/runtime/service_account.h"

#define COMPONENT API_GROUP "/controller"

/* ServiceAccounts of rbac/, and what Events name as their reportingInstance. */
static const char *const NAMES[IDENTITY_COUNT] = {
    [IDENTITY_TASK] = "task-controller",
    [IDENTITY_PROPLET] = "proplet-controller",
    [IDENTITY_CERTIFICATE] = "certificate-controller",
    [IDENTITY_JOB] = "propellerjob-controller",
    [IDENTITY_FEDERATED] = "federatedjob-controller",
    [IDENTITY_ROUND] = "traininground-controller",
};
#define PROCESS_NAME "propeller-controller"

struct member {
    struct service_account *account; /* NULL, like config: the process's own */
    struct kube_config *config;
    struct kube_client *client;
    struct events *events; /* NULL: it writes none */
};

struct identities {
    struct kube_config *config; /* of the process; borrowed */
    struct member members[IDENTITY_COUNT];
    size_t count; /* 1: all are one */
};

static int make_account(struct member *member, const struct identities_options *options,
                        const char *name, struct error *err)
{
    struct kube_name account = { 0 };

    if (!kube_name_set(&account, kube_config_namespace(options->config), name))
        return error_set(err, ERROR_INVALID, "namespace '%s' is too long",
                         kube_config_namespace(options->config));
    member->account = service_account_create(options->client, &account, options->clock);

    const struct kube_token_source tokens = service_account_tokens(member->account);
    int r = kube_config_create_as(options->config, &tokens, &member->config, err);
    return r < 0 ? error_wrap(err, "--use-service-account-credentials") : 0;
}

static void make_member(struct member *member, const struct identities_options *options,
                        const char *name, bool has_events)
{
    struct kube_config *config = member->config ? member->config : options->config;

    member->client = kube_client_create(config, options->timeout_ms);
    kube_client_set_guard(member->client, options->may_write, options->may_write_ctx);
    kube_client_set_limit(member->client, options->limit);
    kube_client_set_observer(member->client, options->observer, options->observer_ctx);
    if (has_events)
        member->events = events_create(member->client, COMPONENT, name, options->clock);
}

int identities_create(const struct identities_options *options, struct identities **ret,
                      struct error *err)
{
    struct identities *identities = xcalloc(1, sizeof(*identities));

    size_t count = options->separate ? IDENTITY_COUNT : 1;

    identities->config = options->config;
    identities->count = count;
    for (size_t i = 0; i < count; i++) {
        struct member *member = &identities->members[i];
        const char *name = options->separate ? NAMES[i] : PROCESS_NAME;
        int r = options->separate ? make_account(member, options, name, err) : 0;

        if (r < 0) {
            identities_destroy(identities);
            return r;
        }
        make_member(member, options, name, i != IDENTITY_CERTIFICATE);
    }
    *ret = identities;
    return 0;
}

void identities_destroy(struct identities *identities)
{
    if (!identities)
        return;
    for (size_t i = 0; i < identities->count; i++) {
        struct member *member = &identities->members[i];

        events_destroy(member->events);
        kube_client_destroy(member->client);
        kube_config_destroy(member->config);
        service_account_destroy(member->account);
    }
    free(identities);
}

static const struct member *member_of(const struct identities *identities, enum identity identity)
{
    return &identities->members[identities->count == 1 ? 0 : identity];
}

struct kube_client *identities_client(const struct identities *identities, enum identity identity)
{
    return member_of(identities, identity)->client;
}

struct kube_config *identities_config(const struct identities *identities, enum identity identity)
{
    const struct member *member = member_of(identities, identity);

    return member->config ? member->config : identities->config;
}

struct events *identities_events(const struct identities *identities, enum identity identity)
{
    return member_of(identities, identity)->events;
}

int identities_start(struct identities *identities, struct error *err)
{
    for (size_t i = 0; i < identities->count; i++) {
        struct events *events = identities->members[i].events;
        int r = events ? events_start(events, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

void identities_stop(struct identities *identities)
{
    for (size_t i = 0; i < identities->count; i++) {
        if (identities->members[i].events)
            events_stop(identities->members[i].events);
    }
}

void identities_close_idle(struct identities *identities, uint32_t idle_ms)
{
    for (size_t i = 0; i < identities->count; i++)
        kube_client_close_idle(identities->members[i].client, idle_ms);
}

void identities_cancel(struct identities *identities)
{
    for (size_t i = 0; i < identities->count; i++)
        kube_client_cancel(identities->members[i].client);
}
