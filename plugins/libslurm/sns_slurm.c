/*
 * What slurm_sns needs of libslurm, for slurm_sns.slurm.library (ctypes): reading jobs and nodes in bulk, changing a job.
 *
 * Compiled against the slurm.h of the site, so the compiler finds the fields of each release: 24.11 to 26.05. ctypes
 * releases the interpreter's lock while a function here runs, so threads of the scheduler go on meanwhile.
 *
 * A record has numbers and texts. The macros JOB and NODE name them in their order, and sns_fields() tells Python these
 * names. In memory: the numbers (int64), the lengths of the texts (int32, -1 for NULL), the bytes of the texts. Slurm's
 * numbers for "none" and "unlimited" have the width of the field; here they are NONE and UNLIMITED.
 *
 * Functions return 0 or Slurm's error number.
 */
#define _GNU_SOURCE
#define SLURM_BACKWARD_COMPAT /* 26.05: slurm_load_job and slurm_requeue take an integer as before */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#if SLURM_VERSION_NUMBER >= 0x1a0500
#define slurm_free_ctl_conf slurm_free_conf
#define JOB_ID_OF(desc) (desc).step_id.job_id
#else
#define JOB_ID_OF(desc) (desc).job_id
#endif

/* Exported by libslurm for Slurm's own commands and pyslurm, but in none of its public headers. */
extern char *slurm_job_state_string(uint32_t);
extern char *slurm_job_state_reason_string(uint32_t);
extern const char *slurm_job_share_string(uint16_t);
extern char *slurm_node_state_string_complete(uint32_t);
extern void slurm_xfree_ptr(void *);
extern char *slurm_strerror(int);
extern void slurm_free_stats_response_msg(stats_info_response_msg_t *);
extern int32_t slurm_bit_set_count(bitstr_t *);

/* --gres-flags: how gres and cores belong together. Some came with later releases. */
#ifndef GRES_ONE_TASK_PER_SHARING
#define GRES_ONE_TASK_PER_SHARING 0
#define GRES_MULT_TASKS_PER_SHARING 0
#endif
#define GRES_FLAGS (GRES_ENFORCE_BIND | GRES_DISABLE_BIND | GRES_ONE_TASK_PER_SHARING | GRES_MULT_TASKS_PER_SHARING)

#define NONE INT64_MIN
#define UNLIMITED INT64_MAX

struct answer {
	char *data;
	uint64_t size;
	uint64_t *ends; /* where each record ends in data */
	uint64_t count;
	uint64_t room;
	bool is_short_of_memory;
};

static void append(struct answer *answer, const void *bytes, size_t size)
{
	if (answer->is_short_of_memory)
		return;
	if (answer->size + size > answer->room) {
		uint64_t room = 2 * answer->room + size + 65536;
		char *data = realloc(answer->data, room);
		if (!data) {
			answer->is_short_of_memory = true;
			return;
		}
		answer->data = data;
		answer->room = room;
	}
	memcpy(answer->data + answer->size, bytes, size);
	answer->size += size;
}

static int64_t number(uint64_t value, size_t width)
{
	uint64_t infinite = width == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * width)) - 1; /* slurm.h: INFINITE8 to INFINITE64 */

	if (value == infinite)
		return UNLIMITED;
	if (value == infinite - 1) /* NO_VAL8 to NO_VAL64 */
		return NONE;
	return value < INT64_MAX ? (int64_t) value : INT64_MAX - 1;
}

static int64_t moment(int64_t value)
{
	return !value || value == NO_VAL || value == INFINITE ? NONE : value;
}

static int64_t memory_mb(uint64_t value, bool is_per_cpu)
{
	uint64_t amount = value & ~MEM_PER_CPU;

	if (value == NO_VAL64 || !amount || !(value & MEM_PER_CPU) == is_per_cpu)
		return NONE;
	return number(amount, sizeof amount);
}

