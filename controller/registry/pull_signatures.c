#include <string.h>

#include "common/base/str.h"
#include "controller/registry/pull_internal.h"

/* Of one pull: a repository may hold any number of signatures. */
#define MAX_TRIED 64
#define MAX_BUNDLES 16

#define INDEX_TYPE "application/vnd.oci.image.index.v1+json"
#define SIMPLE_TYPE "application/vnd.dev.cosign.simplesigning.v1+json"
#define SIMPLE_ANNOTATION "dev.cosignproject.cosign/signature"
#define BUNDLE_TYPE "application/vnd.dev.sigstore.bundle.v0.3+json"

static const char *signed_digest(const struct pull *pull)
{
    return pull->signatures.digests[pull->signatures.at];
}

/* "manifests/sha256-<hex>", the tag that belongs to a digest. */
static const char *tag_of(const struct pull *pull, const char *suffix)
{
    return arena_printf(pull->arena, "manifests/sha256-%s%s",
                        signed_digest(pull) + strlen(MODULE_DIGEST_PREFIX), suffix);
}

static void begin_digest(struct pull *pull, size_t at)
{
    pull->signatures.at = at;
    pull->step = PULL_STEP_SIGNATURES;
}

void pull_signatures_begin(struct pull *pull)
{
    begin_digest(pull, 0);
}

void pull_signatures_request(const struct pull *pull, struct pull_request *ret)
{
    const char *digest = pull->signatures.blob.digest;

    switch (pull->step) {
    case PULL_STEP_SIGNATURES:
        pull_get(pull, ret, tag_of(pull, ".sig"), MODULE_MANIFEST_TYPES, MODULE_MANIFEST_MAX);
        break;
    case PULL_STEP_SIGNATURE:
        pull_get(pull, ret, arena_printf(pull->arena, "blobs/%s", digest), NULL,
                 SIGNATURE_SIMPLE_MAX);
        break;
    case PULL_STEP_REFERRERS:
        pull_get(pull, ret, arena_printf(pull->arena, "referrers/%s", signed_digest(pull)),
                 INDEX_TYPE, MODULE_MANIFEST_MAX);
        break;
    case PULL_STEP_REFERRERS_TAG:
        pull_get(pull, ret, tag_of(pull, ""), INDEX_TYPE, MODULE_MANIFEST_MAX);
        break;
    case PULL_STEP_BUNDLE_MANIFEST:
        pull_get(pull, ret, arena_printf(pull->arena, "manifests/%s", digest),
                 MODULE_MANIFEST_TYPES, MODULE_MANIFEST_MAX);
        break;
    default: /* PULL_STEP_BUNDLE */
        pull_get(pull, ret, arena_printf(pull->arena, "blobs/%s", digest), NULL,
                 SIGNATURE_BUNDLE_MAX);
    }
}

static void try_next_digest(struct pull *pull)
{
    size_t next = pull->signatures.at + 1;

    if (next < ARRAY_LEN(pull->signatures.digests) && pull->signatures.digests[next])
        begin_digest(pull, next);
    else
        pull_end(pull, PULL_FAILED, REASON_MODULE_UNSIGNED,
                 "has no signature by a key of --module-public-keys (%u looked at)",
                 pull->signatures.tried);
}

/* Asks for the next layer that may be a signature of simple signing. */
static void try_next_layer(struct pull *pull)
{
    struct pull_signatures *signatures = &pull->signatures;

    while (signatures->entry && signatures->tried < MAX_TRIED) {
        const cJSON *layer = signatures->entry;

        signatures->entry = layer->next;
        signatures->value = json_get_string(json_get(layer, "annotations"), SIMPLE_ANNOTATION);
        if (!str_equal(json_get_string(layer, "mediaType"), SIMPLE_TYPE) || !*signatures->value ||
            !module_descriptor_read(layer, &signatures->blob))
            continue;
        signatures->tried++;
        pull->step = PULL_STEP_SIGNATURE;
        return;
    }
    pull->step = PULL_STEP_REFERRERS;
}

/* Asks for the next entry of the index of referrers that may be a bundle. */
static void try_next_entry(struct pull *pull)
{
    struct pull_signatures *signatures = &pull->signatures;

    while (signatures->entry && signatures->bundles < MAX_BUNDLES) {
        const cJSON *entry = signatures->entry;
        const char *type = json_get_string(entry, "artifactType");

        signatures->entry = entry->next;
        if ((*type && !str_equal(type, BUNDLE_TYPE)) ||
            !module_descriptor_read(entry, &signatures->blob))
            continue;
        signatures->bundles++;
        pull->step = PULL_STEP_BUNDLE_MANIFEST;
        return;
    }
    try_next_digest(pull);
}

/* NULL: the reply is no document. */
static const cJSON *document_of(const struct pull *pull, const struct pull_reply *reply)
{
    const cJSON *document = NULL;

    if (reply->status / 100 != 2 ||
        module_manifest_parse(pull->arena, reply->body, reply->len, &document, NULL) < 0)
        return NULL;
    return document;
}

/* Whether the reply is the bytes that were asked for, and signs the digest. */
static bool take_signature(struct pull *pull, const struct pull_reply *reply,
                           enum signature_form form)
{
    if (reply->status / 100 != 2 || !pull_body_is(reply, pull->signatures.blob.digest))
        return false;
    pull->signed_by = signature_check(pull->arena, pull->target.keys, signed_digest(pull), form,
                                      reply->body, reply->len, pull->signatures.value);
    if (!pull->signed_by)
        return false;
    pull_signed(pull);
    return true;
}

static void take_bundle_manifest(struct pull *pull, const struct pull_reply *reply)
{
    const cJSON *document = document_of(pull, reply);
    const cJSON *layers = json_get(document, "layers");

    if (document && pull_body_is(reply, pull->signatures.blob.digest) &&
        str_equal(json_get_string(document, "artifactType"), BUNDLE_TYPE) &&
        json_len(layers) == 1 &&
        module_descriptor_read(json_first(layers), &pull->signatures.blob)) {
        pull->signatures.tried++;
        pull->step = PULL_STEP_BUNDLE;
    } else {
        try_next_entry(pull);
    }
}

void pull_signatures_take(struct pull *pull, const struct pull_reply *reply)
{
    const cJSON *document = NULL;

    switch (pull->step) {
    case PULL_STEP_SIGNATURES:
        pull->signatures.entry = json_first(json_get(document_of(pull, reply), "layers"));
        try_next_layer(pull);
        break;
    case PULL_STEP_SIGNATURE:
        if (!take_signature(pull, reply, SIGNATURE_SIMPLE))
            try_next_layer(pull);
        break;
    case PULL_STEP_REFERRERS:
    case PULL_STEP_REFERRERS_TAG:
        document = document_of(pull, reply);
        if (!document && pull->step == PULL_STEP_REFERRERS) {
            pull->step = PULL_STEP_REFERRERS_TAG;
            break;
        }
        pull->signatures.entry = json_first(json_get(document, "manifests"));
        try_next_entry(pull);
        break;
    case PULL_STEP_BUNDLE_MANIFEST:
        take_bundle_manifest(pull, reply);
        break;
    default: /* PULL_STEP_BUNDLE */
        if (!take_signature(pull, reply, SIGNATURE_BUNDLE))
            try_next_entry(pull);
    }
}
