/*
 * sns_jobs_table.so, a module for Lua: keeps job_submit/lua from making a table of all jobs.
 *
 *   local skip = require("sns_jobs_table")
 *   skip()               -- in slurm_job_submit; slurm.jobs is not made again
 *   slurm.jobs = {}      -- what it has been made of may go away
 *
 * Before it calls the script, for a submission or an update, job_submit/lua fills slurm.jobs with an entry for each job,
 * if any job has changed since it did that last: 0.13 to 0.3 s with 120,000 jobs, under slurmctld's locks. Slurm has no
 * setting for that. The plugin notes the time in a variable, last_lua_jobs_update (24.11 and 26.05), which this sets to the
 * end of time. When slurmctld reads the script again, the plugin makes the table once more and resets the variable; so
 * the script calls skip() each time, which takes less than a microsecond.
 *
 * The variable is no interface of Slurm. If it is not there, or is no time, nothing happens and the table is made.
 *
 * Lua's headers are not needed: one function is, and its type is the same from Lua 5.1 to 5.4.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <time.h>

#define END_OF_TIME ((time_t)(sizeof(time_t) == 8 ? INT64_MAX : INT32_MAX))

void lua_pushcclosure(void *state, int (*function)(void *state), int values);
int luaopen_sns_jobs_table(void *state);

static time_t *variable(void *plugin)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info where;
	void *found = dlsym(plugin, "last_lua_jobs_update");

	if (!found || !dladdr1(found, &where, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return NULL;
	return where.dli_saddr == found && symbol->st_size == sizeof(time_t) ? found : NULL;
}

static int skip(void *state)
{
	void *plugin = dlopen("job_submit_lua.so", RTLD_LAZY | RTLD_NOLOAD);
	time_t *made_s = plugin ? variable(plugin) : NULL;

	(void)state;
	if (made_s)
		*made_s = END_OF_TIME;
	if (plugin)
		dlclose(plugin);
	return 0;
}

int luaopen_sns_jobs_table(void *state)
{
	lua_pushcclosure(state, skip, 0);
	return 1;
}
