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
    { DATA_DIR_USERS, false },
    { DATA_DIR_STORE, true },
    { DATA_DIR_ADMIN, true },
    { DATA_DIR_CONTROLLER, true },
    { DATA_DIR_CA "/ca.crt", false },
    { DATA_DIR_CA "/ca.key", true },
    { DATA_DIR_CLIENT_CA "/ca.crt", false },
    { DATA_DIR_CLIENT_CA "/ca.key", true },
    { DATA_DIR_TLS "/tls.key", true },
};

static int check_file(const char *path, bool is_secret, struct error *err)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return 0; /* whoever needs it says so */
    if (status.st_mode & OTHERS_WRITE)
        return error_set(err, ERROR_INVALID,
                         "'%s' can be written by others than its owner: chmod go-rwx it", path);
    if (is_secret && status.st_mode & OTHERS_READ)
        return error_set(err, ERROR_INVALID,
                         "'%s' can be read by others than its owner: chmod go-rwx it", path);
    return 0;
}

int data_dir_check_modes(struct arena *arena, const char *directory, struct error *err)
{
    struct stat status;

    if (stat(directory, &status) == 0) {
        if (status.st_mode & S_IWOTH && !(status.st_mode & S_ISVTX))
            return error_set(err, ERROR_INVALID,
                             "everybody can put files into '%s': chmod go-rwx it", directory);
        if (status.st_mode & (OTHERS_READ | OTHERS_WRITE))
            log_warn("the data directory is open to others than its owner: chmod go-rwx it",
                     "data-dir", directory, NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        int r = check_file(data_dir_path(arena, directory, FILES[i].name), FILES[i].is_secret, err);

        if (r < 0)
            return r;
    }
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
