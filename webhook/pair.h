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
/* Maximum time between now and the start of a certificate, because clocks of nodes differ. It is
 * short, because a client with a correct clock rejects the certificate until then. */
#define PAIR_MAX_SKEW_US (INT64_C(5) * 1000000)

/* Version of the files. It changes with their content, owner and rights, and when a mounted Secret
 * is swapped by a symbolic link. All zero: neither file exists. */
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

/* ERROR_NOT_FOUND: a file is missing. ERROR_INVALID: a file is unusable, or the certificate has
 * expired at now_us or begins more than PAIR_MAX_SKEW_US later. Does not check that certificate and
 * key match; serving them does. */
int pair_load(const char *directory, int64_t now_us, struct pair *ret,
              struct error *err) MUST_CHECK;
void pair_release(struct pair *pair); /* leaves no key in memory */
DEFINE_CLEANUP_OF(struct pair, pair_release)
