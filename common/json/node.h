/* Nodes of one block each, for this folder only: a node of cJSON with its key and its text behind it. */
#pragma once

#include "common/json/json.h"

/*
 * cJSON has a block for the key and one for the text. Here both follow the node and are marked as
 * not its own (cJSON_StringIsConst, cJSON_IsReference), so that cJSON_Delete frees the node alone.
 * They live as long as it does: json_copy copies them, as cJSON_Duplicate would not, and a new key
 * is given by functions of cJSON or by json_rename.
 *
 * type: cJSON_String, cJSON_Raw or one without text. key: NULL for none. Both have room for so many
 * bytes and a NUL, which is not written: node->string and node->valuestring.
 */
cJSON *json_node(int type, bool has_key, size_t key_len, size_t text_len);

/* At the end of an array or an object; O(1). */
void json_link(cJSON *container, cJSON *node);

/* The node of a number as the token says it: Raw where cJSON would print other digits. */
cJSON *json_node_of_number(const char *token, size_t len, bool has_key, size_t key_len);

/* A Raw node of an array or object: its text without blanks between the tokens. */
cJSON *json_node_of_text(const char *text, size_t len, bool has_key, size_t key_len);
