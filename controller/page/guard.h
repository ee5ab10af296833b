/*
 * This module decides which requests the page answers at all, and with which headers.
 *
 * The page shows what a viewer may see to a browser that also runs pages of other sites. So a request
 * must name this server (against DNS rebinding) and must not come from a page of another site. Pure; any
 * thread; nothing fails.
 */
#pragma once

#include "common/net/http_server.h"

/* Whether a Host header names this machine, or one of the further names (--page-host). The port is not looked
 * at. host NULL: no header, which no browser does. */
bool page_host_is_known(const char *host, const char *const *names, size_t len);
/* Whether Sec-Fetch-Site (W3C Fetch Metadata) lets the request through. site NULL: an old browser or a program, which
 * has no cookie of a viewer unless it was given one. */
bool page_site_is_own(const char *site);
/* Sets the headers of every answer: no foreign content, no frames, no guesses of types, no cache. extra: one more, or
 * one with the name NULL. */
void page_set_headers(struct http_server_reply *reply, struct http_header extra);
