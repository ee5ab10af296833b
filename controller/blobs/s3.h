/* Addresses, replies and options of S3, without a connection. Inside of blobs/. */
#pragma once

#include "controller/blobs/model_store.h"

/* Everything encoded but A-Z a-z 0-9 - _ . ~ and, with slashes, '/': as Signature Version 4 wants it. */
const char *s3_encode(struct arena *arena, const char *text, bool slashes);

/* The text of the next element <name> of a reply; moves *at behind it. NULL: there is no other. The
 * names and values that we ask for hold no markup but the five predefined entities. */
const char *s3_element(struct arena *arena, const char **at, const char *name);

/* For a status that is not 2xx, with the <Code> of the reply. */
int s3_error(struct arena *arena, const char *method, int status, const char *body,
             struct error *err) MUST_CHECK;

/* 0 or ERROR_INVALID that names the option, as the flag is called. */
int s3_options_check(const struct model_s3_options *options, struct error *err) MUST_CHECK;
