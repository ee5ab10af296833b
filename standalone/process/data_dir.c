#include "standalone/process/data_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "certs/file_place.h"
#include "certs/file_set.h"
#include "common/base/certificate.h"
#include "common/base/file.h"
#include "common/base/log.h"

const char *data_dir_path(struct arena *arena, const char *directory, const char *name)
{
    return arena_printf(arena, "%s/%s", directory, name);
}

int data_dir_read(struct arena *arena, const char *directory, const char *name, const char **ret,
                  struct error *err)
{
    return file_read_text(arena, data_dir_path(arena, directory, name), DATA_DIR_MAX_FILE, NULL,
                          ret, err);
}

/* The authority and what is served with it. Kubeconfigs have the authority in them, so it is never replaced:
 * not because of a clock that is wrong, nor because it is lost. */

/* 2020-01-01: a clock that is before it was never set, and what is made now would have ended once it is. */
#define EARLIEST_US INT64_C(1577836800000000)
#define CA_FILE DATA_DIR_CA "/" FILE_PLACE_CA

/* A data directory at a time that is no earlier than its certificates. */
struct keeping {
    const char *directory;
    struct file_place files;
    struct cert_observed observed;
    struct certificate_times ca, leaf; /* the leaf: zeroes: there is none of this authority */
    int64_t now_us;
};

/* Not where a kubeconfig trusts the one that is lost. What is there of it was broken off when it was made. */
static int make_ca(struct arena *arena, struct keeping *keeping, bool may_begin, struct error *err)
{
    const char *directory = keeping->directory;
    const char *missing = keeping->observed.ca.cert ? FILE_PLACE_CA_KEY : FILE_PLACE_CA;
    char now[RFC3339_LEN];
    struct cert_pair ca;
    struct stat status;

    if (lstat(data_dir_path(arena, directory, DATA_DIR_ADMIN), &status) == 0)
        return error_set(err, ERROR_INVALID,
                         "'%s/" DATA_DIR_CA "/%s' is missing and " DATA_DIR_ADMIN
                         " trusts no other: restore it, or remove " DATA_DIR_ADMIN " and run init",
                         directory, missing);
    if (!may_begin)
        return error_set(err, ERROR_INVALID,
                         "'%s/" DATA_DIR_CA "/%s' is missing: restore it, or run "
                         "'propeller-standalone init'",
                         directory, missing);
    if (keeping->now_us < EARLIEST_US)
        return error_set(err, ERROR_INVALID,
                         "the clock says %s: set it before an authority is made in '%s/" DATA_DIR_CA
                         "', which would have ended already",
                         rfc3339_format(keeping->now_us, now), directory);

    /* Valid from the earliest time on, and so is the leaf: a clock that was ahead may be set back. */
    int r =
        cert_make_ca(arena, EARLIEST_US,
                     keeping->observed.now_us - EARLIEST_US + DATA_DIR_CA_LIFETIME_US, &ca, err);
    if (r == 0)
        r = file_place_save_ca(&keeping->files, arena, &ca, ca.cert, err);
    return r < 0 ? r : file_place_load(&keeping->files, arena, &keeping->observed, err);
}

static int read_times(struct keeping *keeping, struct error *err)
{
    const struct cert_observed *observed = &keeping->observed;

    if (certificate_read_times(observed->ca.cert, &keeping->ca, NULL) < 0)
        return error_set(err, ERROR_INVALID,
                         "'%s/" CA_FILE "' cannot be read as a certificate: restore it from a copy",
                         keeping->directory);
    if (!cert_is_signed_by(observed->leaf.cert, observed->ca.cert) ||
        certificate_read_times(observed->leaf.cert, &keeping->leaf, NULL) < 0)
        keeping->leaf = (struct certificate_times){ .not_before_us = 0 };
    return 0;
}

/* A board without a clock of its own starts in the past: what is there is as good as it was. */
static void look_at_clock(struct arena *arena, struct keeping *keeping)
{
    const char *file = data_dir_path(arena, keeping->directory, CA_FILE);
    int64_t made_us = keeping->ca.not_after_us - DATA_DIR_CA_LIFETIME_US;
    char begin[RFC3339_LEN], now[RFC3339_LEN], end[RFC3339_LEN];

    if (keeping->now_us < made_us) {
        log_warn("the clock is behind: the certificate authority was made later", "file", file,
                 "made", rfc3339_format(made_us, begin), "now",
                 rfc3339_format(keeping->now_us, now), NULL);
        keeping->now_us = made_us;
        if (keeping->now_us < keeping->leaf.not_before_us)
            keeping->now_us = keeping->leaf.not_before_us;
    }
    if (keeping->ca.not_after_us - keeping->now_us < DATA_DIR_LEAF_LIFETIME_US)
        log_warn("the certificate authority expires and is not renewed automatically: before that, "
                 "remove it "
                 "and " DATA_DIR_ADMIN ", run init, and make the kubeconfigs of other users again",
                 "file", file, "valid-until", rfc3339_format(keeping->ca.not_after_us, end), NULL);
}

static int check_ca(struct arena *arena, struct keeping *keeping, struct error *err)
{
    const char *problem;
    char end[RFC3339_LEN];

    look_at_clock(arena, keeping);
    if (keeping->now_us >= keeping->ca.not_after_us)
        return error_set(err, ERROR_INVALID,
                         "'%s/" CA_FILE "' ended at %s: set the clock; if it is right, remove it "
                         "and " DATA_DIR_ADMIN " and run init",
                         keeping->directory, rfc3339_format(keeping->ca.not_after_us, end));
    problem = cert_ca_problem(&keeping->observed.ca, keeping->now_us);
    if (problem)
        return error_set(err, ERROR_INVALID,
                         "the authority in '%s/" DATA_DIR_CA "' %s: restore " FILE_PLACE_CA
                         " and " FILE_PLACE_CA_KEY " from a copy",
                         keeping->directory, problem);
    return 0;
}

