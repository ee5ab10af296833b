/* This module says whether an administrator allows a module, an image, a model or a type of device.
 *
 * An administrator restricts with flags of propeller-webhook and propeller-standalone what users may name in their
 * objects. An empty list restricts nothing. Everything here is pure: nothing is fetched or resolved, so that a name
 * which is allowed may still be of something else, unless digests are required.
 */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/str.h"

/* The values of the flags, as written. All zero allows everything. */
struct admission_policy {
    struct str_list image_schemes; /* of "inline", "oci", "https" and "http" */
    struct str_list image_hosts;   /* HOST[:PORT][/PREFIX] */
    bool require_image_digests;
    struct str_list model_schemes; /* of "model", "configmap", "s3" and "https" */
    struct str_list device_types;
};

/* Rows of a table of options (common/runtime/options.h), for the member policy of the struct. */
#define POLICY_OPTION(type_name, flag, kind, member)                                               \
    .name = (flag), .type = (kind), .offset = offsetof(type_name, policy.member),                  \
    .needs_value = (kind) == OPTION_STRINGS
#define POLICY_OPTIONS(type_name)                                                                  \
    { POLICY_OPTION(type_name, "allow-image-schemes", OPTION_STRINGS, image_schemes),              \
      .value_name = "SCHEMES",                                                                     \
      .help = "sources of modules, of inline, oci, https and http; default is all" },              \
        { POLICY_OPTION(type_name, "allow-image-hosts", OPTION_STRINGS, image_hosts),              \
          .value_name = "HOST[:PORT][/PREFIX]",                                                    \
          .help = "hosts, with or without a path, of modules and images; default is all" },        \
        { POLICY_OPTION(type_name, "require-image-digests", OPTION_BOOL, require_image_digests),   \
          .fallback = "false",                                                                     \
          .help = "refuse OCI references and images without @sha256: and a digest" },              \
        { POLICY_OPTION(type_name, "allow-model-schemes", OPTION_STRINGS, model_schemes),          \
          .value_name = "SCHEMES",                                                                 \
          .help = "schemes of modelRef, of model, configmap, s3 and https; default is all" },      \
    {                                                                                              \
        POLICY_OPTION(type_name, "allow-device-types", OPTION_STRINGS, device_types),              \
            .value_name = "NAME", .help = "values of external.deviceType; default is all"          \
    }

/* ERROR_INVALID: a value cannot be used. The message names the flag and what it takes. */
int admission_policy_check(const struct admission_policy *policy, struct error *err) MUST_CHECK;

/*
 * Each returns why the value is refused, as a sentence that follows the name of its field, in the arena; NULL if it is
 * allowed. A value that is empty is absent. No message repeats more than the scheme of a value.
 */
const char *policy_inline_problem(struct arena *arena, const struct admission_policy *policy);
/* An OCI reference, with or without "oci://", or an http or https address (RFC 3986). */
const char *policy_module_problem(struct arena *arena, const struct admission_policy *policy,
                                  const char *text);
/* The image of a container: always an OCI reference. */
const char *policy_image_problem(struct arena *arena, const struct admission_policy *policy,
                                 const char *text);
const char *policy_model_problem(struct arena *arena, const struct admission_policy *policy,
                                 const char *text);
const char *policy_device_problem(struct arena *arena, const struct admission_policy *policy,
                                  const char *type); /* NULL: none is named, which a list refuses */

/* Whether the reference is of OCI and has no digest, so that what it names can change. */
bool policy_is_by_tag(const char *text);
