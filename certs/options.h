/* The flags that say what is wanted of the webhook's certificates: of the controller and of
 * propeller-certgen alike. */
#pragma once

#include "certs/plan.h"
#include "common/runtime/options.h"

struct cert_settings {
    const char *service;
    const char *ns; /* NULL: that of the kubeconfig or pod */
    const char *configuration;
    struct str_list extra_names;
    int64_t leaf_lifetime_ms;
    int64_t ca_lifetime_ms;
    int64_t overlap_ms;
};

#define CERT_MAX_LIFETIME_MS (INT64_C(100) * 365 * 24 * 60 * 60 * 1000)

/* Elements of an option table, for a struct cert_settings that is a member of a struct. */
#define CERT_OPTION(flag, kind, type_name, path, value)                                            \
    .name = (flag), .type = (kind), .offset = offsetof(type_name, path), .fallback = (value)
#define CERT_OPTIONS(type_name, member)                                                            \
    { CERT_OPTION("webhook-service", OPTION_STRING, type_name, member.service,                     \
                  "propeller-webhook"),                                                            \
      .value_name = "NAME", .help = "Service of the webhook, which its certificate is for" },      \
        { CERT_OPTION("webhook-namespace", OPTION_STRING, type_name, member.ns, NULL),             \
          .value_name = "NAME",                                                                    \
          .help = "namespace of the Service and of the Secrets; the context's or pod's own if "    \
                  "empty" },                                                                       \
        { CERT_OPTION("webhook-configuration", OPTION_STRING, type_name, member.configuration,     \
                      "propeller-webhook"),                                                        \
          .value_name = "NAME",                                                                    \
          .help = "name of the ValidatingWebhookConfiguration and the "                            \
                  "MutatingWebhookConfiguration that get the caBundle" },                          \
        { CERT_OPTION("webhook-extra-name", OPTION_STRINGS, type_name, member.extra_names, NULL),  \
          .value_name = "HOST",                                                                    \
          .help = "additional host name or IP address of the webhook, for one outside the "        \
                  "cluster" },                                                                     \
        { CERT_OPTION("webhook-certificate-lifetime", OPTION_DURATION, type_name,                  \
                      member.leaf_lifetime_ms, "2160h"),                                           \
          .min = 3000, .max = CERT_MAX_LIFETIME_MS,                                                \
          .help = "lifetime of a certificate; renewed after two thirds" },                         \
        { CERT_OPTION("webhook-ca-lifetime", OPTION_DURATION, type_name, member.ca_lifetime_ms,    \
                      "87600h"),                                                                   \
          .min = 3000, .max = CERT_MAX_LIFETIME_MS,                                                \
          .help = "lifetime of the authority; renewed after two thirds" },                         \
    {                                                                                              \
        CERT_OPTION("webhook-ca-overlap", OPTION_DURATION, type_name, member.overlap_ms, "10m"),   \
            .min = 1000, .max = CERT_MAX_LIFETIME_MS,                                              \
            .help =                                                                                \
                "time for which the old and the new authority are trusted, at most a third of "    \
                "a certificate's lifetime"                                                         \
    }

/* ERROR_INVALID names the flag. ns is the default namespace; if it is NULL, settings must have one. */
int cert_policy_create(struct arena *arena, const struct cert_settings *settings, const char *ns,
                       struct cert_policy *ret, struct error *err) MUST_CHECK;