#define NUMBER(x) number((x), sizeof(x))
#define IS_SET(x) (NUMBER(x) > 0)
#define ABOVE_0(x) ((x) ? NUMBER(x) : NONE)
/* Id and user come first: Python reads them alone. */
#define JOB(N, T) \
	N(id, j->job_id) N(user_id, j->user_id) N(submit_time, moment(j->submit_time)) N(priority, NUMBER(j->priority)) \
	N(nice, j->nice == NO_VAL ? NONE : (int64_t) j->nice - NICE_OFFSET) N(requeue_count, NUMBER(j->restart_cnt)) \
	N(base_state, j->job_state & JOB_STATE_BASE) N(ntasks, ABOVE_0(j->num_tasks)) N(cpus, ABOVE_0(j->num_cpus)) \
	N(cpus_per_task, j->cpus_per_tres ? NONE : ABOVE_0(j->cpus_per_task)) \
	N(min_cpus_per_node, ABOVE_0(j->pn_min_cpus)) N(num_nodes, ABOVE_0(j->num_nodes)) \
	N(max_nodes, ABOVE_0(j->max_nodes)) N(ntasks_per_node, ABOVE_0(j->ntasks_per_node)) \
	N(memory_per_cpu, memory_mb(j->pn_min_memory, true)) N(memory_per_node, memory_mb(j->pn_min_memory, false)) \
	N(time_limit, moment(j->time_limit)) N(time_limit_min, moment(j->time_min)) \
	N(eligible_time, moment(j->eligible_time)) N(start_time, moment(j->start_time)) \
	N(end_time, moment(j->end_time)) N(suspend_time, moment(j->suspend_time)) \
	N(pre_suspension_time, j->pre_sus_time) N(deadline, moment(j->deadline)) \
	N(is_requeueable, IS_SET(j->requeue)) N(is_batch_job, IS_SET(j->batch_flag)) \
	N(is_cronjob, (j->bitflags & CRON_JOB) != 0) N(array_id, ABOVE_0(j->array_job_id)) \
	N(array_task_id, NUMBER(j->array_task_id)) N(array_tasks_parallel, ABOVE_0(j->array_max_tasks)) \
	N(heterogeneous_id, ABOVE_0(j->het_job_id)) N(requires_contiguous_nodes, IS_SET(j->contiguous)) \
	N(required_switches, ABOVE_0(j->req_switch)) N(sockets_per_node, ABOVE_0(j->sockets_per_node)) \
	N(cores_per_socket, ABOVE_0(j->cores_per_socket)) N(threads_per_core, ABOVE_0(j->threads_per_core)) \
	N(temporary_disk_per_node, ABOVE_0(j->pn_min_tmp_disk)) N(mails_failure, (j->mail_type & MAIL_JOB_FAIL) != 0) \
	N(has_gres_flags, (j->bitflags & GRES_FLAGS) != 0) \
	T(state, slurm_job_state_string(j->job_state)) \
	T(state_reason, j->state_desc ? j->state_desc : slurm_job_state_reason_string(j->state_reason)) \
	T(resource_sharing, slurm_job_share_string(j->shared)) \
	T(name, j->name) T(account, j->account) T(partition, j->partition) T(qos, j->qos) \
	T(admin_comment, j->admin_comment) T(comment, j->comment) T(extra, j->extra) \
	T(required_nodes, j->req_nodes) T(excluded_nodes, j->exc_nodes) T(allocated_nodes, j->nodes) \
	T(scheduled_nodes, j->sched_nodes) T(features, j->features) T(prefer, j->prefer) \
	T(tres_per_node, j->tres_per_node) T(tres_per_task, j->tres_per_task) T(tres_per_job, j->tres_per_job) \
	T(tres_per_socket, j->tres_per_socket) T(cpus_per_tres, j->cpus_per_tres) T(mem_per_tres, j->mem_per_tres) \
	T(requested_tres, j->tres_req_str) T(allocated_tres, j->tres_alloc_str) \
	T(reservation, j->resv_name) T(dependency, j->dependency) T(federation_origin, j->fed_origin_str) \
	T(license_names, j->licenses) T(burst_buffer, j->burst_buffer) T(array_tasks, j->array_task_str) \
	T(mail_addresses, j->mail_user)

#define NODE(N, T) \
	N(effective_cpus, NUMBER(n->cpus_efctv)) N(allocated_cpus, allocated_cpus) \
	N(allocated_memory, NUMBER(allocated_memory)) N(real_memory, NUMBER(n->real_memory)) \
	N(memory_reserved_for_system, NUMBER(n->mem_spec_limit)) N(threads_per_core, NUMBER(n->threads)) \
	N(weight, ABOVE_0(n->weight)) N(sockets, NUMBER(n->sockets)) \
	T(name, n->name) T(state, state) T(reason, n->reason) T(partition_names, n->partitions) T(gres, n->gres) \
	T(gres_used_text, n->gres_used) T(allocated_tres, allocated_tres) T(features, n->features_act)

