/* See deadline.h. SPDX-License-Identifier: GPL-2.0-or-later */
#define _POSIX_C_SOURCE 200809L
#include "deadline.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>

/* Between two looks at a process. */
#define LOOK_NS 500000L

long long sns_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000L;
}

bool sns_readable(int descriptor, long long most_ms)
{
	struct pollfd asked = {.fd = descriptor, .events = POLLIN};
	long long until_ms = sns_now_ms() + most_ms, left_ms;
	int found = 0;

	while (found <= 0 && (left_ms = until_ms - sns_now_ms()) > 0) {
		found = poll(&asked, 1, (int)left_ms);
		if (found < 0 && errno != EINTR)
			return false;
	}
	return found > 0;
}

bool sns_ended(pid_t child, long long most_ms)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	long long until_ms = sns_now_ms() + most_ms;
	pid_t found;

	while ((found = waitpid(child, NULL, WNOHANG)) == 0 || (found < 0 && errno == EINTR)) {
		if (sns_now_ms() >= until_ms)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
