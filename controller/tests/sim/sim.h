/* One seed decides everything: threads, time, randomness and faults of several controllers in one
 * process (as FoundationDB and TigerBeetle test themselves). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The code under test runs unchanged on its own threads, but only one of them runs at a time. The
 * linker puts the functions of sim_threads.c in the place of those of libpthread and of the clock
 * (--wrap): a thread that would block gives the processor to one that the seed chooses, and when all
 * of them wait, the virtual clock jumps to the earliest deadline. So a run takes no real time, and a
 * seed repeats it exactly.
 *
 * Code that uses sockets is replaced: the transport and the watch loop (sim_api.c, on the fake API
 * server), and the MQTT connection (sim_broker.c).
 *
 * All functions must be called on a thread of the simulation, unless stated otherwise.
 */

/* One controller process, from its start to its end. Never freed: threads of a killed one remain. */
struct replica {
    unsigned number;      /* counted from 1, over all that were started */
    bool dead;            /* killed, or ended: its threads never run again */
    bool paused;          /* SIGSTOP */
    bool was_paused;      /* at any time: then a stop may take longer */
    bool no_api;          /* it cannot reach the API server */
    bool no_broker;       /* nor the broker */
    int64_t wall_step_us; /* its wall clock is wrong by this */
};

/* Starts the simulation: begin runs on its first thread, which belongs to no replica. Returns when
 * begin has returned. Once per process. */
void sim_run(uint64_t seed, void (*begin)(void));

int64_t sim_now_us(void);            /* of the monotonic and the boot clock */
uint64_t sim_random(uint64_t below); /* 0 … below - 1 */
bool sim_chance(unsigned one_in);    /* true once in so many times on average */
void sim_sleep_us(int64_t us);

/* Blocks until sim_wake(on), or until deadline_us (INT64_MAX: for ever); false: the deadline. */
bool sim_wait(const void *on, int64_t deadline_us);
void sim_wake(const void *on);

/* Between these no other thread runs: for code that the real world executes in another process. */
void sim_atomic_begin(void);
void sim_atomic_end(void);

/* The replica of the running thread; NULL: it belongs to the world. Threads that it starts belong to
 * the same. */
struct replica *sim_replica(void);
void sim_spawn(struct replica *replica, void *(*function)(void *ctx), void *ctx);
/* Its threads stop where they are, for ever. */
void sim_kill(struct replica *replica);
/* SIGSTOP and SIGCONT. */
void sim_pause(struct replica *replica, bool paused);

/* Ends the process: prints the message, the seed and the virtual time. */
_Noreturn void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line of the trace, printed with SIM_TRACE=1. */
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
