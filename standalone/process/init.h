/* propeller-standalone init and add-user: certificates, tokens, kubeconfigs. */
#pragma once

#include "standalone/process/settings.h"

/* What is there already stays: tokens and the authority do not change. */
int init_run(struct arena *arena, const struct standalone_settings *settings,
             struct error *err) MUST_CHECK;
/* Prints the kubeconfig; without an address in the settings with that of admin.kubeconfig. ERROR_EXISTS:
 * there is a user of that name. */
int init_add_user(struct arena *arena, const struct standalone_settings *settings,
                  struct error *err) MUST_CHECK;

/* data_dir_keep_certificates for the names of the settings. */
int init_keep_certificates(struct arena *arena, const struct standalone_settings *settings,
                           bool may_begin, struct error *err) MUST_CHECK;

/* False: the kubeconfig of this name in the data directory speaks of another server than that of the
 * settings, *ret. One that cannot be read is not judged. */
bool init_finds_server(struct arena *arena, const struct standalone_settings *settings,
                       const char *file, const char **ret) MUST_CHECK;
