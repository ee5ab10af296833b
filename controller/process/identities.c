#include "controller/process/identities.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/api/names.h"
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/runtime/service_account.h"

#define COMPONENT API_GROUP "/controller"
#define PROCESS_NAME "propeller-controller"

struct member {
    const char *name;
    struct service_account *account; /* NULL, like config: the process's own */
    struct kube_config *config;
    struct kube_client *client;
    struct events *events; /* NULL: it writes none */
};

struct identities {
    struct identities_options options;
    struct member members[IDENTITIES_MAX];
    size_t count; /* not separate: 1, which all are */
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

struct identities *identities_create(const struct identities_options *options)
{
    struct identities *identities = xcalloc(1, sizeof(*identities));

    identities->options = *options;
    return identities;
}

int identities_add(struct identities *identities, const char *name, bool writes_events,
                   struct error *err)
{
    const struct identities_options *options = &identities->options;
    char account[64] = PROCESS_NAME; /* what Events name as their reportingInstance */
    int r = 0;

    if (!options->separate && identities->count)
        return 0;
    assert(identities->count < IDENTITIES_MAX);

    struct member *member = &identities->members[identities->count++];
    member->name = name;
    if (options->separate) {
        snprintf(account, sizeof(account), "%s-controller", name);
        r = make_account(member, options, account, err);
    }
    if (r < 0)
        return r;
    member->client =
        kube_client_create(member->config ? member->config : options->config, options->timeout_ms);
    kube_client_set_guard(member->client, options->may_write, options->may_write_ctx);
    kube_client_set_limit(member->client, options->limit);
    kube_client_set_observer(member->client, options->observer, options->observer_ctx);
    if (writes_events)
        member->events = events_create(member->client, COMPONENT, account, options->clock);
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

static const struct member *member_of(const struct identities *identities, const char *name)
{
    size_t i = 0;

    while (identities->options.separate && i < identities->count &&
           !str_equal(identities->members[i].name, name))
        i++;
    assert(i < identities->count);
    return &identities->members[i];
}

struct kube_client *identities_client(const struct identities *identities, const char *name)
{
    return member_of(identities, name)->client;
}

struct kube_config *identities_config(const struct identities *identities, const char *name)
{
    const struct member *member = member_of(identities, name);

    return member->config ? member->config : identities->options.config;
}

struct events *identities_events(const struct identities *identities, const char *name)
{
    return member_of(identities, name)->events;
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
