/*
 * Modules in a folder, by their digest, with a limit of bytes.
 *
 *   <dir>/propeller-modules    marks the folder as ours; locked by the process that has it
 *   <dir>/sha256/<hex>         a module
 *   <dir>/manifests/<hex>      a record: the module of a manifest, and who could read it
 *   <dir>/tmp/                 files that are not whole; emptied at the start
 *
 *  1. A file gets its name only when it is whole, so a process that is killed leaves no part of a module.
 *  2. A module is used only after its bytes were hashed in this process.
 *  3. Modules and reservations of all writers are at most max_bytes together. Room is made by removing the least recently
 *     used modules that are not pinned.
 *
 * Any thread. A lock guards the names and sizes; files are written and hashed without it. Digests are "sha256:<hex>".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"

#define MODULE_CACHE_MAX 4096 /* modules, and records */

struct module_cache;

/* Makes the folder with mode 0700, or checks that it is ours, and locks it. ERROR_INVALID: others may write it, it holds
 * something else, another process has it, or it cannot be written. */
int module_cache_open(const char *dir, int64_t max_bytes, struct module_cache **ret,
                      struct error *err) MUST_CHECK;
void module_cache_close(struct module_cache *cache); /* NULL is fine */

/* Bytes of a module on their way into the folder. One thread uses it. */
struct module_writer;
/* Reserves room for a module. NULL: there is none, even without all modules that are not pinned. */
struct module_writer *module_writer_create(struct module_cache *cache, int64_t bytes);
/* Drops what was written; the reservation stays. ERROR_UNAVAILABLE: the disk refuses. */
int module_writer_restart(struct module_writer *writer, struct error *err) MUST_CHECK;
/* ERROR_TOO_LARGE: more than was reserved, nothing is written. ERROR_UNAVAILABLE: the disk refuses, for example because
 * it is full. */
int module_writer_add(struct module_writer *writer, const void *bytes, size_t len,
                      struct error *err) MUST_CHECK;
int64_t module_writer_bytes(const struct module_writer *writer);
bool module_writer_is_wasm(const struct module_writer *writer); /* begins with 00 61 73 6d */
/* Returns the digest of all bytes that were added, in the arena; nothing can be added after it. */
const char *module_writer_digest(struct module_writer *writer, struct arena *arena);
/* Gives the bytes the name of their digest, pinned once. */
int module_writer_commit(struct module_writer *writer, struct error *err) MUST_CHECK;
/* Ends the reservation, and removes what was not committed. NULL is fine. */
void module_writer_destroy(struct module_writer *writer);
DEFINE_CLEANUP(struct module_writer *, module_writer_destroy)

/* Pins a module that was hashed in this process, and writes its size to *ret_bytes. may_hash: hashes one that was not,
 * which blocks; one that differs is removed. false: it is not there, or not hashed. */
bool module_cache_pin(struct module_cache *cache, const char *digest, bool may_hash,
                      int64_t *ret_bytes);
void module_cache_unpin(struct module_cache *cache, const char *digest);
/* Puts bytes with this digest into the folder if they are not there, and pins them. false: there is no room. */
bool module_cache_put(struct module_cache *cache, const char *digest, const void *bytes,
                      size_t len);
/* Whether room for so many bytes could be made. */
bool module_cache_has_room(struct module_cache *cache, int64_t bytes);
/* Reads len bytes of a module that is pinned. ERROR_NOT_FOUND: it is gone, or the file is not the one that was hashed; then it
 * is removed. ERROR_UNAVAILABLE: the disk refuses. */
int module_cache_read(struct module_cache *cache, const char *digest, int64_t offset, void *ret,
                      size_t len, struct error *err) MUST_CHECK;

/* The memory of a manifest. Texts are in the arena of the caller. */
struct module_record {
    const char *layer; /* digest of the module */
    int64_t bytes;     /* of the module */
    const char *
        public_in; /* repository that gives the manifest without credentials; NULL: none is known */
    const char *signed_by; /* fingerprint of the key that signed it; NULL: it was not looked for */
};
/* false: nothing is remembered. */
bool module_cache_record(struct module_cache *cache, struct arena *arena, const char *manifest,
                         struct module_record *ret);
/* Remembers; a record that cannot be written is not kept. */
void module_cache_remember(struct module_cache *cache, const char *manifest,
                           const struct module_record *record);
