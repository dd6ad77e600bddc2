-- The site's burst buffer: one that takes everything and moves nothing.
-- luacheck: globals slurm, no unused args, allow defined
lua_script_name = "burst_buffer.lua"

local function done()
  return slurm.SUCCESS, ""
end

slurm_bb_job_process = done
slurm_bb_job_teardown = done
slurm_bb_setup = done
slurm_bb_data_in = done
slurm_bb_test_data_in = done
slurm_bb_paths = done
slurm_bb_pre_run = done
slurm_bb_post_run = done
slurm_bb_data_out = done
slurm_bb_test_data_out = done
slurm_bb_get_status = done

function slurm_bb_real_size(job_id, uid, gid, job_info)
  return slurm.SUCCESS, "0"
end

function slurm_bb_pools()
  return slurm.SUCCESS, '{"pools": [{"id": "disk", "granularity": 1, "quantity": 1000, "free": 1000}]}'
end