#define NUMBER_NAME(name, value) "n:" #name " "
#define TEXT_NAME(name, value) "t:" #name " "
#define PUT_NUMBER(name, value) append(answer, &(int64_t){(value)}, sizeof(int64_t));
#define PUT_LENGTH(name, value) append_length(answer, (value));
#define PUT_BYTES(name, value) append_bytes(answer, (value));
#define SKIP(name, value)

static void append_length(struct answer *answer, const char *text)
{
	int32_t length = text ? (int32_t) strnlen(text, INT32_MAX) : -1;
	append(answer, &length, sizeof length);
}

static void append_bytes(struct answer *answer, const char *text)
{
	if (text)
		append(answer, text, strnlen(text, INT32_MAX));
}

static void put_job(struct answer *answer, const slurm_job_info_t *j)
{
	JOB(PUT_NUMBER, SKIP)
	JOB(SKIP, PUT_LENGTH)
	JOB(SKIP, PUT_BYTES)
}

static void put_node(struct answer *answer, node_info_t *n)
{
	char *state = slurm_node_state_string_complete(n->node_state);
#ifdef HAS_SELECT_NODEINFO /* up to 24.11 */
	uint16_t allocated_cpus = 0;
	uint64_t allocated_memory = 0;
	char *allocated_tres = NULL;
	slurm_get_select_nodeinfo(n->select_nodeinfo, SELECT_NODEDATA_SUBCNT, NODE_STATE_ALLOCATED, &allocated_cpus);
	slurm_get_select_nodeinfo(n->select_nodeinfo, SELECT_NODEDATA_MEM_ALLOC, NODE_STATE_ALLOCATED, &allocated_memory);
	slurm_get_select_nodeinfo(
		n->select_nodeinfo, SELECT_NODEDATA_TRES_ALLOC_FMT_STR, NODE_STATE_ALLOCATED, &allocated_tres);
#else
	uint16_t allocated_cpus = n->alloc_cpus;
	uint64_t allocated_memory = n->alloc_memory;
	char *allocated_tres = n->alloc_tres_fmt_str;
#endif
	NODE(PUT_NUMBER, SKIP)
	NODE(SKIP, PUT_LENGTH)
	NODE(SKIP, PUT_BYTES)
#ifdef HAS_SELECT_NODEINFO
	slurm_xfree_ptr(allocated_tres);
#endif
	slurm_xfree_ptr(state);
}

static int failed(void) { return errno ? errno : SLURM_ERROR; }

static int begin(struct answer *answer, uint64_t count)
{
	memset(answer, 0, sizeof *answer);
	answer->ends = calloc(count + 1, sizeof *answer->ends);
	return answer->ends ? 0 : ENOMEM;
}

static void end_record(struct answer *answer) { answer->ends[answer->count++] = answer->size; }

const char *sns_job_fields(void) { return JOB(NUMBER_NAME, TEXT_NAME); }
const char *sns_node_fields(void) { return NODE(NUMBER_NAME, TEXT_NAME); }
const char *sns_error(int number) { return slurm_strerror(number); }
unsigned sns_built_for(void) { return SLURM_VERSION_NUMBER; }
long sns_library(void) { return slurm_api_version(); }
void sns_start(void) { slurm_init(NULL); }

void sns_free(struct answer *answer)
{
	free(answer->data);
	free(answer->ends);
	memset(answer, 0, sizeof *answer);
}

static int put_jobs(struct answer *answer, job_info_msg_t *shown)
{
	int rc = begin(answer, shown->record_count);

	if (!rc) {
		for (uint32_t at = 0; at < shown->record_count; at++) {
			put_job(answer, &shown->job_array[at]);
			end_record(answer);
		}
		rc = answer->is_short_of_memory ? ENOMEM : 0;
	}
	slurm_free_job_info_msg(shown);
	return rc;
}

