/* Runs the rendered scripts `prolog` and `epilog` of a node, which tell its agent of jobs. This needs no Slurm headers,
 * so the tests can load it anywhere.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SNS_HOOKS_H
#define SNS_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#define SNS_HOOK_MESSAGE_SIZE 512

/* Runs DIRECTORY/NAME with the environment of this process and waits at most `most_ms` for its end; then it is killed.
 * Returns true if it has ended and has printed nothing, or if there is no such file; else false with a message of one
 * line: what it printed, or why it did not run. */
bool sns_run_hook(const char *directory, const char *name, int most_ms, char message[], size_t size);

#endif
