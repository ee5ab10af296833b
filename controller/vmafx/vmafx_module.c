/* The flags of the extension, and the parts that its kinds share. */
#include <string.h>

#include "common/base/str.h"
#include "controller/shared/options.h"
#include "controller/vmafx/vmafx.h"

#define FLAG(flag, kind, member)                                                                   \
    .name = (flag), .type = (kind), .offset = offsetof(struct vmafx_flags, member)
static const struct option FLAG_TABLE[] = {
    { FLAG("enable-vmafx", OPTION_BOOL, is_enabled), .fallback = "false",
      .help = "reconcile the kinds of vmafx.dev; requires crds/vmafx and rbac/vmafx" },
    { FLAG("vmafx-controller-grpc-address", OPTION_STRING, grpc_address), .value_name = "ADDRESS",
      .fallback = "vmafx-controller.{namespace}.svc.cluster.local:9090",
      .environment = "VMAFX_CONTROLLER_GRPC_ADDR",
      .help =
          "gRPC address of the VMAFX controller, HOST:PORT or https://HOST:PORT; {namespace} is "
          "that of the object" },
    { FLAG("vmafx-controller-http-address", OPTION_STRING, http_address), .value_name = "URL",
      .fallback = "http://vmafx-controller.{namespace}.svc.cluster.local:8080",
      .environment = "VMAFX_CONTROLLER_HTTP_ADDR",
      .help = "URL of the VMAFX controller, whose /healthz is probed; {namespace} is that of the "
              "object" },
    { FLAG("vmafx-trainer-url", OPTION_STRING, trainer_url), .value_name = "URL",
      .fallback = "http://vmafx-trainer-{name}.{namespace}.svc.cluster.local:9091/status",
      .help = "URL of the status of a VMAFX trainer; {name} and {namespace} are those of the "
              "VmafxModelTraining" },
    { FLAG("vmafx-ca-file", OPTION_STRING, ca_file), .value_name = "FILE",
      .help = "PEM file of the authorities that are trusted for VMAFX controllers and trainers" },
};

static int check_url(const char *flag, const char *url, struct error *err)
{
    if (!controller_url_is_usable(url))
        return error_set(
            err, ERROR_INVALID,
            "--%s: must begin with http:// or https://, not end with a slash, and have "
            "at most %d characters",
            flag, CONTROLLER_MAX_URL);
    return 0;
}

static int check(const struct controller_settings *settings UNUSED, const void *own,
                 struct error *err)
{
    const struct vmafx_flags *flags = own;
    const char *host = flags->grpc_address;

    if (str_has_prefix(host, "https://"))
        host += strlen("https://");
    if (!*host || strchr(host, '/') || strlen(host) > CONTROLLER_MAX_URL)
        return error_set(err, ERROR_INVALID,
                         "--vmafx-controller-grpc-address: must be HOST:PORT or https://HOST:PORT, "
                         "of at most %d characters",
                         CONTROLLER_MAX_URL);
    int r = check_url("vmafx-controller-http-address", flags->http_address, err);
    return r < 0 ? r : check_url("vmafx-trainer-url", flags->trainer_url, err);
}

const struct module_flags VMAFX_FLAGS = { FLAG_TABLE, ARRAY_LEN(FLAG_TABLE),
                                          sizeof(struct vmafx_flags), check };

const struct vmafx_flags *vmafx_flags_of(const struct module_host *host)
{
    return module_host_flags(host, &VMAFXJOB_MODULE);
}

/* value NULL: the text stays as it is. */
static const char *replace(struct arena *arena, const char *text, const char *word,
                           const char *value)
{
    const char *at;

    while (value && (at = strstr(text, word)))
        text = arena_printf(arena, "%.*s%s%s", (int)(at - text), text, value, at + strlen(word));
    return text;
}

const char *vmafx_address(struct arena *arena, const char *address, const char *ns,
                          const char *name)
{
    return replace(arena, replace(arena, address, "{namespace}", ns), "{name}", name);
}

const char *const VMAFX_UNREAD[] = { "spec", "metadata.annotations", NULL };

void vmafx_project(cJSON *object)
{
    for (size_t i = 0; VMAFX_UNREAD[i]; i++)
        json_remove_path(object, VMAFX_UNREAD[i]);
}

struct vmafx_poll_deps *vmafx_poll_deps_create(const struct module_host *host,
                                               const struct kube_kind *kind)
{
    struct vmafx_poll_deps *deps = arena_new(host->arena, struct vmafx_poll_deps);

    *deps = (struct vmafx_poll_deps){ .objects = module_host_informer(host, kind),
                                      .flags = vmafx_flags_of(host),
                                      .pool = http_client_pool_create(),
                                      .notes = vmafx_notes_create() };
    return deps;
}

void vmafx_poll_deps_destroy(void *ptr)
{
    struct vmafx_poll_deps *deps = ptr;

    http_client_pool_destroy(deps->pool);
    vmafx_notes_destroy(deps->notes);
}
