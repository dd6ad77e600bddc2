/* Puts a task into its job's control group of resctrl before the job's program starts, so that the ways and the
 * bandwidth of the group hold from the first instruction on; threads and children inherit them from the kernel.
 * This needs no Slurm headers, so the tests can load it anywhere.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SNS_JOIN_H
#define SNS_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A message with a path of the longest length in it. */
#define SNS_JOIN_MESSAGE_SIZE 512

/* Whether `path` may stand as resctrl= or hooks= in plugstack.conf: absolute, of letters, digits and . _ - / */
bool sns_is_directory_name(const char *path);

/* Moves the process `pid` into RESCTRL/sns_job<job> if that group exists, else into RESCTRL/sns_shared if that exists.
 * Takes at most `most_ms`, even if the file system does not answer. Returns true if it was moved or if there is no
 * group to move it to, else false with a message of one line. */
bool sns_join(const char *resctrl, uint32_t job, pid_t pid, int most_ms, char message[], size_t size);

#endif
