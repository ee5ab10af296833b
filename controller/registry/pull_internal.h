/* Steps of a pull for its two sources, pull_plan.c and pull_signatures.c. */
#pragma once

#include "controller/registry/pull_plan.h"

/* Ends the pull. The message is "'<repository>' " and the text. */
void pull_end(struct pull *pull, enum pull_next outcome, enum reason reason, const char *format,
              ...) PRINTF_LIKE(4, 5);
/* Fills a GET below /v2/<name>/: "manifests/<reference>" or "blobs/<digest>". */
void pull_get(const struct pull *pull, struct pull_request *ret, const char *below,
              const char *accept, size_t max_reply);
/* Whether the body has the digest. */
bool pull_body_is(const struct pull_reply *reply, const char *digest);
/* Goes on behind the checks of signatures. */
void pull_signed(struct pull *pull);

/* Begins to look for a signature of the digests in pull->signatures. */
void pull_signatures_begin(struct pull *pull);
void pull_signatures_request(const struct pull *pull, struct pull_request *ret);
/* Takes a reply of status 2xx or one that stands for "there is none". */
void pull_signatures_take(struct pull *pull, const struct pull_reply *reply);
