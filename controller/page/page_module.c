/* The page as a module of the process: a part without a kind, which looks at the caches of the others. */
#include "common/base/str.h"
#include "controller/device/fleet_brake.h"
#include "controller/page/page.h"
#include "controller/shared/device_plane.h"

extern const struct module PAGE_MODULE;

struct page_flags {
    const char *address;
    struct str_list hosts;
};

#define FLAG(flag, kind, member)                                                                   \
    .name = (flag), .type = (kind), .offset = offsetof(struct page_flags, member)
static const struct option FLAG_TABLE[] = {
    { FLAG("page-bind-address", OPTION_STRING, address), .value_name = "ADDRESS", .fallback = "0",
      .help = "address of the fleet page for browsers; 0 turns it off" },
    { FLAG("page-host", OPTION_STRINGS, hosts), .value_name = "NAME",
      .help = "further name under which browsers may ask for the fleet page" },
};

struct page_module {
    const struct module_host *host;
    const struct page_flags *flags;
    struct fleet_brake *brake;
    struct bridge *bridge; /* NULL: no MQTT */
    struct fleet *fleet;
    struct viewers *viewers;
    struct feeds *feeds;
    struct page *page;
};

static void count_kind(const struct module_host *host, struct arena *arena,
                       const struct module *module, const char *ns, cJSON *ret)
{
    const struct module_census *census = module->census;
    struct store *store = informer_store(module_host_informer(host, module->kind));
    size_t *numbers = arena_array(arena, size_t, census->classes);
    cJSON *phases = json_set_object(ret, module->kind->plural);

    store_class_counts(store, ns, numbers);
    for (size_t i = 0; i < census->classes; i++) {
        const char *phase = census->phase_of(i);
        int64_t before = json_int(json_get(phases, phase), 0);

        json_remove(phases, phase);
        json_set_int(phases, phase, before + (int64_t)numbers[i]);
    }
}

/* The caches of other kinds exist only with a flag. A feed checks the rights of the kinds of the page alone. */
static bool is_on_the_page(const struct kube_kind *kind)
{
    size_t i = 0;

    while (i < PAGE_LISTS && PAGE_LIST[i].kind != kind)
        i++;
    return i < PAGE_LISTS;
}

/* A list of phases with numbers for each kind, and the state of this process. */
static void count(void *ctx, struct arena *arena, const char *ns, cJSON *ret)
{
    const struct page_module *self = ctx;
    struct module_host *host = (struct module_host *)(uintptr_t)self->host;
    struct timeline_view now;
    char why[200], holder[ELECTOR_HOLDER_LEN];

    int64_t now_us = timeline_now_us(host->timeline, &now);
    cJSON *kinds = json_set_object(ret, "kinds");
    for (size_t i = 0; MODULES[i]; i++) {
        if (MODULES[i]->census && is_on_the_page(MODULES[i]->kind))
            count_kind(host, arena, MODULES[i], ns, kinds);
    }
    json_set_bool(ret, "leads", module_host_leads(host));
    if (host->elector) {
        elector_holder(host->elector, holder);
        json_set_string(ret, "leader", holder);
    }
    json_set_bool(ret, "mqtt", self->bridge != NULL);
    json_set_bool(ret, "broker", self->bridge && bridge_connected(self->bridge, why, sizeof(why)));
    json_set_bool(ret, "brake",
                  fleet_brake_state(self->brake, timeline_steady_us(&now, now_us, now_us),
                                    clock_monotonic_ms(host->clock))
                      .plan.holds);
    if (!ns) /* devices without a Proplet are in no namespace */
        json_set_int(ret, "strangers",
                     (int64_t)strangers_count(fleet_strangers(self->fleet),
                                              clock_monotonic_ms(host->clock)));
}

static int start(void *ctx, struct error *err)
{
    struct page_module *self = ctx;
    struct page_options options = {
        .address = self->flags->address,
        .hosts = self->flags->hosts.items,
        .host_count = self->flags->hosts.len,
        .clock = self->host->clock,
        .viewers = self->viewers,
        .feeds = self->feeds,
        .fleet = self->fleet,
    };

    for (size_t i = 0; i < PAGE_LISTS; i++)
        options.informers[i] = module_host_informer(self->host, PAGE_LIST[i].kind);
    return page_start(&options, &self->page, err);
}

/* A viewer's request that hangs does not hold up the stop. */
static void stop(void *ctx)
{
    viewers_cancel(((struct page_module *)ctx)->viewers);
}

static void join(void *ctx)
{
    struct page_module *self = ctx;

    page_stop(self->page);
    self->page = NULL;
}

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    const struct device_plane *plane = device_plane_of(host);
    const struct page_flags *flags = module_host_flags(host, &PAGE_MODULE);
    struct page_module *self = arena_new(host->arena, struct page_module);
    struct feeds_options options = {
        .fleet = plane->fleet, .count = count, .ctx = self, .clock = host->clock
    };
    const struct runnable runnable = { .name = "page",
                                       .group = RUN_SERVERS,
                                       .self = self,
                                       .start = start,
                                       .stop = stop,
                                       .join = join };

    *self = (struct page_module){ .host = host,
                                  .flags = flags,
                                  .brake = plane->brake,
                                  .bridge = plane->bridge,
                                  .fleet = plane->fleet };
    *ret = self;
    if (str_is_empty(flags->address) || str_equal(flags->address, "0"))
        return 0;
    for (size_t i = 0; i < PAGE_LISTS; i++)
        options.informers[i] = module_host_informer(host, PAGE_LIST[i].kind);
    self->viewers = viewers_create(host->config, host->clock);
    self->feeds = feeds_create(&options);
    manager_add(host->manager, &runnable);
    return 0;
}

static void destroy(void *ctx)
{
    struct page_module *self = ctx;

    feeds_destroy(self->feeds);
    viewers_destroy(self->viewers);
}

static const struct module_flags FLAGS = { FLAG_TABLE, ARRAY_LEN(FLAG_TABLE),
                                           sizeof(struct page_flags), NULL };

const struct module PAGE_MODULE = { .flags = &FLAGS, .create = create, .destroy = destroy };
