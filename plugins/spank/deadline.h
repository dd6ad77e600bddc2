/* Waiting that ends: for a pipe, and for a process. SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SNS_DEADLINE_H
#define SNS_DEADLINE_H

#include <stdbool.h>
#include <sys/types.h>

/* Milliseconds by a clock that is never set. */
long long sns_now_ms(void);

/* Waits at most `most_ms` until something can be read or the other end is closed. */
bool sns_readable(int descriptor, long long most_ms);

/* Waits at most `most_ms` for the end of a child process. True if it has ended. */
bool sns_ended(pid_t child, long long most_ms);

#endif
