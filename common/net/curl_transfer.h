/* libcurl's handles and requests, for all clients of HTTP: the one place where what they have in common is set. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include "common/base/arena.h"
#include "common/base/buf.h"

#define CURL_CONNECT_TIMEOUT_MS 10000

/* Before anything else of libcurl. Any thread, any number of times. */
void curl_transfer_init(void);

/* A handle with TLS 1.2 or later, a limit for connecting, http and https, no signals and no redirects. NULL: libcurl
 * refuses. */
CURL *curl_handle_create(void);
/* Forgets all options, which may hold keys, and sets those of a new handle. Connections stay. */
void curl_handle_reset(CURL *easy);

/* One request and its reply on a handle, from curl_transfer_begin to curl_transfer_end; it must not move. */
struct curl_transfer {
    CURL *easy;
    struct curl_slist *headers;
    struct buf body; /* of the reply. Over its maximum, the transfer ends with CURLE_WRITE_ERROR */
    bool connected;  /* the request has begun to go out, so it may have been executed */
    bool is_sent_once; /* the caller's: not sent again by itself if the connection broke */
};

/* body NULL: none, and body_len does not count. timeout_ms: of the whole request. */
void curl_transfer_begin(struct curl_transfer *transfer, CURL *easy, const char *method,
                         const char *body, size_t body_len, uint32_t timeout_ms, size_t max_reply);
/* "Name: value", before the handle is performed. */
void curl_transfer_add_header(struct curl_transfer *transfer, const char *line);
/* Forgets the lines that were added. */
void curl_transfer_drop_headers(struct curl_transfer *transfer);
int curl_transfer_status(const struct curl_transfer *transfer); /* of the reply */
/* The body, which belongs to the arena from now on, NUL behind it. */
const char *curl_transfer_take_body(struct curl_transfer *transfer, struct arena *arena,
                                    size_t *ret_len);
void curl_transfer_end(struct curl_transfer *transfer);
