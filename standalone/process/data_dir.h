/* The folder of a standalone server, for its owner alone. */
#pragma once

#include "certs/make.h"
#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/error.h"

/*
 *   propeller.db            the store
 *   users                   who may come in (standalone/server/users.h)
 *   ca/ca.crt, ca/ca.key    the authority
 *   tls/tls.crt, tls.key    what is served, renewed at a start when a third of its life is left
 *   admin.kubeconfig        for kubectl
 *   modules                 pulled modules, with --module-registries
 */
#define DATA_DIR_STORE "propeller.db"
#define DATA_DIR_USERS "users"
#define DATA_DIR_CA "ca"
#define DATA_DIR_TLS "tls"
#define DATA_DIR_MODULES "modules"
#define DATA_DIR_ADMIN "admin.kubeconfig"

/* Of the authorities and of the certificates that they sign: a board may be off for long, and has no administrator. */
#define DATA_DIR_YEAR_US (INT64_C(365) * 24 * 60 * 60 * 1000000)
#define DATA_DIR_CA_LIFETIME_US (30 * DATA_DIR_YEAR_US)
#define DATA_DIR_LEAF_LIFETIME_US (3 * DATA_DIR_YEAR_US)

/* Of one file. */
#define DATA_DIR_MAX_FILE (1u << 20)

/* "<directory>/<name>", in the arena. */
const char *data_dir_path(struct arena *arena, const char *directory, const char *name);

/* ERROR_NOT_FOUND: there is no such file. One with a NUL is ERROR_INVALID: texts would end there. */
int data_dir_read(struct arena *arena, const char *directory, const char *name, const char **ret,
                  struct error *err) MUST_CHECK;

/*
 * Authority and serving pair for these names.
 *
 *  1. An authority that is there is never replaced: kubeconfigs have it in them. An authority that
 *     is not valid yet stays (a warning), as does its serving pair: the clock is behind. An
 *     authority that cannot be used is ERROR_INVALID, which names the file and what to do; so is
 *     one that is not there, but is in a kubeconfig of the directory, or that must not be made
 *     (may_begin).
 *  2. The serving pair is renewed when a third of its life is left, or for other names.
 */
int data_dir_keep_certificates(struct arena *arena, const char *directory,
                               const struct cert_names *names, bool may_begin,
                               const struct clock *clock, struct error *err) MUST_CHECK;

/*
 * Checks that only the owner, who is root or the user of this process, can write the files that decide about access or
 * the folders that they are in, or read the secrets: ERROR_INVALID names the path and what to do. A directory that
 * others can only look into gets a warning; a path that is no directory is refused. Files that are not there are fine.
 */
int data_dir_check_modes(struct arena *arena, const char *directory, struct error *err) MUST_CHECK;