static int keep_leaf(struct arena *arena, struct keeping *keeping, const struct cert_names *names,
                     struct error *err)
{
    const struct cert_observed *observed = &keeping->observed;
    int64_t end_us = keeping->now_us + DATA_DIR_LEAF_LIFETIME_US;
    bool is_due = keeping->leaf.not_after_us - keeping->now_us < DATA_DIR_LEAF_LIFETIME_US / 3 &&
                  keeping->leaf.not_after_us < keeping->ca.not_after_us;
    struct cert_pair leaf;

    if (!is_due && !cert_leaf_problem(&observed->leaf, names, observed->ca.cert, keeping->now_us))
        return 0;
    /* The clock is behind, or was ahead: it holds for both. */
    if (keeping->leaf.not_before_us > keeping->now_us && keeping->leaf.not_after_us > end_us)
        end_us = keeping->leaf.not_after_us;

    int64_t begin_us =
        keeping->ca.not_before_us > EARLIEST_US ? keeping->ca.not_before_us : EARLIEST_US;
    int r = cert_make_leaf(arena, &observed->ca, names, begin_us, end_us - begin_us, &leaf, err);
    return r < 0 ? r : file_place_save_leaf(&keeping->files, arena, &leaf, err);
}

int data_dir_keep_certificates(struct arena *arena, const char *directory,
                               const struct cert_names *names, bool may_begin,
                               const struct clock *clock, struct error *err)
{
    struct keeping keeping = {
        .directory = directory,
        .files = { .cert_dir = data_dir_path(arena, directory, DATA_DIR_TLS),
                   .ca_dir = data_dir_path(arena, directory, DATA_DIR_CA) },
        .now_us = clock_wall_us(clock),
    };
    struct cert_observed *observed = &keeping.observed;
    int lock;

    observed->now_us = keeping.now_us;

    int r = file_set_lock(keeping.files.ca_dir, &lock, err);
    if (r < 0)
        return r;
    r = file_place_load(&keeping.files, arena, observed, err);
    if (r == 0 && !(observed->ca.cert && observed->ca.key))
        r = make_ca(arena, &keeping, may_begin, err);
    if (r == 0)
        r = read_times(&keeping, err);
    if (r == 0)
        r = check_ca(arena, &keeping, err);
    if (r == 0)
        r = keep_leaf(arena, &keeping, names, err);
    file_set_unlock(lock);
    return r;
}

/* Who besides the owner can get at the files of a data directory. */

#define OTHERS_READ (S_IRGRP | S_IROTH)
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

static const struct {
    const char *name;
    bool
        is_secret; /* who reads it comes in, or sees Secrets; of the others that only counts for writing */
} FILES[] = {
    { ".", false }, /* who can write a folder can replace what is in it */
    { DATA_DIR_CA, false },
    { DATA_DIR_CA "/..data", false }, /* certs/file_set.h */
    { DATA_DIR_TLS, false },
    { DATA_DIR_TLS "/..data", false },
    { DATA_DIR_USERS, false },
    { DATA_DIR_STORE, true },
    { DATA_DIR_STORE "-wal", true },
    { DATA_DIR_ADMIN, true },
    { DATA_DIR_CA "/ca.crt", false },
    { DATA_DIR_CA "/ca.key", true },
    { DATA_DIR_TLS "/tls.crt", false },
    { DATA_DIR_TLS "/tls.key", true },
};

static int check_file(const char *path, bool is_secret, struct error *err)
{
    struct stat status;
    uid_t own = geteuid();

    if (stat(path, &status) < 0)
        return 0; /* the caller that needs it reports it */
    if (status.st_uid != 0 && status.st_uid != own)
        return error_set(err, ERROR_INVALID,
                         "'%s' belongs to uid %u, neither to root nor to uid %u of this process: "
                         "chown %u it",
                         path, (unsigned)status.st_uid, (unsigned)own, (unsigned)own);

    unsigned mode = status.st_mode & 07777;

    if (mode & OTHERS_WRITE)
        return error_set(
            err, ERROR_INVALID,
            "'%s' (mode %04o) can be written by others than its owner: chmod go-rwx it", path,
            mode);
    if (is_secret && mode & OTHERS_READ)
        return error_set(err, ERROR_INVALID,
                         "'%s' (mode %04o) can be read by others than its owner: chmod go-rwx it",
                         path, mode);
    return 0;
}

int data_dir_check_modes(struct arena *arena, const char *directory, struct error *err)
{
    struct stat status;

    if (stat(directory, &status) == 0 && !S_ISDIR(status.st_mode))
        return error_set(err, ERROR_INVALID, "'%s': Not a directory", directory);
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        const char *path =
            FILES[i].name[0] == '.' ? directory : data_dir_path(arena, directory, FILES[i].name);
        int r = check_file(path, FILES[i].is_secret, err);

        if (r < 0)
            return r;
    }
    if (stat(directory, &status) == 0 && status.st_mode & OTHERS_READ)
        log_warn("the data directory is open to others than its owner: chmod go-rwx it", "data-dir",
                 directory, NULL);
    return 0;
}
