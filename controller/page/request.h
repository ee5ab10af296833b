/*
 * This module reads what a request says to the page: parameters, cookies and logins.
 *
 * Requests come from anyone and may have any bytes. Nothing is decoded: names of lists, namespaces and objects need no
 * encoding. Texts of results are in the arena. ERROR_INVALID names the part of the request and what it must be. Pure; any
 * thread.
 */
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/kube/object.h"

/* The value of a parameter of "a=1&b=2"; query NULL: empty. NULL: it is not there, or is empty. */
const char *page_parameter(struct arena *arena, const char *query, const char *name);
/* *ret NULL: all namespaces. */
int page_read_ns(struct arena *arena, const char *query, const char **ret,
                 struct error *err) MUST_CHECK;
/* *ret_list is an index of PAGE_LIST. */
int page_read_object(struct arena *arena, const char *query, size_t *ret_list,
                     struct kube_name *ret, struct error *err) MUST_CHECK;

/* "propeller-8082=" for the port of the Host header. Browsers send a cookie to all ports of a host, and a viewer may look
 * at two clusters at once. */
const char *page_cookie_name(struct arena *arena, const char *host);
/* The value of the cookie of this name in a Cookie header; NULL: none. */
const char *page_cookie(struct arena *arena, const char *header, const char *name);

/* The token of a login, which may be a header of a request: {"token": text}. */
int page_read_token(struct arena *arena, const char *content_type, const char *body,
                    size_t body_len, const char **ret, struct error *err) MUST_CHECK;
