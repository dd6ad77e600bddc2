/* SPANK plugin: adds the options --sns-... to sbatch, srun and salloc, and passes their values to the submit filter. On
 * nodes with an agent it tells the agent of jobs, and puts tasks into their job's group of resctrl.
 *
 * plugstack.conf: optional sns.so [heuristics=first-fit,mix-fit,...] [hooks=DIRECTORY] [resctrl=DIRECTORY]
 * (the line is rendered by `sns render`)
 *
 * Values are checked on the submit host (check.c). Slurm puts the options into the job's spank_job_env, where the
 * submit filter reads them: _SLURM_SPANK_OPTION_sns_sns_alpha=0.9.
 *
 * hooks: slurmd runs DIRECTORY/prolog and DIRECTORY/epilog through this plugin (hooks.c), and not by Prolog= and Epilog=:
 * Slurm drains a node on which a script of these options is missing or fails (prep_script_slurmd.c), and ignores the
 * failure of an optional plugin. The site's own Prolog= and Epilog= stay as they are.
 * resctrl: each task joins its job's group before its program starts (join.c).
 * SPDX-License-Identifier: GPL-2.0-or-later */
#define _POSIX_C_SOURCE 200112L /* unsetenv */
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "hooks.h"
#include "join.h"

SPANK_PLUGIN(sns, 1)

/* The hook waits 5 s for the agent, and its script 8 s for the hook. */
#define HOOK_MS 12000
/* A task does not start later than that for a resctrl that does not answer. The kernel's does in microseconds. */
#define JOIN_MS 1000

static const char heuristics_word[] = "heuristics=", hooks_word[] = "hooks=", resctrl_word[] = "resctrl=";

static char heuristics[SNS_MOST_HEURISTICS + 1];
static char heuristic_usage[SNS_SPACED_SIZE + 64] = "place the job by this heuristic";

static int on_option(int val, const char *optarg, int remote);

enum { ALPHA, PROGRAM, MAX_SCALE, HEURISTIC, RESTARTABLE, FIRST_FLAG };

static struct spank_option options[] = {
	{"sns-alpha", "fraction", "accept this fraction of the best performance, above 0 and at most 1 (such as 0.9)",
	 1, ALPHA, on_option},
	{"sns-program", "name", "the program's name: jobs of one name share one profile", 1, PROGRAM, on_option},
	{"sns-max-scale", "n", "spread the job to at most n times the nodes it needs (1 to 64)", 1, MAX_SCALE, on_option},
	{"sns-heuristic", "name", heuristic_usage, 1, HEURISTIC, on_option},
	/* 2: the value may be left out */
	{"sns-restartable", "[seconds]", "the job may be restarted on other nodes; it writes a checkpoint so often", 2,
	 RESTARTABLE, on_option},
	{"sns-exclusive", NULL, "share the job's nodes with no other job", 0, FIRST_FLAG, on_option},
	{"sns-reprofile", NULL, "measure the program again", 0, FIRST_FLAG + 1, on_option},
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

/* The value of the argument that begins with `word`; NULL if it is another argument. */
static const char *value_of(const char *argument, const char *word)
{
	return strncmp(argument, word, strlen(word)) == 0 ? argument + strlen(word) : NULL;
}

static int read_heuristics(const char *value)
{
	char spaced[SNS_SPACED_SIZE];

	if (!sns_is_heuristics(value)) {
		slurm_error("sns: plugstack.conf: heuristics must be names of a-z, 0-9 and -, separated by commas");
		return -1;
	}
	snprintf(heuristics, sizeof(heuristics), "%s", value);
	sns_spaced(value, spaced);
	snprintf(heuristic_usage, sizeof(heuristic_usage), "place the job by this heuristic: %s", spaced);
	return 0;
}

static int read_argument(const char *argument)
{
	const char *value;

	if ((value = value_of(argument, heuristics_word)) != NULL)
		return read_heuristics(value);
	if ((value = value_of(argument, hooks_word)) == NULL && (value = value_of(argument, resctrl_word)) == NULL) {
		slurm_error("sns: unknown argument in plugstack.conf: %s; valid are heuristics=NAME,NAME,... "
			    "hooks=DIRECTORY resctrl=DIRECTORY", argument);
		return -1;
	}
	if (!sns_is_directory_name(value)) {
		slurm_error("sns: plugstack.conf: %s: the directory must be an absolute path of letters, digits and . _ - /",
			    argument);
		return -1;
	}
	return 0;
}

/* The directory in the last argument of this name, NULL if there is none or if it is not valid. */
static const char *directory_in(int ac, char *argv[], const char *word)
{
	const char *found = NULL, *value;

	for (int i = 0; i < ac; i++)
		if ((value = value_of(argv[i], word)) != NULL)
			found = sns_is_directory_name(value) ? value : NULL;
	return found;
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

/* Always 0: whatever is wrong with the agent, the job goes on. */
static int run_hook(int ac, char *argv[], const char *name)
{
	const char *directory = directory_in(ac, argv, hooks_word);
	char message[SNS_HOOK_MESSAGE_SIZE];

	if (directory != NULL && !sns_run_hook(directory, name, HOOK_MS, message, sizeof(message)))
		slurm_error("%s", message);
	return 0;
}

int slurm_spank_job_prolog(spank_t spank, int ac, char *argv[])
{
	(void)spank;
	return run_hook(ac, argv, "prolog");
}

int slurm_spank_job_epilog(spank_t spank, int ac, char *argv[])
{
	(void)spank;
	return run_hook(ac, argv, "epilog");
}

/* Always 0, as above. slurm_info, because the user would see an error; by the first task only, because a node may have
 * hundreds of them. */
int slurm_spank_task_init_privileged(spank_t spank, int ac, char *argv[])
{
	const char *resctrl = directory_in(ac, argv, resctrl_word);
	char message[SNS_JOIN_MESSAGE_SIZE];
	uint32_t job;
	int task = 0;

	if (resctrl == NULL || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return 0;
	if (!sns_join(resctrl, job, getpid(), JOIN_MS, message, sizeof(message)) &&
	    (spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task == 0))
		slurm_info("%s", message);
	return 0;
}
