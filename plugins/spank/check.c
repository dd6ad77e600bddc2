/* See check.h. Plain ASCII comparisons throughout: no locale, no strtod (which takes 0x1p-1, nan and 1e-1).
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "check.h"

#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define MOST_CHECKPOINT_S "604800"

enum {
	MOST_DECIMALS = 9,   /* of alpha */
	MOST_NAME_BYTES = 64,
	MOST_SCALE = 64,
	SHOWN_BYTES = 40,    /* of a wrong value */
};

/* Whether `text` has one to `most` bytes, all of them in `set`. */
static bool consists_of(const char *text, const char *set, size_t most)
{
	size_t length = strspn(text, set);

	return length >= 1 && length <= most && text[length] == '\0';
}

bool sns_is_alpha(const char *text)
{
	if (strcmp(text, "1") == 0)
		return true;
	if (text[0] == '1' && text[1] == '.')
		return consists_of(text + 2, "0", MOST_DECIMALS);
	if (text[0] == '0')
		text++;
	return text[0] == '.' && consists_of(text + 1, DIGITS, MOST_DECIMALS) && strpbrk(text, "123456789") != NULL;
}

bool sns_is_program(const char *text)
{
	return consists_of(text, LOWER UPPER DIGITS "._+-", MOST_NAME_BYTES);
}

bool sns_is_max_scale(const char *text)
{
	if (text[0] == '0' || !consists_of(text, DIGITS, 2))
		return false;
	int scale = text[0] - '0';
	if (text[1] != '\0')
		scale = scale * 10 + (text[1] - '0');
	return scale <= MOST_SCALE;
}

bool sns_is_restartable(const char *text)
{
	size_t most = strlen(MOST_CHECKPOINT_S);

	if (text[0] == '\0' || strcmp(text, "yes") == 0 || strcmp(text, "no") == 0)
		return true;
	/* Numbers with as many digits are ordered as their texts. */
	return text[0] != '0' && consists_of(text, DIGITS, most) &&
	       (strlen(text) < most || strcmp(text, MOST_CHECKPOINT_S) <= 0);
}

bool sns_is_heuristics(const char *list)
{
	size_t length = strlen(list);

	return consists_of(list, LOWER DIGITS "-,", SNS_MOST_HEURISTICS) && list[0] != ',' && list[length - 1] != ',' &&
	       strstr(list, ",,") == NULL;
}

bool sns_is_heuristic(const char *text, const char *list)
{
	size_t length = strlen(text);

	if (!consists_of(text, LOWER DIGITS "-", MOST_NAME_BYTES))
		return false;
	if (list[0] == '\0')
		return true;
	for (const char *name = list; name != NULL;) {
		const char *comma = strchr(name, ',');
		size_t extent = comma != NULL ? (size_t) (comma - name) : strlen(name);
		if (extent == length && strncmp(name, text, length) == 0)
			return true;
		name = comma != NULL ? comma + 1 : NULL;
	}
	return false;
}

/* Writes `value` truncated and in quotes; a byte that is a quote or no printable ASCII becomes a question mark. */
static void quote(const char *value, char shown[SHOWN_BYTES + 6])
{
	size_t at = 0;

	shown[at++] = '\'';
	for (size_t i = 0; value[i] != '\0' && i < SHOWN_BYTES; i++)
		shown[at++] = value[i] >= 0x20 && value[i] <= 0x7e && value[i] != '\'' ? value[i] : '?';
	strcpy(shown + at, strlen(value) > SHOWN_BYTES ? "...'" : "'");
}

void sns_spaced(const char *list, char text[SNS_SPACED_SIZE])
{
	size_t at = 0;

	for (size_t i = 0; list[i] != '\0' && i < SNS_MOST_HEURISTICS; i++) {
		text[at++] = list[i];
		if (list[i] == ',')
			text[at++] = ' ';
	}
	text[at] = '\0';
}

bool sns_check(const char *hint, const char *value, const char *heuristics, char message[], size_t size)
{
	static const struct {
		const char *hint;
		bool (*is_valid)(const char *);
		const char *example; /* NULL: no value is a value, too */
		const char *valid;
	} known[] = {
		{"alpha", sns_is_alpha, "0.9", "alpha must be a number above 0 and at most 1, such as 0.9"},
		{"program", sns_is_program, "mg", "a program name is 1 to 64 of the characters A-Z a-z 0-9 . _ + -"},
		{"max-scale", sns_is_max_scale, "4", "the largest scale must be a whole number from 1 to 64"},
		{"heuristic", NULL, "mix-fit", "unknown heuristic; valid are "},
		{"restartable", sns_is_restartable, NULL,
		 "valid are yes, no, the name without a value, and the seconds between two checkpoints, a whole number "
		 "from 1 to " MOST_CHECKPOINT_S},
	};
	char shown[SHOWN_BYTES + 6], list[SNS_SPACED_SIZE] = "";

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(hint, known[i].hint) != 0)
			continue;
		if (value[0] == '\0' && known[i].example != NULL) {
			snprintf(message, size, "sns: --sns-%s: a value is missing, such as %s", hint, known[i].example);
			return false;
		}
		if (known[i].is_valid != NULL ? known[i].is_valid(value) : sns_is_heuristic(value, heuristics))
			return true;
		quote(value, shown);
		if (known[i].is_valid == NULL)
			sns_spaced(heuristics[0] != '\0' ? heuristics : "those of the cluster", list);
		snprintf(message, size, "sns: --sns-%s %s: %s%s", hint, shown, known[i].valid, list);
		return false;
	}
	snprintf(message, size, "sns: --sns-%s: no such hint", hint);
	return false;
}
