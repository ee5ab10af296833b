/*
 * This module decides what `ui` runs and opens: where the page of a pod is, how kubectl forwards its port, and which
 * address a browser gets.
 *
 * Pure. Results are in the arena, or borrowed from the arguments.
 */
#pragma once

#include "common/json/json.h"
#include "plugin/cli/session.h"

#define UI_PAGE_PORT                                                                               \
    8082 /* of propeller-standalone, and of a controller whose flags cannot be read */
#define UI_MAX_URL 2048 /* bytes */

/* Returns the name of ConfigMap i whose data are variables of the controller in the pod; NULL: there are no more. */
const char *ui_settings_name(const cJSON *pod, size_t i);
/* Returns --page-bind-address of the controller in the pod: of its command line, its variables, or the ConfigMaps of
 * ui_settings_name, which are in this order and NULL where they cannot be read. NULL: it is not set there. */
const char *ui_page_address(const cJSON *pod, const cJSON *const *settings, size_t len);
/* Returns the port of an address of that flag. 0: the page is turned off, or the address has no port. */
unsigned ui_page_port(const char *address);

struct ui_forward {
    const char *ns, *pod;
    unsigned page_port;
    unsigned local_port; /* 0: kubectl chooses a free one */
};
/* Returns the NULL-terminated arguments of `kubectl port-forward`, with the flags that choose cluster and user. */
const char *const *ui_forward_arguments(struct arena *arena, const struct common_flags *flags,
                                        const struct ui_forward *forward);
/* Returns the port that kubectl listens on, if this line of its output names it; 0: it does not. */
unsigned ui_forwarded_port(const char *line);

/* Whether the text is an http or https URL without user, query and fragment. */
bool ui_url_is_usable(const char *url);
/* Whether such a URL names the loopback interface of this machine. */
bool ui_url_is_loopback(const char *url);
/* Returns where the page is if the API server at this URL is a propeller-standalone. */
const char *ui_standalone_url(struct arena *arena, const char *server);
/* Returns the address with which the page logs in by itself. The token is secret. */
const char *ui_login_url(struct arena *arena, const char *url, const char *token);
