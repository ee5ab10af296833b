/* The settings that every libcurl handle towards the API server has in common: address, TLS,
 * token, keep-alive. */
#pragma once

#include "common/kube/config.h"
#include "common/net/curl_transfer.h"

/* The part of the configuration that does not change, worked out once. Shared by any threads. */
struct curl_setup;
struct curl_setup *curl_setup_create(struct kube_config *config); /* config must outlive it */
void curl_setup_destroy(struct curl_setup *setup);

/* Adds the headers of every request to a transfer that sets its own, which replace those of the handle. */
void curl_setup_add_headers(const struct curl_setup *setup, struct curl_transfer *transfer);

/*
 * A new handle (curl_handle_create), NULL when libcurl refuses: with TLS from memory, proxy, HTTP/2 on a
 * shared connection (PIPEWAIT) and TCP keep-alive. setup must outlive it.
 */
/* A peer that acknowledges nothing for this time is dead: its connection ends, with all streams. */
#define CURL_SETUP_DEAD_PEER_MS 30000
CURL *curl_setup_handle(const struct curl_setup *setup);

/* After a 401: the token of now is not accepted, so the next request asks for another one. */
void curl_setup_refuse_token(const struct curl_setup *setup);
/* Points the handle to a path from "/" and gives it the bearer token of now. */
int curl_setup_request(const struct curl_setup *setup, CURL *easy, const char *path,
                       struct error *err) MUST_CHECK;
