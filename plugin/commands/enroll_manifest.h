/*
 * This module makes the key of a device, its Secret, its environment file, and its account.
 *
 * Only enroll_secret and enroll_env_file hold the key. Strings are in the arena.
 */
#pragma once

#include "common/json/json.h"

#define ENROLL_MAX_KEY 4096
/* Bytes of a new key, which is written as hexadecimal digits. */
#define ENROLL_NEW_KEY 32

/* Reads the key of a device from a file, without the line end behind it; file NULL: a new random key. */
int enroll_key(struct arena *arena, const char *file, const char **ret,
               struct error *err) MUST_CHECK;
/* The Secret "<proplet>-key" of a Proplet's manifest, with the labels of the Proplet that are ours. */
cJSON *enroll_secret(struct arena *arena, const cJSON *proplet, const char *key);
/* The settings of the device in both vocabularies of names, and its account in a comment. */
const char *enroll_env_file(struct arena *arena, const cJSON *proplet, const char *key);
/* A line for the password file of mosquitto 2: "device-1:$7$101$<salt>$<hash>". salt: 12 bytes. */
const char *enroll_account(struct arena *arena, const char *client_id, const char *key,
                           const void *salt);
