/*
 * SQLite takes the first damaged page of a log for its end, as it must after a power loss: what is behind it is lost
 * in silence. So each revision that is acknowledged is written beside the store, too. That is behind the sync of the
 * log and has none of its own: after a power loss the mark may be behind the store, but never ahead of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "standalone/store/kv_internal.h"

/* What the file says when the store beside it was made, and is on the disk. */
#define MADE "made\n"
/* The revision twice: what is not the same has been damaged. Of one length, so one text replaces the other. */
#define TEXT_SIZE sizeof(MADE "revision 18446744073709551615 18446744073709551615\n")

static void write_text(char text[static TEXT_SIZE], uint64_t revision)
{
    (void)snprintf(text, TEXT_SIZE, MADE "revision %020" PRIu64 " %020" PRIu64 "\n", revision,
                   revision);
}

static void read_text(struct kv_mark *mark)
{
    char text[TEXT_SIZE] = "", expected[TEXT_SIZE];
    ssize_t len = pread(mark->fd, text, sizeof(text) - 1, 0);

    mark->is_made = len >= (ssize_t)strlen(MADE) && memcmp(text, MADE, strlen(MADE)) == 0;
    if (!mark->is_made)
        return;
    uint64_t revision = strtoull(text + strlen(MADE "revision "), NULL, 10);
    write_text(expected, revision);
    mark->is_known = strcmp(text, expected) == 0;
    if (mark->is_known)
        mark->revision = revision;
}

/* Opens and locks the file beside the store. */
int kv_mark_open(struct kv *kv, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *path = arena_printf(arena, "%s-lock", kv->path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "open '%s': %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int reason = errno;
        (void)close(fd);
        if (reason == EWOULDBLOCK)
            return error_set(err, ERROR_UNAVAILABLE, "store '%s' " KV_IN_USE, kv->path);
        return error_set(err, ERROR_UNAVAILABLE, "lock '%s': %s", path, strerror(reason));
    }
    kv->mark.fd = fd;
    read_text(&kv->mark);
    return 0;
}

int kv_mark_check(const struct kv *kv, struct error *err)
{
    if (kv->history.head.revision >= kv->mark.revision)
        return 0;
    return error_set(err, ERROR_INVALID,
                     "store '%s' has lost writes: it is at version %" PRIu64 ", %" PRIu64
                     " was acknowledged; '%s-wal' is damaged or gone. Restore a backup, or run "
                     "'propeller-standalone "
                     "serve' without --strict-store",
                     kv->path, kv->history.head.revision, kv->mark.revision, basename(kv->path));
}

static int put_text(struct kv_mark *mark, uint64_t revision)
{
    char text[TEXT_SIZE];

    write_text(text, revision);
    if (pwrite(mark->fd, text, strlen(text), 0) != (ssize_t)strlen(text))
        return -1;
    mark->revision = revision;
    mark->is_made = true;
    return 0;
}

void kv_mark_write(struct kv *kv, uint64_t revision)
{
    if (put_text(&kv->mark, revision) == 0) {
        kv->mark.failed = false;
        return;
    }
    if (!kv->mark.failed)
        log_warn(
            "the revision of the store was not written beside it, trying again with each write",
            "error", strerror(errno), NULL);
    kv->mark.failed = true;
}

/* Written after all else: as long as it is not there, a crash has left a store that nobody was promised. A full
 * disk is no reason not to serve what is there. */
void kv_mark_begin(struct kv *kv)
{
    uint64_t revision = kv->history.head.revision;
    struct error err;

    if (kv->mark.is_made && kv->mark.revision == revision)
        return;
    int r = file_sync_folder_of(kv->path, &err);
    if (r == 0 && (put_text(&kv->mark, revision) < 0 || fsync(kv->mark.fd) < 0))
        r = error_set(&err, ERROR_UNAVAILABLE, "write '%s-lock': %s", kv->path, strerror(errno));
    if (r < 0)
        log_warn("the mark of a new store was not written, trying again at the next start", "error",
                 ERROR_TEXT(&err), NULL);
}

void kv_mark_close(struct kv_mark *mark)
{
    if (mark->fd < 0)
        return;
    (void)fsync(mark->fd); /* what it says is true without it */
    (void)close(mark->fd);
}
