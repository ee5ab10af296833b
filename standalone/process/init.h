/* propeller-standalone init and add-user: certificates, tokens, kubeconfigs. */
#pragma once

#include "standalone/process/settings.h"

/* Existing files stay: tokens and the authority do not change. An admin.kubeconfig that is lost is made again with a
 * new token, which replaces the old one. ERROR_INVALID names a file that is there and cannot be used, or says that the
 * users are lost while the kubeconfig is there; then neither is written. */
int init_run(struct arena *arena, const struct standalone_settings *settings,
             struct error *err) MUST_CHECK;
/* Prints the kubeconfig; without an address in the settings with that of admin.kubeconfig.
 * ERROR_EXISTS: there is a user of that name; ERROR_INVALID: there are no users, which init
 * makes, or they are damaged. A user whose kubeconfig cannot be printed is not added. */
int init_add_user(struct arena *arena, const struct standalone_settings *settings,
                  struct error *err) MUST_CHECK;

/* The file of users. ERROR_INVALID: there is none, or it is damaged; the message says what to do. */
int init_read_users(struct arena *arena, const struct standalone_settings *settings,
                    const char **ret, struct error *err) MUST_CHECK;
/* data_dir_keep_certificates for the names of the settings. */
int init_keep_certificates(struct arena *arena, const struct standalone_settings *settings,
                           bool may_begin, struct error *err) MUST_CHECK;
