/* A real mosquitto for tests, on a free port of 127.0.0.1, with its files in a directory of its
 * own.
 */
#pragma once

#include <stdint.h>

/*
 * What a test sees of it is what an installation with config/mosquitto would see: persistent, saved
 * on every change, in-flight window 20. Anonymous clients may do everything unless configured
 * otherwise. If mosquitto is not installed the test fails.
 */
struct broker;

struct broker *broker_create(void); /* a directory and a port; nothing runs yet */
void broker_destroy(struct broker *broker);

/* One more line of configuration, for the next start; later lines win. */
void broker_configure(struct broker *broker, const char *line);
/* A user with a password; from now on only users are let in. */
void broker_add_user(struct broker *broker, const char *name, const char *password);

/* From the next start on it refuses every subscription but to "good", until clients have been allowed to make them
 * with this payload on this topic. Fails the test if mosquitto's plugin is not installed. */
void broker_refuse_subscriptions(struct broker *broker);
#define BROKER_CONTROL "$CONTROL/dynamic-security/v1"
#define BROKER_ALLOW                                                                               \
    "{\"commands\":[{\"command\":\"setDefaultACLAccess\",\"acls\":"                                \
    "[{\"acltype\":\"subscribe\",\"allow\":true}]}]}"

void broker_start(struct broker *broker);  /* returns when it accepts connections */
void broker_stop(struct broker *broker);   /* SIGTERM: sessions and messages are saved */
void broker_kill(struct broker *broker);   /* SIGKILL */
void broker_freeze(struct broker *broker); /* SIGSTOP: alive for TCP, silent for MQTT */
void broker_thaw(struct broker *broker);

/* Its log has this, soon. */
void broker_wait_logged(const struct broker *broker, const char *line);

const char *broker_dir(const struct broker *broker); /* for files that the configuration names */
uint16_t broker_port(const struct broker *broker);
