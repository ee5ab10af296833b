/* JSON text in less space: what objects of these kinds have in common becomes one byte. */
#pragma once

#include <stddef.h>

/*
 * Bytes that no JSON text has (control characters, which are escaped in it, and those that no UTF-8
 * has) stand for phrases: keys with their quotes, in the order in which the API server sorts them,
 * and values that most objects share. A phrase begins with a quote, so only there it is looked for.
 * A text that has none of them is stored as it is.
 *
 * The phrases may change at any time: nothing that is packed leaves the process.
 */

/* text: as json_text prints it. ret has room for len bytes, of which so many are used; it may be text. */
size_t json_pack(const char *text, size_t len, char *ret);
size_t json_unpacked_len(const char *packed, size_t len);
/* ret: room for json_unpacked_len bytes. */
void json_unpack(const char *packed, size_t len, char *ret);
