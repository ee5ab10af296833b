/* What is served besides objects: discovery, OpenAPI, /version, health. */
#pragma once

#include "standalone/api/call.h"

/* Those of OpenAPI depend on the resources alone and are made once, when they are asked for. Any
 * thread. */
struct api_documents;
struct api_documents *api_documents_create(void);
void api_documents_destroy(struct api_documents *documents); /* NULL is fine */
size_t api_documents_count(struct api_documents *documents); /* that are made and kept */
