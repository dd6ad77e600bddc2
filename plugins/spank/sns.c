/* SPANK plugin: adds the options --sns-... to sbatch, srun and salloc, and passes their values to the submit filter.
 *
 * plugstack.conf: optional sns.so [heuristics=first-fit,mix-fit,...]   (the line is rendered by `sns render`)
 *
 * Values are checked on the submit host (check.c). Slurm puts the options into the job's spank_job_env, where the
 * submit filter reads them: _SLURM_SPANK_OPTION_sns_sns_alpha=0.9. On the nodes the plugin does nothing.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#define _POSIX_C_SOURCE 200112L /* unsetenv */
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

SPANK_PLUGIN(sns, 1)

static char heuristics[SNS_MOST_HEURISTICS + 1];
static char heuristic_usage[SNS_SPACED_SIZE + 64] = "place the job by this heuristic";

static int on_option(int val, const char *optarg, int remote);

enum { ALPHA, PROGRAM, MAX_SCALE, HEURISTIC, FIRST_FLAG };

static struct spank_option options[] = {
	{"sns-alpha", "fraction", "accept this fraction of the best performance, above 0 and at most 1 (such as 0.9)",
	 1, ALPHA, on_option},
	{"sns-program", "name", "the program's name: jobs of one name share one profile", 1, PROGRAM, on_option},
	{"sns-max-scale", "n", "spread the job to at most n times the nodes it needs (1 to 64)", 1, MAX_SCALE, on_option},
	{"sns-heuristic", "name", heuristic_usage, 1, HEURISTIC, on_option},
	{"sns-exclusive", NULL, "share the job's nodes with no other job", 0, FIRST_FLAG, on_option},
	{"sns-reprofile", NULL, "measure the program again", 0, FIRST_FLAG + 1, on_option},
	{"sns-restartable", NULL, "the job may be restarted on other nodes", 0, FIRST_FLAG + 2, on_option},
};

static int on_option(int val, const char *optarg, int remote)
{
	char message[SNS_MESSAGE_SIZE];

	if (remote || val >= FIRST_FLAG)
		return 0;
	if (sns_check(options[val].name + strlen("sns-"), optarg != NULL ? optarg : "", heuristics, message, sizeof(message)))
		return 0;
	slurm_error("%s", message);
	return -1;
}

static int read_argument(const char *argument)
{
	static const char name[] = "heuristics=";
	const char *value = argument + strlen(name);
	char spaced[SNS_SPACED_SIZE];

	if (strncmp(argument, name, strlen(name)) != 0) {
		slurm_error("sns: unknown argument in plugstack.conf: %s; valid is heuristics=NAME,NAME,...", argument);
		return -1;
	}
	if (!sns_is_heuristics(value)) {
		slurm_error("sns: plugstack.conf: heuristics must be names of a-z, 0-9 and -, separated by commas");
		return -1;
	}
	snprintf(heuristics, sizeof(heuristics), "%s", value);
	sns_spaced(value, spaced);
	snprintf(heuristic_usage, sizeof(heuristic_usage), "place the job by this heuristic: %s", spaced);
	return 0;
}

/* A job's environment contains its options, so jobs that its script submits inherit them. A hint is about one job only,
 * so its variable is removed. Seen with 26.05: Slurm reads the variable after the plugins' init, so
 * spank_job_control_unsetenv comes too early. */
static void forget_inherited(const char *option)
{
	char name[96] = "SLURM_SPANK__SLURM_SPANK_OPTION_sns_";
	size_t at = strlen(name);

	for (; *option != '\0' && at < sizeof(name) - 1; option++)
		name[at++] = *option == '-' ? '_' : *option;
	name[at] = '\0';
	unsetenv(name);
}

int slurm_spank_init(spank_t spank, int ac, char *argv[])
{
	for (int i = 0; i < ac; i++)
		if (read_argument(argv[i]) != 0)
			return -1;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (spank_context() == S_CTX_ALLOCATOR)
			forget_inherited(options[i].name);
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS) {
			slurm_error("sns: --%s cannot be registered", options[i].name);
			return -1;
		}
	}
	return 0;
}
