/* See hooks.h. SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE /* pipe2 */
#include "hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"

/* How long what was killed may take to end. */
#define END_MS 200
#define CANNOT_RUN 127

static void become(const char *path, int output)
{
	char *const words[] = {(char *)path, NULL};
	int nothing = open("/dev/null", O_RDONLY);
	char problem[128];
	int length;

	setpgid(0, 0); /* it is killed with all that it starts */
	dup2(nothing, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	execv(path, words);
	length = snprintf(problem, sizeof(problem), "cannot be run: %s", strerror(errno));
	_exit(write(STDERR_FILENO, problem, (size_t)length) == length ? CANNOT_RUN : CANNOT_RUN + 1);
}

/* Reads until the script has closed its output or the time is over: true if it has closed it. The first line of what it
 * printed is kept, without characters that a terminal could interpret. */
static bool read_output(int from, long long until_ms, char line[], size_t size)
{
	char read_now[256];
	size_t kept = 0;
	ssize_t length = -1;
	bool is_first_line = true;

	line[0] = '\0';
	while (sns_readable(from, until_ms - sns_now_ms()) && (length = read(from, read_now, sizeof(read_now))) > 0)
		for (ssize_t i = 0; i < length; i++) {
			is_first_line = is_first_line && read_now[i] != '\n';
			if (!is_first_line || kept + 1 >= size)
				continue;
			line[kept++] = read_now[i] >= ' ' && read_now[i] <= '~' ? read_now[i] : '?';
			line[kept] = '\0';
		}
	return length == 0;
}

bool sns_run_hook(const char *directory, const char *name, int most_ms, char message[], size_t size)
{
	char path[PATH_MAX], line[SNS_HOOK_MESSAGE_SIZE / 2];
	long long until_ms = sns_now_ms() + most_ms;
	bool has_ended;
	int ends[2];
	pid_t script;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path)) {
		snprintf(message, size, "sns: the %s is not run: its path is too long", name);
		return false;
	}
	if (access(path, F_OK) != 0)
		return true;
	if (pipe2(ends, O_CLOEXEC) != 0 || (script = fork()) < 0) {
		snprintf(message, size, "sns: the %s is not run: %s", name, strerror(errno));
		return false;
	}
	if (script == 0)
		become(path, ends[1]);
	close(ends[1]);
	has_ended = read_output(ends[0], until_ms, line, sizeof(line)) && sns_ended(script, until_ms - sns_now_ms());
	close(ends[0]);
	if (!has_ended) {
		kill(-script, SIGKILL);
		kill(script, SIGKILL); /* before it has become the leader of its group */
		sns_ended(script, END_MS);
		snprintf(line, sizeof(line), "killed after %d ms", most_ms);
	}
	if (line[0] == '\0')
		return true;
	snprintf(message, size, "sns: %.200s: %s", path, line);
	return false;
}
