/* A file system for SQLite whose power goes, whose disk is full and whose reads fail when the test says so:
 * over the system's own, as "fault". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once a process. */
void fault_vfs_install(void);

/*
 * A write stays unsynced until SQLite syncs its file, although every reader sees it. (Nothing is synced to the
 * real disk.) Writes what a disk could hold if the power went now: what was synced, and of the rest each sector of 512
 * bytes by chance; as SQLite supposes of disks, bytes beside what was written stay as they were (POWERSAFE_OVERWRITE).
 */
void fault_vfs_lose_power(const char *path, const char *to_path, uint64_t *random);

/* Called before each write and sync, on the thread that does it; NULL: no more. */
typedef void fault_vfs_hook_fn(void *ctx);
void fault_vfs_set_hook(fault_vfs_hook_fn *function, void *ctx);
/* Called when a reader has let its snapshot go, on its thread. */
void fault_vfs_set_read_hook(fault_vfs_hook_fn *function, void *ctx);

/* Files may grow by so many bytes, then the disk is full; negative: there is no end. */
void fault_vfs_set_space(int64_t bytes);
/* Syncs fail, and keep nothing. */
void fault_vfs_set_broken(bool is_broken);
/* Called before each read, on the thread that does it: whether it fails (as EIO). NULL: none does. */
typedef bool fault_vfs_judge_fn(void *ctx);
void fault_vfs_set_unreadable(fault_vfs_judge_fn *function, void *ctx);
/* All reads fail after so many more; negative: none does. */
void fault_vfs_fail_after(int reads);
int fault_vfs_failed(void); /* reads that did so far */
/* Bytes that were read so far, of all files. */
size_t fault_vfs_read(void);
