#include "certs/options.h"

#include "common/base/str.h"

/* What a certificate can hold and a handshake should carry. */
#define MAX_EXTRA_NAMES 32

static int check_names(const struct cert_settings *settings, const char *ns, struct error *err)
{
    if (!str_is_dns_label(settings->service))
        return error_set(err, ERROR_INVALID, "--webhook-service: '%.64s' is no name of a Service",
                         settings->service ? settings->service : "");
    if (str_is_empty(ns))
        return error_set(err, ERROR_INVALID, "--webhook-namespace: needed without a cluster");
    if (!str_is_dns_label(ns))
        return error_set(err, ERROR_INVALID, "--webhook-namespace: '%.64s' is no namespace", ns);
    if (!str_is_dns_subdomain(settings->configuration))
        return error_set(err, ERROR_INVALID,
                         "--webhook-configuration: '%.64s' is no name of an object",
                         settings->configuration ? settings->configuration : "");
    if (settings->extra_names.len > MAX_EXTRA_NAMES)
        return error_set(err, ERROR_INVALID, "--webhook-extra-name: at most %d", MAX_EXTRA_NAMES);
    for (size_t i = 0; i < settings->extra_names.len; i++) {
        if (!cert_name_is_valid(settings->extra_names.items[i]))
            return error_set(err, ERROR_INVALID,
                             "--webhook-extra-name: '%.64s' is no host name and no IP address",
                             settings->extra_names.items[i]);
    }
    return 0;
}

int cert_policy_create(struct arena *arena, const struct cert_settings *settings, const char *ns,
                       struct cert_policy *ret, struct error *err)
{
    const char *own_ns = str_is_empty(settings->ns) ? ns : settings->ns;

    int r = check_names(settings, own_ns, err);
    if (r < 0)
        return r;
    if (settings->leaf_lifetime_ms > settings->ca_lifetime_ms)
        return error_set(err, ERROR_INVALID,
                         "--webhook-certificate-lifetime: must not be longer than "
                         "--webhook-ca-lifetime");
    *ret = (struct cert_policy){
        .names = cert_names_of(arena, settings->service, own_ns, settings->extra_names.items,
                               settings->extra_names.len),
        .ca_lifetime_us = settings->ca_lifetime_ms * 1000,
        .leaf_lifetime_us = settings->leaf_lifetime_ms * 1000,
        .overlap_us = settings->overlap_ms * 1000,
    };
    return 0;
}