int sns_jobs(struct answer *answer)
{
	job_info_msg_t *shown = NULL;

	errno = 0;
	return slurm_load_jobs(0, &shown, SHOW_ALL | SHOW_DETAIL) ? failed() : put_jobs(answer, shown);
}

/* With SHOW_LOCAL: otherwise Slurm first asks for the federation, each time. */
#define FEW (SHOW_ALL | SHOW_DETAIL | SHOW_LOCAL)

/* The job with this id, or all records of the array. */
int sns_job(struct answer *answer, uint32_t job_id)
{
	job_info_msg_t *shown = NULL;

	errno = 0;
	return slurm_load_job(&shown, job_id, FEW) ? failed() : put_jobs(answer, shown);
}

int sns_jobs_of_user(struct answer *answer, uint32_t user_id)
{
	job_info_msg_t *shown = NULL;

	errno = 0;
	return slurm_load_job_user(&shown, user_id, FEW) ? failed() : put_jobs(answer, shown);
}

/* What changes when a job begins, ends or loses tasks, of all jobs in one record: three int64 for each, its id, its state,
 * and the waiting tasks of an array's record. */
int sns_job_states(struct answer *answer)
{
	job_state_response_msg_t *shown = NULL;
	int rc;

	errno = 0;
	if (slurm_load_job_state(0, NULL, &shown))
		return failed();
	if (!(rc = begin(answer, 1))) {
		for (uint32_t at = 0; at < shown->jobs_count; at++) {
			const job_state_response_job_t *j = &shown->jobs[at];
			bitstr_t *tasks = j->array_task_id_bitmap;
			append(answer, (int64_t[3]){j->job_id, j->state, tasks ? slurm_bit_set_count(tasks) : 0}, 3 * sizeof(int64_t));
		}
		end_record(answer);
		rc = answer->is_short_of_memory ? ENOMEM : 0;
	}
	slurm_free_job_state_response_msg(shown);
	return rc;
}

int sns_nodes(struct answer *answer)
{
	node_info_msg_t *shown = NULL;
	partition_info_msg_t *partitions = NULL;
	int rc;

	errno = 0;
	if (slurm_load_node(0, &shown, SHOW_ALL | SHOW_DETAIL))
		return failed();
	if (slurm_load_partitions(0, &partitions, SHOW_ALL)) {
		rc = failed();
	} else if (!(rc = begin(answer, shown->record_count))) {
		slurm_populate_node_partitions(shown, partitions);
		for (uint32_t at = 0; at < shown->record_count; at++) {
			if (!shown->node_array[at].name) /* a node of slurm.conf that cannot be reached any more */
				continue;
			put_node(answer, &shown->node_array[at]);
			end_record(answer);
		}
		rc = answer->is_short_of_memory ? ENOMEM : 0;
	}
	slurm_free_partition_info_msg(partitions);
	slurm_free_node_info_msg(shown);
	return rc;
}

/* As `scontrol show config` prints it: one record. */
int sns_configuration(struct answer *answer)
{
	slurm_conf_t *shown = NULL;
	char *text = NULL;
	size_t size = 0;
	int rc;

	errno = 0;
	if (slurm_load_ctl_conf(0, &shown))
		return failed();
	if (!(rc = begin(answer, 1))) {
		void *pairs = slurm_ctl_conf_2_key_pairs(shown);
		FILE *out = open_memstream(&text, &size);
		if (out && pairs) {
			slurm_print_key_pairs(out, pairs, "");
			fclose(out);
			append(answer, text, size);
			end_record(answer);
		} else {
			rc = ENOMEM;
		}
		free(text);
	}
	slurm_free_ctl_conf(shown);
	return rc;
}

static void put_text(struct answer *answer, char *text)
{
	if (text)
		append(answer, text, strlen(text));
	append(answer, "\n", 1);
	slurm_xfree_ptr(text);
	end_record(answer);
}

/* Each as a line of `scontrol -o show partition`. */
int sns_partitions(struct answer *answer)
{
	partition_info_msg_t *shown = NULL;
	int rc;

	errno = 0;
	if (slurm_load_partitions(0, &shown, SHOW_ALL))
		return failed();
	if (!(rc = begin(answer, shown->record_count)))
		for (uint32_t at = 0; at < shown->record_count; at++)
			put_text(answer, slurm_sprint_partition_info(&shown->partition_array[at], 1));
	slurm_free_partition_info_msg(shown);
	return rc;
}

