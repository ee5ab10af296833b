/* JSON that looks random and is the same in each run: all that a document may have, the edges of numbers, escape
 * sequences and depths, and damage to it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Which of them is decided by number, not 0. There until the next call; a NUL follows, and some are in it. */
const char *json_document(uint64_t number, size_t *ret_len);
void json_document_release(void);
