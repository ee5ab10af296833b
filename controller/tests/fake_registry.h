/* A registry of one repository, acme/add, on a thread, with faults. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum registry_fault {
    REGISTRY_CLOSES,              /* the connection, without a reply */
    REGISTRY_CUTS,                /* the body in its middle; a reply without one, too */
    REGISTRY_IS_ILL,              /* 503 */
    REGISTRY_FORGETS,             /* 404 */
    REGISTRY_REFUSES,             /* 403 */
    REGISTRY_LIES,                /* other bytes of the same length */
    REGISTRY_ANSWERS_WITH_A_PAGE, /* 200 and HTML */
    REGISTRY_FAULTS,
};

/* How it behaves from now on. All zero: open, and without faults. */
struct registry_manner {
    const char *basic; /* "user:password"; NULL: open */
    bool by_token;     /* with basic: by a token from its /token, else by basic authentication */
    unsigned
        fail_from; /* number of the first request from now on, from 1, that has the fault; 0: none */
    unsigned fail_count;
    enum registry_fault fault;
    size_t cut_after;    /* bytes of a blob in one reply; 0: all */
    bool ignores_ranges; /* 200 and the whole blob */
    bool misplaces;      /* 206 from another byte than was asked for */
    bool hides_digests;  /* no Docker-Content-Digest */
    bool
        has_referrers; /* the index at the tag sha256-<hex> answers /referrers/, too; else that is 404 */
    bool is_silent;    /* takes requests for blobs and never answers */
    const char *lacks; /* digest: 404 for it, though manifests name it; NULL: nothing */
};

struct registry_counts {
    unsigned all, heads, manifests, blobs, tokens; /* manifests and blobs: by GET */
};

struct fake_registry;
struct fake_registry *fake_registry_start(void);
void fake_registry_stop(struct fake_registry *registry);
/* "127.0.0.1:<port>"; it lives as long as the registry. */
const char *fake_registry_host(const struct fake_registry *registry);
void fake_registry_behave(struct fake_registry *registry, const struct registry_manner *manner);
struct registry_counts fake_registry_counts(struct fake_registry *registry);
/* Blocks until so many requests for blobs have come. */
void fake_registry_await_blobs(struct fake_registry *registry, unsigned count);
/* Adds a module and moves the tag to it. Returns the digest of its manifest, which lives as long as the registry. */
const char *fake_registry_push(struct fake_registry *registry, const char *tag, const void *bytes,
                               size_t len);
/* Adds any document as a manifest or blob; the tag may be NULL. Returns its digest. */
const char *fake_registry_push_document(struct fake_registry *registry, const char *tag,
                                        const char *text, size_t len);
/* Value of Authorization in the last request that had one; "": none had. */
const char *fake_registry_authorization(struct fake_registry *registry);