/* Each as a line of `scontrol -o show reservation`. */
int sns_reservations(struct answer *answer)
{
	reserve_info_msg_t *shown = NULL;
	int rc;

	errno = 0;
	if (slurm_load_reservations(0, &shown))
		return failed();
	if (!(rc = begin(answer, shown->record_count)))
		for (uint32_t at = 0; at < shown->record_count; at++)
			put_text(answer, slurm_sprint_reservation_info(&shown->reservation_array[at], 1));
	slurm_free_reservation_info_msg(shown);
	return rc;
}

/* The fields of an update; NULL or NONE leaves a field as it is, an empty text clears it. */
struct change {
	int64_t begin_time, ntasks, ntasks_per_node, memory_per_cpu, memory_per_node, site_factor, time_limit;
	int64_t cpus, min_cpus_per_node;
	char *admin_comment, *required_nodes, *tres_per_node, *extra, *partitions;
};

/* The caller's idea of it must be the same. */
size_t sns_change_size(void) { return sizeof(struct change); }

static void describe(job_desc_msg_t *desc, const struct change *change)
{
	slurm_init_job_desc_msg(desc);
	desc->admin_comment = change->admin_comment;
	desc->req_nodes = change->required_nodes;
	desc->tres_per_node = change->tres_per_node;
	desc->extra = change->extra;
	desc->partition = change->partitions;
	if (change->begin_time != NONE)
		desc->begin_time = change->begin_time;
	if (change->ntasks != NONE)
		desc->num_tasks = change->ntasks;
	if (change->ntasks_per_node != NONE)
		desc->ntasks_per_node = change->ntasks_per_node;
	if (change->memory_per_cpu != NONE)
		desc->pn_min_memory = change->memory_per_cpu | MEM_PER_CPU;
	if (change->memory_per_node != NONE)
		desc->pn_min_memory = change->memory_per_node;
	if (change->site_factor != NONE)
		desc->site_factor = NICE_OFFSET + change->site_factor;
	if (change->time_limit != NONE)
		desc->time_limit = change->time_limit;
	if (change->cpus != NONE)
		desc->min_cpus = change->cpus;
	if (change->min_cpus_per_node != NONE)
		desc->pn_min_cpus = change->min_cpus_per_node;
}

/* The record with this id alone, also if it is that of several tasks of an array. */
int sns_change(uint32_t job_id, const struct change *change)
{
	job_desc_msg_t desc;

	describe(&desc, change);
	JOB_ID_OF(desc) = job_id;
	errno = 0;
	return slurm_update_job(&desc) ? failed() : 0;
}

/* Tasks of an array, `41_7` or `41_[7,9]`. A record of the answer: an error number (int64), and whose it is, as `41_9`. */
int sns_change_tasks(struct answer *answer, char *tasks, const struct change *change)
{
	job_desc_msg_t desc;
	job_array_resp_msg_t *shown = NULL;
	uint32_t count;
	int rc;

	describe(&desc, change);
	desc.job_id_str = tasks;
	errno = 0;
	if (slurm_update_job2(&desc, &shown))
		return failed();
	count = shown ? shown->job_array_count : 0;
	if (!(rc = begin(answer, count))) {
		for (uint32_t at = 0; at < count; at++) {
			const char *whose = shown->job_array_id[at];
			append(answer, &(int64_t){shown->error_code[at]}, sizeof(int64_t));
			append(answer, whose, strlen(whose));
			end_record(answer);
		}
		rc = answer->is_short_of_memory ? ENOMEM : 0;
	}
	slurm_free_job_array_resp(shown);
	return rc;
}

int sns_requeue(uint32_t job_id)
{
	errno = 0;
	return slurm_requeue(job_id, 0) ? failed() : 0;
}

/* How many messages slurmctld keeps for slurmdbd. */
int sns_database_queue(int64_t *length)
{
	stats_info_request_msg_t request = { .command_id = STAT_COMMAND_GET };
	stats_info_response_msg_t *shown = NULL;

	errno = 0;
	if (slurm_get_statistics(&shown, &request))
		return failed();
	*length = shown->dbd_agent_queue_size;
	slurm_free_stats_response_msg(shown);
	return 0;
}
