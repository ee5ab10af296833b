/* A plain HTTP/1.1 server on a thread: lists are answered, watches stay open until told otherwise.
 * A request is meant by a part of its path. Any thread; what fails aborts the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tiny_server;
struct tiny_server *tiny_server_start(uint16_t port); /* 0: any */
/* In two steps, for who is connected to as soon as it listens: until it serves, nobody is answered. */
struct tiny_server *tiny_server_listen(uint16_t port);
void tiny_server_serve(struct tiny_server *server);
void tiny_server_stop(struct tiny_server *server); /* breaks all connections off */
uint16_t tiny_server_port(const struct tiny_server *server);

/*
 * From now on; the newest that matches counts, without one the answer is 404. A 200 to a request
 * with "watch=true" begins with body and stays open.
 */
void tiny_server_answer(struct tiny_server *server, const char *match, int status,
                        const char *body);
/* The reply breaks off after the body, which is announced as longer. */
void tiny_server_answer_in_part(struct tiny_server *server, const char *match, const char *body);

/* To the open watch that matches, which is waited for. */
void tiny_server_push(struct tiny_server *server, const char *match, const char *bytes);
void tiny_server_end(struct tiny_server *server, const char *match);

/* Waits until so many requests that match have come since the start. */
void tiny_server_wait(struct tiny_server *server, const char *match, size_t count);
/* A line of the last request that matches: "Authorization: Bearer x". */
bool tiny_server_saw(struct tiny_server *server, const char *match, const char *line);
