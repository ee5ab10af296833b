/* This module makes cJSON nodes that are one block of memory each; only common/json includes it. */
#pragma once

#include "common/json/json.h"

/*
 * cJSON uses one block for a node, one for its key and one for its text. Here key and text follow
 * the node in its block. They are marked as foreign (cJSON_StringIsConst, cJSON_IsReference), so
 * that cJSON_Delete frees the node alone. They live as long as the node. So such a node is copied
 * by json_copy, not by cJSON_Duplicate, and gets a new key from json_rename or from cJSON.
 *
 * The caller owns a new node until it links it. Nothing here fails: memory is from xmalloc. Not
 * thread-safe; a tree belongs to one thread while it is built. Lengths are in bytes, without NUL.
 */

/* Makes a node of this type. Only cJSON_String and cJSON_Raw have text. The caller writes the key
 * to node->string and the text to node->valuestring, each with its NUL. */
cJSON *json_node(int type, bool has_key, size_t key_len, size_t text_len);

/* Adds the node, which the container owns from now on, at the end of the array or object. O(1). */
void json_link(cJSON *container, cJSON *node);

/* Makes the node of a number of at most JSON_MAX_NUMBER bytes. It is cJSON_Raw if cJSON would print
 * other digits. The caller writes the key. */
cJSON *json_node_of_number(const char *token, size_t len, bool has_key, size_t key_len);

/* Makes a cJSON_Raw node with the text of an array or object, without blanks between its tokens.
 * The text must be valid JSON. The caller writes the key. */
cJSON *json_node_of_text(const char *text, size_t len, bool has_key, size_t key_len);
