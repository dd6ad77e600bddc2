/* See join.h. SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE /* O_PATH, pipe2 */
#include "join.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"

/* Such a directory may lead elsewhere: whoever can write in it can replace what it holds. */
#define OTHERS_MAY_WRITE (S_IWGRP | S_IWOTH)

/* What the writing process answers: an errno, or one of these. */
enum { JOINED = 0, NO_GROUP = -1, NOT_TRUSTED = -2, NO_ANSWER = -3 };

bool sns_is_directory_name(const char *path)
{
	if (path[0] != '/')
		return false;
	for (const char *at = path; *at != '\0'; at++)
		if (!isalnum((unsigned char)*at) && strchr("._-/", *at) == NULL)
			return false;
	return true;
}

/* Opens the directory; a symbolic link is none. -1 with errno if that fails. */
static int open_directory(int below, const char *name)
{
	return openat(below, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int trusted(int directory)
{
	struct stat found;

	if (fstat(directory, &found) != 0)
		return errno;
	if ((found.st_uid != 0 && found.st_uid != geteuid()) || (found.st_mode & OTHERS_MAY_WRITE) != 0)
		return NOT_TRUSTED;
	return JOINED;
}

static int write_pid(int group, pid_t pid)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%ld\n", (long)pid);
	int tasks = openat(group, "tasks", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	if (tasks < 0)
		return errno;
	if (write(tasks, text, (size_t)length) != length)
		return errno;
	return JOINED;
}

/* An errno or one of the answers above. The first of the two groups that exists decides. */
static int join(const char *resctrl, const char *own, pid_t pid)
{
	const char *const names[] = {own, "sns_shared"};
	int root = open_directory(AT_FDCWD, resctrl);
	int answer;

	if (root < 0)
		return errno == ENOENT ? NO_GROUP : errno;
	if ((answer = trusted(root)) != JOINED)
		return answer;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int group = open_directory(root, names[i]);
		if (group >= 0)
			return write_pid(group, pid);
		if (errno != ENOENT)
			return errno;
	}
	return NO_GROUP;
}

static const char *reason(int answer)
{
	switch (answer) {
	case NOT_TRUSTED:
		return "not of root, or others may write in it";
	case NO_ANSWER:
		return "no answer in time";
	default:
		return strerror(answer);
	}
}

/* How long a process that has answered, or was killed, may take to end. */
#define END_MS 200

/* Reads the writer's answer, and ends it. A writer that cannot be ended hangs in the file system and is left alone. */
static int answer_of(pid_t writer, int from, int most_ms)
{
	int answer = NO_ANSWER;

	if (!sns_readable(from, most_ms) || read(from, &answer, sizeof(answer)) != sizeof(answer))
		answer = NO_ANSWER;
	if (answer == NO_ANSWER || !sns_ended(writer, END_MS)) {
		kill(writer, SIGKILL);
		sns_ended(writer, END_MS);
	}
	return answer;
}

/* A process of its own touches the file system, because no flag limits the time of a system call there: an emulated
 * resctrl that hangs would keep the job from starting. */
static int joined_by_a_writer(const char *resctrl, const char *own, pid_t pid, int most_ms)
{
	int ends[2], answer;
	pid_t writer;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return errno;
	writer = fork();
	if (writer == 0) {
		answer = join(resctrl, own, pid);
		_exit(write(ends[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	answer = errno;
	close(ends[1]);
	if (writer > 0)
		answer = answer_of(writer, ends[0], most_ms);
	close(ends[0]);
	return answer;
}

bool sns_join(const char *resctrl, uint32_t job, pid_t pid, int most_ms, char message[], size_t size)
{
	char own[32];
	int answer;

	snprintf(own, sizeof(own), "sns_job%lu", (unsigned long)job);
	answer = joined_by_a_writer(resctrl, own, pid, most_ms);
	if (answer == JOINED || answer == NO_GROUP)
		return true;
	snprintf(message, size, "sns: a task of job %lu is in no group of %.200s: %s", (unsigned long)job, resctrl,
		 reason(answer));
	return false;
}
