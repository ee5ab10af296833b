/* propeller-standalone init and add-user: certificates, tokens, kubeconfigs. */
#pragma once

#include "standalone/process/settings.h"

/* Who the controller of this process is. */
#define INIT_CONTROLLER "propeller-controller"

/* What is there already stays: tokens and the authority do not change. A kubeconfig that is lost is made anew,
 * with a new token: the one of before counts no more. ERROR_INVALID names what is there and of no use, or that
 * the users of these kubeconfigs are lost; then neither users nor kubeconfigs are written. ERROR_UNAVAILABLE:
 * that of the controller is lost, and a server runs, whose controller would not know another. */
int init_run(struct arena *arena, const struct standalone_settings *settings,
             struct error *err) MUST_CHECK;
/* Prints the kubeconfig; without an address in the settings with that of admin.kubeconfig. ERROR_EXISTS:
 * there is a user of that name; ERROR_INVALID: there are no users, whom init makes, or they are damaged. Who
 * cannot be told of his kubeconfig is not added. */
int init_add_user(struct arena *arena, const struct standalone_settings *settings,
                  struct error *err) MUST_CHECK;

/* data_dir_keep_certificates for the names of the settings. */
int init_keep_certificates(struct arena *arena, const struct standalone_settings *settings,
                           bool may_begin, struct error *err) MUST_CHECK;

/* ERROR_INVALID: the kubeconfig of this name leads to this server, and trusts another authority or has a token
 * that is nobody's. One that cannot be read is not judged. */
int init_check_kubeconfig(struct arena *arena, const struct standalone_settings *settings,
                          const char *file, struct error *err) MUST_CHECK;

/* False: the kubeconfig of this name in the data directory speaks of another server than that of the
 * settings, *ret. One that cannot be read is not judged. */
bool init_finds_server(struct arena *arena, const struct standalone_settings *settings,
                       const char *file, const char **ret) MUST_CHECK;
