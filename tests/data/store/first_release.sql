BEGIN TRANSACTION;
CREATE TABLE array_tasks (
	job_id BIGINT NOT NULL,
	array_id BIGINT NOT NULL,
	task BIGINT NOT NULL,
	at_s FLOAT NOT NULL,
	PRIMARY KEY (job_id)
);
INSERT INTO "array_tasks" VALUES(7,6,3,1790000020.0);
CREATE TABLE cycles (
	id INTEGER NOT NULL,
	at_s FLOAT NOT NULL,
	chosen VARCHAR(64) NOT NULL,
	matched TEXT NOT NULL,
	snapshot BLOB,
	PRIMARY KEY (id)
);
INSERT INTO "cycles" VALUES(1,1790000012.5,'mix-fit','{"mix-fit": 2, "best-fit-cores": 1}',X'78016D90CD6EC3201084DF65CF930AF06FFC2A88836393960A4164EC5851E477EFE2B6AED4160E48BBB333DFF2A4BB9D928B813A090A71B4893AAD6990042D6BD4A510024A404A61FE56B84483FA575A42EEA3FC186340BDF771B5E3E19EE70CC2E23D37D7DECD2EBCE66603D99C79321F68ADA05BEC10250A4668A1205F54856BEF93CD483B559BD57C3F1D215953619E16CBD13A774E051A0EBABD3D921B12812E36CDA7AB9B4F439C78699664F961DBFE6070C29EC29BA8F25788F81AE01476A77D1F4EDFE1BEF3E936C5773BCCFCB3CF03A0D38A09758112156A6336D012FA7BEF7C7FF1362B87337534C635D0B67D009C1275A4');
INSERT INTO "cycles" VALUES(2,1790000030.0,'','{}',X'78016D90CD6EC3201084DF65CF930AF06FFC2A88836393960A4164EC5851E477EFE2B6AED4160E48BBB333DFF2A4BB9D928B813A090A71B4893AAD6990042D6BD4A510024A404A61FE56B84483FA575A42EEA3FC186340BDF771B5E3E19EE70CC2E23D37D7DECD2EBCE66603D99C79321F68ADA05BEC10250A4668A1205F54856BEF93CD483B559BD57C3F1D215953619E16CBD13A774E051A0EBABD3D921B12812E36CDA7AB9B4F439C78699664F961DBFE6070C29EC29BA8F25788F81AE01476A77D1F4EDFE1BEF3E936C5773BCCFCB3CF03A0D38A09758112156A6336D012FA7BEF7C7FF1362B87337534C635D0B67D009C1275A4');
CREATE TABLE decisions (
	id INTEGER NOT NULL,
	cycle_id INTEGER NOT NULL,
	job_id BIGINT NOT NULL,
	user_id BIGINT NOT NULL,
	at_s FLOAT NOT NULL,
	action VARCHAR(16) NOT NULL,
	nodes TEXT NOT NULL,
	reason TEXT NOT NULL,
	scale INTEGER NOT NULL,
	"exclusive" BOOLEAN NOT NULL,
	demand TEXT NOT NULL,
	considered TEXT,
	times INTEGER DEFAULT '1' NOT NULL,
	PRIMARY KEY (id)
);
INSERT INTO "decisions" VALUES(1,1,7,2001,1790000012.5,'start','c1,c2','by mix-fit',2,0,'{"cores": 8, "memory_mb": 4000, "ways": 4, "bandwidth_gbps": 30}','{"program": "mg", "processes": 16, "alpha": 0.9, "fewest_nodes": 1, "kind": null, "ideal_scale": null, "bottleneck": "", "profiled_processes": null, "considered": [{"scale": 2, "exclusive": false, "nodes": 2, "tasks_per_node": 8, "cores": 8, "memory_mb": 4000, "ways": 4, "bandwidth_exact_gbps": 29.5, "bandwidth_gbps": 30, "time_s": null, "frequency_factor": null, "corrected_time_s": null, "full_ipc": null, "target_ipc": null, "ipc": null, "slowdown": 1.25, "dropped": ""}, {"scale": 1, "exclusive": true, "nodes": 1, "tasks_per_node": 16, "cores": 16, "memory_mb": 8000, "ways": null, "bandwidth_exact_gbps": null, "bandwidth_gbps": null, "time_s": null, "frequency_factor": null, "corrected_time_s": null, "full_ipc": null, "target_ipc": null, "ipc": null, "slowdown": null, "dropped": "no room"}], "note": "\u00fcnusual"}',1);
INSERT INTO "decisions" VALUES(2,1,9,2002,1790000012.5,'note','','runs otherwise than planned',1,0,'{}',NULL,1);
INSERT INTO "decisions" VALUES(3,2,7,2001,1790000030.0,'note','','placed on c1,c2, but Slurm did not start it: AssocGrpCpuLimit',1,0,'{}',NULL,2);
CREATE TABLE job_records (
	job_id BIGINT NOT NULL,
	submit_s BIGINT NOT NULL,
	stage VARCHAR(16) NOT NULL,
	nodes TEXT NOT NULL,
	placed_s FLOAT NOT NULL,
	restarts INTEGER NOT NULL,
	nice INTEGER NOT NULL,
	failures INTEGER NOT NULL,
	retry_s FLOAT NOT NULL,
	note TEXT NOT NULL,
	tasks BIGINT DEFAULT '0' NOT NULL,
	difference VARCHAR(1024) DEFAULT '' NOT NULL,
	limited_by VARCHAR(64) DEFAULT '' NOT NULL,
	memory_per_cpu_mb BIGINT,
	memory_per_node_mb BIGINT,
	PRIMARY KEY (job_id)
);
INSERT INTO "job_records" VALUES(7,1790000000,'placed','c1,c2',1790000012.5,3,-20,2,1790000099.25,'Slurm said: ''no''; ünï',4,'','',NULL,4096);
INSERT INTO "job_records" VALUES(8,1790000001,'held','',0.0,0,0,0,0.0,'',0,'','',NULL,NULL);
INSERT INTO "job_records" VALUES(9,1790000002,'running','c3',1790000003.0,0,0,0,0.0,'',16,'16 tasks were planned, 8 run','AssocGrpCpuLimit',2048,NULL);
CREATE TABLE profiled_programs (
	program VARCHAR(64) NOT NULL,
	source TEXT NOT NULL,
	max_scale INTEGER,
	PRIMARY KEY (program)
);
INSERT INTO "profiled_programs" VALUES('mg','a paper''s table 1',4);
INSERT INTO "profiled_programs" VALUES('ep','',NULL);
CREATE TABLE profiled_runs (
	program VARCHAR(64) NOT NULL,
	processes INTEGER NOT NULL,
	scale INTEGER NOT NULL,
	time_s FLOAT NOT NULL,
	curves TEXT NOT NULL,
	PRIMARY KEY (program, processes, scale)
);
INSERT INTO "profiled_runs" VALUES('mg',16,1,97.86,'{"ways": [2, 20], "ipc": [0.8, 1.0], "bandwidth_gbps": [112.0, 112.5], "provenance": {"time_s": "measured", "ipc": "assumed", "bandwidth_gbps": "printed"}}');
INSERT INTO "profiled_runs" VALUES('mg',16,2,55.5,'{"ways": [2, 20], "ipc": [0.8, 1.0], "bandwidth_gbps": [112.0, 112.5], "provenance": {"time_s": "measured", "ipc": "assumed", "bandwidth_gbps": "printed"}}');
INSERT INTO "profiled_runs" VALUES('ep',28,1,97.86,'{"ways": [2, 20], "ipc": [0.8, 1.0], "bandwidth_gbps": [112.0, 112.5], "provenance": {"time_s": "measured", "ipc": "assumed", "bandwidth_gbps": "printed"}}');
CREATE INDEX ix_cycles_at_s ON cycles (at_s);
CREATE INDEX ix_decisions_cycle_id ON decisions (cycle_id);
CREATE INDEX ix_decisions_job_id ON decisions (job_id);
CREATE INDEX ix_array_tasks_array_id ON array_tasks (array_id);
CREATE INDEX ix_array_tasks_at_s ON array_tasks (at_s);
COMMIT;
