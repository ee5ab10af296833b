/* A certificate and its key as two files of a directory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/compiler.h"
#include "common/base/error.h"

#define PAIR_CERT_FILE "tls.crt"
#define PAIR_KEY_FILE "tls.key"
/* One PEM file. */
#define PAIR_MAX_PEM (64u << 10)
/* A certificate may begin so much later than now: clocks of nodes differ. Little, as a client whose
 * clock is right refuses it until then. */
#define PAIR_MAX_SKEW_US (INT64_C(5) * 1000000)

/* What tells two states of the files apart, also when a mounted Secret is swapped by a symbolic
 * link, or owner or rights change. All zero: neither is there. */
struct pair_version {
    struct {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec changed;
    } files[2];
};
struct pair_version pair_version(const char *directory);
bool pair_version_equal(const struct pair_version *a, const struct pair_version *b);

struct pair {
    char *cert;
    char *key;
    int64_t not_after_us; /* wall clock */
};

/* ERROR_NOT_FOUND: one of the files is not there; ERROR_INVALID: one cannot be used, or the
 * certificate has expired at now_us or begins more than PAIR_MAX_SKEW_US later. Whether they belong
 * together is seen when they are served. */
int pair_load(const char *directory, int64_t now_us, struct pair *ret,
              struct error *err) MUST_CHECK;
void pair_release(struct pair *pair); /* leaves no key in memory */
DEFINE_CLEANUP_OF(struct pair, pair_release)
