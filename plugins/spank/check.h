/* Checks the values of options on the submit host, with the grammar and the messages of slurm_sns/submit, which is the
 * authority (the submit filter checks again). This needs no Slurm headers, so the tests can load it anywhere.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SNS_CHECK_H
#define SNS_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Enough for every message with a truncated value, and for a list of heuristics of SNS_MOST_HEURISTICS bytes. */
#define SNS_MOST_HEURISTICS 1024
#define SNS_SPACED_SIZE (SNS_MOST_HEURISTICS * 2 + 1)
#define SNS_MESSAGE_SIZE (SNS_SPACED_SIZE + 256)

bool sns_is_alpha(const char *text);
bool sns_is_program(const char *text);
bool sns_is_max_scale(const char *text);

/* Whether `text` is empty, yes, no, or the seconds between two checkpoints. */
bool sns_is_restartable(const char *text);

/* Whether `list` is a comma-separated list of one or more heuristic names (a-z, 0-9, -). */
bool sns_is_heuristics(const char *list);

/* Writes the list "a,b" as "a, b". */
void sns_spaced(const char *list, char text[SNS_SPACED_SIZE]);

/* Whether `text` is a name in `list`; with an empty list, whether it could be the name of a heuristic. */
bool sns_is_heuristic(const char *text, const char *list);

/* Checks the value of the option `--sns-<hint>`. Returns true if it is valid, else false with a message of one line. */
bool sns_check(const char *hint, const char *value, const char *heuristics, char message[], size_t size);

#endif
