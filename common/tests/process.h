/* Programs and directories of a test: both are gone when the test is, however it ends. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A directory below $TMPDIR or /tmp; path must be freed. */
char *temp_dir_create(void);
void temp_dir_destroy(char *path); /* with all that is in it; frees path */

/* Writes a file of the directory; returns its path, which must be freed. */
char *temp_file_write(const char *dir, const char *name, const char *text);
/* What a file of the directory holds, as a string that must be freed. */
char *temp_file_read(const char *dir, const char *name);

/* Starts argv[0], a path or looked for in $PATH and the sbin directories; its output goes to log_path. It
 * dies with the thread that started it. Fails the test if there is no such program. */
pid_t process_start(const char *const argv[], const char *log_path);
/* Sends a signal (0: none) and waits for the end. Returns what waitpid says. */
int process_end(pid_t pid, int signal);
bool process_has_ended(pid_t pid); /* true once: it takes the status */
/* Waits until the program accepts connections on the port of 127.0.0.1. Fails the test, with its log <dir>/<log> and
 * what it does instead, if it ends or never does. */
void process_wait_listening(pid_t pid, uint16_t port, const char *dir, const char *log);
/* build/<flavour>/bin/<name>: the program that was built with the test build/<flavour>/<part>/tests/x.
 * Must be freed. */
char *process_built(const char *name);
/* Runs to its end; fails the test, with its output, if it does not exit with 0. */
void process_run(const char *dir, const char *const argv[]);
/* A port of 127.0.0.1 for a program to listen on; no other test on this machine gets it until this
 * process ends. Below the ports that the kernel gives to clients: a client that connects again while
 * the program is away could otherwise get that very port, and talk to itself. */
uint16_t process_free_port(void);
