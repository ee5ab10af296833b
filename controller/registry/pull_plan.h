/*
 * The requests of one pull: from a reference to the digest of its manifest, or from there to the bytes of a module.
 *
 * Pure: replies go in (pull_take), requests come out (pull_next), and nothing waits. A plan is used by one thread. Its
 * texts are in the arena that pull_begin was given, which outlives it. A pull that ends is begun again with a new plan.
 */
#pragma once

#include "common/api/module_reference.h"
#include "common/api/reasons.h"
#include "controller/registry/authorization.h"
#include "controller/registry/manifest.h"
#include "controller/registry/registries.h"
#include "controller/registry/signature.h"

/* A broken blob goes on this often. */
#define PULL_MAX_RESUMES 5

enum pull_aim {
    PULL_DIGEST, /* of the manifest of a tag */
    PULL_KNOWN,  /* of the manifest with this digest, which has been read: `known` is its module */
    PULL_MODULE, /* of the manifest with this digest */
};

struct pull_target {
    enum pull_aim aim;
    const struct module_registry *registry;
    struct module_reference reference; /* with a digest unless the aim is PULL_DIGEST */
    struct registry_logins logins;
    int64_t max_bytes;
    const struct public_keys *keys; /* NULL: no signature is needed */
    /* PULL_KNOWN: needs no other check than whether these credentials may read manifest and blob. */
    struct module_choice known;
    const char *known_signer; /* see pull.signed_by */
};

enum pull_step {
    PULL_STEP_HEAD, /* of the tag or the digest */
    PULL_STEP_TAG,  /* the manifest of the tag, whose digest no header named */
    PULL_STEP_MANIFEST,
    PULL_STEP_INNER,      /* the manifest that an index names */
    PULL_STEP_SIGNATURES, /* cosign's, by tag */
    PULL_STEP_SIGNATURE,  /* the bytes of one */
    PULL_STEP_REFERRERS,
    PULL_STEP_REFERRERS_TAG,
    PULL_STEP_BUNDLE_MANIFEST,
    PULL_STEP_BUNDLE,
    PULL_STEP_BLOB,
    PULL_STEP_END,
};

enum pull_next {
    PULL_ASK,
    PULL_DONE,
    PULL_LATER,  /* RegistryUnavailable */
    PULL_FAILED, /* any other reason */
};

struct pull_request {
    const char *method;
    const char *url;
    const char *accept;        /* NULL: anything */
    const char *authorization; /* value of the header; NULL: none */
    size_t max_reply;
    bool is_module; /* the body goes into the file of the module, of module.bytes at most */
    int64_t offset; /* of a module: bytes of the file that stay, and the first one to ask for */
};

struct pull_reply {
    int status;          /* 0: no whole reply */
    const char *problem; /* with status 0: why, with the host */
    bool is_too_large;   /* with status 0: over max_reply */
    const char *headers; /* lines "name: value\n"; never NULL */
    const char *body;
    size_t len;
    uint32_t retry_after_s;
    /* Of a module: the file after the reply. */
    int64_t file_bytes;      /* module.bytes + 1: the body has more */
    const char *file_digest; /* NULL: the file is not whole */
    bool file_is_wasm;       /* it begins with 00 61 73 6d */
};

/* The signatures of one pull that were looked at. */
struct pull_signatures {
    const char *digests[2]; /* that may be signed: of the reference, and of an entry of its index */
    size_t at;              /* in digests */
    const cJSON *entry;     /* layer or index entry, the next to look at */
    struct module_choice blob; /* asked for now */
    const char *value;         /* the signature beside the blob; NULL: in it */
    unsigned tried, bundles;
};

/* Open for its two sources and for tests; the results are for all. */
struct pull {
    struct arena *arena;
    struct pull_target target;
    enum pull_step step;
    struct authorization authorization;
    bool is_asking_token;
    unsigned resumes;
    int64_t offset;
    struct pull_signatures signatures;

    enum pull_next outcome; /* PULL_ASK: not ended */
    enum reason reason;     /* PULL_FAILED, PULL_LATER */
    const char *message;    /* likewise: "'<repository>' ...", without secrets */
    uint32_t retry_after_s; /* PULL_LATER: as the server said; 0: it said nothing */
    const char *manifest;   /* digest, once it is known */
    struct module_choice module;
    const char *signed_by; /* fingerprint of the key; NULL: no signature was needed */
};

void pull_begin(struct pull *pull, struct arena *arena, const struct pull_target *target);
/* Says what is to be asked next, or how the pull ended. now_ms is monotonic. */
enum pull_next pull_next(struct pull *pull, int64_t now_ms, struct pull_request *ret);
/* Takes the reply to the last request. */
void pull_take(struct pull *pull, int64_t now_ms, const struct pull_reply *reply);
/* Whether a body that comes with this status and these headers belongs at this offset of the file. */
bool pull_continues(int status, const char *headers, struct arena *arena, int64_t offset);
