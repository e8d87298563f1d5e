// SPDX-License-Identifier: Apache-2.0
// Services of the operating system beyond POSIX.1-2008.  Each has a fallback for systems other than
// Linux; configure --enable-posix-only selects the fallbacks on Linux, so that they are tested.
#ifndef YK_SYSTEM_H
#define YK_SYSTEM_H

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sockaddr_un;

// ---- threads ----

// A number that identifies the calling thread in messages; on Linux its thread id.
int yk_thread_number(void);
// The name that debuggers show, at most 15 characters.  Fallback: none.
void yk_thread_name(pthread_t thread, const char *name);
// The number of processors that the calling thread may use.  Fallback: all that are online.
int yk_processors(void);
// A hash of their set, so that processes on different processors can be distinguished.  Fallback:
// 1.
uint64_t yk_processors_hash(void);
// Asks for short time slices, so that the calling thread runs soon after it is woken.  Linux before
// 6.12 and the fallback ignore it.
void yk_thread_slice(uint64_t nanoseconds);

// Sleeps until the word is woken if it still has this value, or until the time is over.  It may
// return early. The word may lie in memory that processes share.  Fallback: sleeps a short time.
void yk_word_wait(atomic_uint *word, unsigned value, uint64_t nanoseconds);
void yk_word_wake(atomic_uint *word); // wakes all

// ---- processes ----

// The program as a path for exec; "": not known.
const char *yk_program(void);
// An address in the program's own image.
uintptr_t yk_program_address(void);
// The calling process and what it executes get the signal when the parent ends; may be called
// between fork and exec.  The fallback does nothing; with yk_watch_parent, a thread of the executed
// program looks ten times a second.
void yk_end_with_parent(int signal);
void yk_watch_parent(int signal);
// A descriptor that becomes readable when the process ends.  -1 with ESRCH: it has ended; with
// another error: not known, and the caller has to ask repeatedly.
int yk_process_open(pid_t);
// A descriptor that becomes readable when one of these signals, which are blocked, is pending.
// -1 with ENOSYS: the caller has to ask repeatedly.
int yk_signals_open(const sigset_t *);
// Takes a pending signal of the set; 0: there is none.  fd: from yk_signals_open, or -1.
int yk_signals_take(int fd, const sigset_t *);
// Identifies the boot of the machine: process ids are unique until the next one.  Fallback, or not
// known: "".
void yk_boot_id(char to[64]);
// The parent of a process; 0: not known.  The fallback knows only that of the calling process.
pid_t yk_process_parent(pid_t);
// Was the variable set when the process started?  Fallback, or not known: no.
bool yk_process_has_variable(pid_t, const char *name);
// Bytes of resident memory of a process; NaN: not known, as in the fallback.
double yk_process_memory(pid_t);
// An environment variable, or NULL in a setuid program.
const char *yk_getenv_secure(const char *name);

// Random bytes from the system; EIO.
int yk_random(void *to, size_t bytes);

// ---- descriptors; all are closed by exec ----

int yk_pipe(int ends[2]);
int yk_accept(int listener);
int yk_socket(int family, int type, int protocol);
// Bytes that a TCP connection has received; 0: not known, as in the fallback.
uint64_t yk_socket_received(int fd);
// Has the other end closed the socket, or its half of it?  Fallback: only if no unread bytes
// precede the end.
bool yk_socket_closed(int fd);
// A socket for this machine, its address, and who is at the other end: a process of the same user,
// or -1. Both ends must ask once, before anything else is sent.  Names have fewer than 96
// characters.
int yk_local_socket(bool blocks);
size_t yk_local_address(struct sockaddr_un *, const char *name);
int yk_local_bind(int fd, const char *name);
pid_t yk_local_peer(int fd);
void yk_local_remove(const char *name); // after the listener was closed
// Anonymous shared memory, which cannot be resized once `yk_memory_seal` succeeded.  The fallback
// cannot prevent that.
int yk_memory_open(const char *name);
int yk_memory_seal(int fd);
bool yk_memory_is_sealed(int fd);

// ---- files ----

// Lets the system read a part of the file ahead, where it can.
void yk_file_prefetch(int fd, uint64_t offset, uint64_t bytes);

#endif
