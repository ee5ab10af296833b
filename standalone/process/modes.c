/* Who besides the owner can get at the files of a data directory. */
#include <unistd.h>

#include <sys/stat.h>

#include "certs/file_set.h"
#include "common/base/log.h"
#include "standalone/process/data_dir.h"

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
    { DATA_DIR_CONTROLLER, true },
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
        return 0; /* whoever needs it says so */
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

int data_dir_lock_users(const char *directory, int *ret, struct error *err)
{
    return file_set_lock(directory, ret, err);
}

void data_dir_unlock(int lock)
{
    file_set_unlock(lock);
}
