/* The file of --module-public-keys, read again when it changes. Any thread; guarded by a lock. */
#pragma once

#include "controller/registry/signature.h"

struct key_file;
struct key_file *key_file_create(const char *path); /* NULL: no signature is needed */
void key_file_destroy(struct key_file *file);       /* NULL is fine */
/* Returns the keys of the file as it is now, a new reference, or NULL without a path. ERROR_INVALID: they cannot be used;
 * the message names the flag and the file. */
int key_file_read(struct key_file *file, struct public_keys **ret, struct error *err) MUST_CHECK;
