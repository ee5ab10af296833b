/* The coordinator as a part of the process. */
#include "common/base/str.h"
#include "controller/coordinator/coordinator.h"
#include "controller/module/module.h"
#include "controller/shared/options.h"

extern const struct module COORDINATOR_MODULE;

struct coordinator_flags {
    const char *address;
};

static const struct option FLAG_TABLE[] = {
    { .name = "coordinator-bind-address",
      .type = OPTION_STRING,
      .offset = offsetof(struct coordinator_flags, address),
      .value_name = "ADDRESS",
      .help = "address on which devices send updates and checkpoints and fetch models; "
              "requires --coordinator-url" },
};

static int check(const struct controller_settings *settings, const void *own, struct error *err)
{
    const struct coordinator_flags *flags = own;
    const char *url = settings->coordinator_url;

    if (str_is_empty(flags->address) != str_is_empty(url))
        return error_set(err, ERROR_INVALID,
                         "--coordinator-bind-address and --coordinator-url: give both or neither");
    if (str_is_empty(url))
        return 0;
    if (!controller_url_is_usable(url))
        return error_set(err, ERROR_INVALID,
                         "--coordinator-url: must be http://HOST[:PORT] or https://HOST[:PORT] "
                         "without a slash at its end, of at most %d characters",
                         CONTROLLER_MAX_URL);
    return 0;
}

static const struct module_flags FLAGS = { FLAG_TABLE, ARRAY_LEN(FLAG_TABLE),
                                           sizeof(struct coordinator_flags), check };

static int start(void *coordinator, struct error *err)
{
    int r = coordinator_start(coordinator, err);

    return r < 0 ? error_wrap(err, "--coordinator-bind-address") : 0;
}

static void join(void *coordinator)
{
    coordinator_stop(coordinator);
}

/* Its server runs on standbys, too: they answer that they do not lead. */
static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    const struct coordinator_flags *flags = module_host_flags(host, &COORDINATOR_MODULE);
    const struct coordinator_options options = { .address = flags->address,
                                                 .leads = module_host_leads,
                                                 .leads_ctx = host };

    *ret = NULL;
    if (str_is_empty(flags->address))
        return 0;
    *ret = coordinator_create(&options);

    const struct runnable runnable = {
        .name = "coordinator", .group = RUN_SERVERS, .self = *ret, .start = start, .join = join
    };
    manager_add(host->manager, &runnable);
    return 0;
}

static void destroy(void *coordinator)
{
    coordinator_destroy(coordinator);
}

const struct module COORDINATOR_MODULE = { .flags = &FLAGS, .create = create, .destroy = destroy };

struct coordinator *coordinator_of(const struct module_host *host)
{
    return module_host_self(host, &COORDINATOR_MODULE);
}
