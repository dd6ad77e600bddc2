-- Example of a site's job_submit.lua. slurm_sns only needs the module to be loaded and called in slurm_job_submit.
--
-- When this file changes, Slurm reads it again, together with the modules sns_*.lua (in /usr/local/share/lua/5.1 or
-- elsewhere on package.path). So `touch` this file after an update of slurm_sns.
-- luacheck: globals slurm slurm_job_submit slurm_job_modify, no unused args
-- SPDX-License-Identifier: GPL-2.0-or-later

-- Whatever goes wrong here, jobs run as plain Slurm jobs: errors are logged, never raised.
local loaded, filter = pcall(require, "sns_filter")
if not loaded then
  slurm.log_error("sns: %s; jobs pass as they are", tostring(filter):match("[^\n]*")) -- further lines: paths tried
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  -- A site's own rules go here.
  if loaded then
    -- With tens of thousands of jobs, unless your rules read slurm.jobs (docs/admins/install.md):
    -- pcall(filter.without_jobs, slurm)
    local done, result = pcall(filter.submit, job_desc, slurm, part_list)
    if done then
      return result
    end
    slurm.log_error("sns: %s; the job passes as it is", tostring(result))
  end
  return slurm.SUCCESS
end

-- Empty on purpose: slurmctld runs this for every update of a job, under its locks, and the scheduler updates every job
-- that it places.
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
