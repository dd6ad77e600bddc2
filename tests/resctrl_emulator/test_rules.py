"""The kernel's rules, each on the model and through the mounted file system."""

from errno import EACCES, EEXIST, EINVAL, ENODEV, ENOENT, ENOSPC, EOVERFLOW, EPERM, ERANGE, ESRCH
from typing import NamedTuple

import pytest


class Row(NamedTuple):
    """A write to the schemata of a new group is refused, and nothing changes."""

    text: str
    status: str
    machine: str = "xeon"
    number: int = EINVAL


ROWS = [
    Row("L3 0=f\n", "Missing ':'"),
    Row("L3:0=f\n\n", "Missing ':'"),
    Row("L3:\n", "Missing 'L3' value"),
    Row("MB:\n", "Missing 'MB' value"),
    Row("L4:0=f\n", "Unknown or unsupported resource name 'L4'"),
    Row("l3:0=f\n", "Unknown or unsupported resource name 'l3'"),
    Row("L2:0=f\n", "Unknown or unsupported resource name 'L2'"),
    Row("L3:0=f\n", "Unknown or unsupported resource name 'L3'", "xeon-cdp"),
    Row("MB:0=50\n", "Unknown or unsupported resource name 'MB'", "xeon-without-mb"),
    Row("L3:f\n", "Missing '=' or non-numeric domain"),
    Row("L3:x=f\n", "Missing '=' or non-numeric domain"),
    Row("L3: 0=f\n", "Missing '=' or non-numeric domain"),
    Row("L3:0=f;;1=f\n", "Missing '=' or non-numeric domain"),
    Row("L3:-1=f\n", "Missing '=' or non-numeric domain"),
    Row("L3:7=f\n", "ok"),
    Row("L3:2=f\n", "ok", "amd"),
    Row("MB:9=50\n", "ok"),
    Row("L3:0=f;0=f\n", "Duplicate domain 0"),
    Row("L3:0=f\nL3:0=f\n", "Duplicate domain 0"),
    Row("MB:1=50;1=50\n", "Duplicate domain 1"),
    Row("L3:0=zz\n", "Non-hex character in the mask zz"),
    Row("L3:0=\n", "Non-hex character in the mask "),
    Row("L3:0=0x\n", "Non-hex character in the mask 0x"),
    Row("L3:0=f_f\n", "Non-hex character in the mask f_f"),
    Row("L3:0=10000000000000000\n", "Non-hex character in the mask 10000000000000000"),
    Row("L3:0=0\n", "Mask out of range"),
    Row("L3:0=100000\n", "Mask out of range"),
    Row("L3:0=f7\n", "The mask f7 has non-consecutive 1-bits"),
    Row("L3:0=1\n", "Need at least 2 bits in the mask", "haswell"),
    Row("L2:0=5\n", "The mask 5 has non-consecutive 1-bits", "l2"),
    Row("L3DATA:0=5\n", "The mask 5 has non-consecutive 1-bits", "xeon-cdp"),
    Row("MB:0=5\n", "MB value 5 out of range [10,100]"),
    Row("MB:0=101\n", "MB value 101 out of range [10,100]"),
    Row("MB:0=2049\n", "MB value 2049 out of range [0,2048]", "amd"),
    Row("MB:0=ten\n", "Invalid MB value ten"),
    Row("MB:0=4294967296\n", "Invalid MB value 4294967296", "xeon-mib"),
    Row("L3:0=f\nMB:0=5\n", "MB value 5 out of range [10,100]"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.machine} {row.text!r}")
def test_a_bad_write_is_refused_with_the_kernels_message_and_changes_nothing(on, row):
    client = on(row.machine)
    assert client.make("job") == 0
    before = client.read("job/schemata")

    assert client.write("job/schemata", row.text) == row.number
    assert client.status() == row.status
    assert client.read("job/schemata") == before


def test_a_write_without_final_newline_is_refused_and_leaves_the_last_status(on):
    client = on("xeon")
    client.write("schemata", "L3:0=zz\n")

    assert client.write("schemata", "L3:0=f") == EINVAL
    assert client.status() == "Non-hex character in the mask zz"
    assert client.write("mode", "shareable") == EINVAL
    assert client.status() == "Non-hex character in the mask zz"


def test_a_good_write_says_ok_and_changes_only_the_listed_domains(on):
    client = on("xeon")
    client.write("schemata", "L3:0=zz\n")

    assert client.write("schemata", "L3:1=0xff00\n") == 0
    assert client.status() == "ok"
    assert client.read("schemata") == "    MB:0=  100;1=  100\n    L3:0=fffff;1=0ff00\n"


def test_several_lines_spaces_and_a_final_semicolon_are_accepted(on):
    client = on("xeon")

    assert client.write("schemata", " L3 :0= ff ;\nMB:0=20;1=30\n") == 0
    assert client.read("schemata") == "    MB:0=   20;1=   30\n    L3:0=000ff;1=fffff\n"


def test_bandwidth_is_rounded_up_to_the_next_step(on):
    client = on("xeon")

    assert client.write("schemata", "MB:0=11;1=90\n") == 0
    assert client.read("schemata").splitlines()[0] == "    MB:0=   20;1=   90"


@pytest.mark.parametrize(
    ("machine", "schemata", "size"),
    [
        (
            "xeon",
            "    MB:0=  100;1=  100\n    L3:0=fffff;1=fffff\n",
            "    MB:0=100;1=100\n    L3:0=57671680;1=57671680\n",
        ),
        (
            "xeon-cdp",
            "    MB:0=  100;1=  100\nL3DATA:0=fffff;1=fffff\nL3CODE:0=fffff;1=fffff\n",
            "    MB:0=100;1=100\nL3DATA:0=57671680;1=57671680\nL3CODE:0=57671680;1=57671680\n",
        ),
        ("haswell", "L3:0=fffff;1=fffff\n", "L3:0=31457280;1=31457280\n"),
        ("l2", "L2:0=ff;1=ff\n", "L2:0=1048576;1=1048576\n"),
        (
            "xeon-mib",
            "    MB:0=4294967295;1=4294967295\n    L3:0=fffff;1=fffff\n",
            "    MB:0=4294967295;1=4294967295\n    L3:0=57671680;1=57671680\n",
        ),
        ("xeon-without-l3", "MB:0=100;1=100\n", "MB:0=100;1=100\n"),
        (
            "amd",
            "    MB:0=2048;1=2048;8=2048;9=2048\n    L3:0=ffff;1=ffff;8=ffff;9=ffff\n",
            "    MB:0=2048;1=2048;8=2048;9=2048\n    L3:0=33554432;1=33554432;8=33554432;9=33554432\n",
        ),
    ],
)
def test_each_machine_type_shows_its_own_lines_and_sizes(on, machine, schemata, size):
    client = on(machine)

    assert client.read("schemata") == schemata
    assert client.read("size") == size


def test_masks_with_holes_are_valid_where_sparse_masks_says_so(on):
    client = on("sparse")

    assert client.read("info/L3/sparse_masks") == "1\n"
    assert client.write("schemata", "L3:0=f00f\n") == 0
    assert client.read("size").splitlines()[-1] == "    L3:0=20971520;1=41943040"
    assert client.read("info/L2/sparse_masks") == "0\n"
    assert client.write("schemata", "L2:0=f00f\n") == EINVAL


def test_amd_takes_an_empty_mask_and_eighths_of_a_gigabyte(on):
    client = on("amd")
    client.make("job")

    assert client.write("job/schemata", "L3:8=0\nMB:8=17\n") == 0
    assert client.read("job/schemata") == "    MB:0=2048;1=2048;8=17;9=2048\n    L3:0=ffff;1=ffff;8=0;9=ffff\n"
    assert client.read("info/MB/delay_linear") == "0\n"
    assert "thread_throttle_mode" not in client.names("info/MB")


def test_with_mba_mbps_a_value_counts_at_once_even_if_a_later_line_is_refused(on):
    client = on("xeon-mib")
    client.make("job")

    assert client.write("job/schemata", "MB:0=1000;0=2000\nL3:0=0\n") == EINVAL
    assert client.status() == "Mask out of range"
    assert client.read("job/schemata").splitlines() == ["    MB:0= 2000;1=4294967295", "    L3:0=fffff;1=fffff"]


def test_a_new_group_may_use_all_the_cache(on):
    client = on("xeon")
    client.write("schemata", "L3:0=3;1=3\nMB:0=10;1=10\n")

    assert client.make("job") == 0
    assert client.status() == "ok"
    assert client.read("job/schemata") == "    MB:0=  100;1=  100\n    L3:0=fffff;1=fffff\n"


def test_a_new_group_gets_the_lowest_run_of_ways_that_no_exclusive_group_has(on):
    client = on("xeon")
    client.make("alone")
    client.write("schemata", "L3:0=0000f;1=0000f\n")
    client.write("alone/schemata", "L3:0=000f0;1=000f0\n")
    assert client.write("alone/mode", "exclusive\n") == 0

    client.make("job")
    assert client.read("job/schemata").splitlines()[1] == "    L3:0=0000f;1=0000f"


def test_no_more_groups_than_closids_the_root_group_included(on):
    client = on("xeon")
    assert [client.make(f"job{at}") for at in range(15)] == [0] * 15

    assert client.make("one_more") == ENOSPC
    assert client.status() == "Out of CLOSIDs"
    assert "one_more" not in client.names("")
    assert client.remove("job7") == 0
    assert client.status() == "Out of CLOSIDs", "removing leaves the last status"
    assert client.make("one_more") == 0


def test_the_closids_are_those_of_the_smallest_resource(on):
    client = on("sparse")

    assert (client.read("info/L3/num_closids"), client.read("info/L2/num_closids")) == ("15\n", "8\n")
    assert [client.make(f"job{at}") for at in range(8)] == [0] * 7 + [ENOSPC]


def test_cdp_halves_the_closids_and_parts_code_and_data(on):
    client = on("xeon-cdp")

    assert client.read("info/L3CODE/num_closids") == "8\n"
    assert [client.make(f"job{at}") for at in range(8)] == [0] * 7 + [ENOSPC]
    assert client.write("job0/schemata", "L3CODE:0=f\nL3DATA:0=ff0\n") == 0
    assert client.read("job0/schemata").splitlines()[1:] == ["L3DATA:0=00ff0;1=fffff", "L3CODE:0=0000f;1=fffff"]


def test_an_exclusive_group_may_share_ways_neither_with_code_nor_with_data_of_others(on):
    client = on("xeon-cdp")
    client.make("job")
    client.write("schemata", "L3CODE:0=f;1=f\nL3DATA:0=f0;1=f0\n")
    client.write("job/schemata", "L3CODE:0=f0;1=f0\nL3DATA:0=f00;1=f00\n")

    assert client.write("job/mode", "exclusive\n") == EINVAL
    assert client.status() == "Schemata overlaps"
    client.write("job/schemata", "L3CODE:0=f000;1=f000\n")
    assert client.write("job/mode", "exclusive\n") == 0
    assert client.write("schemata", "L3CODE:0=f00\n") == EINVAL
    assert client.status() == "Overlaps with exclusive group"


def test_no_more_groups_than_rmids(on):
    client = on("haswell")
    client.make("job")
    assert [client.make(f"job/mon_groups/m{at}") for at in range(46)] == [0] * 46

    assert client.make("job/mon_groups/one_more") == ENOSPC
    assert client.status() == "Out of RMIDs"
    assert client.make("second") == ENOSPC
    assert client.status() == "Out of RMIDs"
    client.remove("job")
    assert client.make("second") == 0


def test_without_room_in_a_cache_there_is_no_new_group_and_no_closid_is_lost(on):
    client = on("haswell")
    client.make("job")
    client.write("schemata", "L3:0=3;1=3\n")
    client.write("job/schemata", "L3:0=3fffc;1=3fffc\n")
    assert client.write("job/mode", "exclusive\n") == 0
    client.write("schemata", "L3:0=c0000;1=c0000\n")
    assert client.make("second") == 0, "the ways 0 and 1 are free"
    client.remove("second")
    client.make("low")
    client.write("low/schemata", "L3:0=3;1=3\n")
    assert client.write("low/mode", "exclusive\n") == 0

    assert client.make("third") == 0, "the devices' ways are shareable"
    client.remove("third")
    assert client.status() == "ok"


def test_a_machine_without_shareable_ways_can_be_full(on):
    client = on("l2")
    client.make("job")
    client.write("schemata", "L2:0=0f;1=0f\n")
    client.write("job/schemata", "L2:0=f0;1=f0\n")
    assert client.write("job/mode", "exclusive\n") == 0
    assert client.write("mode", "exclusive\n") == 0

    assert client.make("second") == ENOSPC
    assert client.status() == "No space on L2:0"
    assert client.write("mode", "shareable\n") == 0
    assert [client.make("second"), client.make("third"), client.make("fourth")] == [0, 0, ENOSPC]
    assert client.status() == "Out of CLOSIDs"


def test_exclusive_mode_needs_ways_of_its_own_and_keeps_them(on):
    client = on("xeon")
    client.make("job")
    client.make("other")
    assert client.write("job/mode", "exclusive\n") == EINVAL
    assert client.status() == "Schemata overlaps"

    client.write("schemata", "L3:0=0000f;1=0000f\n")
    client.write("other/schemata", "L3:0=00f00;1=00f00\n")
    client.write("job/schemata", "L3:0=000f0;1=000f0\n")
    assert client.write("job/mode", "exclusive\n") == 0
    assert client.read("job/mode") == "exclusive\n"
    assert client.write("other/schemata", "L3:0=00ff0\n") == EINVAL
    assert client.status() == "Overlaps with exclusive group"
    assert client.write("job/schemata", "L3:0=001f0\n") == EINVAL
    assert client.status() == "Overlaps with other group"
    assert client.write("job/schemata", "L3:0=c0000\n") == EINVAL
    assert client.status() == "Overlaps with other group"
    assert client.read("info/L3/bit_usage") == "0=HH000000SSSSEEEESSSS;1=HH000000SSSSEEEESSSS\n"
    assert client.write("job/mode", "shareable\n") == 0
    assert client.write("other/schemata", "L3:0=00ff0\n") == 0


def test_unknown_modes_and_machines_without_cat_know_no_exclusive_group(on):
    client = on("xeon")
    assert client.write("mode", "locked\n") == EINVAL
    assert client.status() == "Unknown or unsupported mode"

    client = on("xeon-without-l3")
    client.make("job")
    assert client.write("job/mode", "exclusive\n") == EINVAL
    assert client.status() == "Cannot be exclusive without CAT/CDP"


def test_bit_usage_marks_what_devices_use_too(on):
    client = on("xeon")

    assert client.read("info/L3/shareable_bits") == "c0000\n"
    assert client.read("info/L3/bit_usage") == "0=XXSSSSSSSSSSSSSSSSSS;1=XXSSSSSSSSSSSSSSSSSS\n"


# Tasks


def test_a_task_moves_and_goes_back_to_the_root_group_with_its_group(on):
    client = on("xeon")
    client.make("job")
    task = client.task()
    assert str(task) in client.read("tasks").split()

    assert client.write("job/tasks", f"{task}\n") == 0
    assert client.read("job/tasks") == f"{task}\n"
    assert str(task) not in client.read("tasks").split()
    assert client.remove("job") == 0
    assert str(task) in client.read("tasks").split()


def test_a_child_is_in_its_parents_group_and_an_older_child_stays_where_it_was(on):
    client = on("xeon")
    client.make("job")
    task = client.task()
    older = client.task(parent=task)
    client.write("job/tasks", f"{task}\n")

    child = client.task(parent=task)
    assert client.read("job/tasks").split() == sorted([str(task), str(child)], key=int)
    assert str(older) in client.read("tasks").split()


def test_a_dead_task_and_a_bad_number_are_refused(on):
    client = on("xeon")
    client.make("job")
    task = client.task()
    client.write("job/tasks", f"{task}\n")
    client.end(task)

    assert client.read("job/tasks") == ""
    assert client.write("job/tasks", f"{task}\n") == ESRCH
    assert client.status() == f"No task {task}\nError while processing task {task}"
    assert client.write("job/tasks", "x\n") == EINVAL
    assert client.status() == "Task list parsing error pid x"
    assert client.write("job/tasks", "-1\n") == EINVAL
    assert client.status() == "Invalid pid -1"


def test_an_older_kernel_takes_one_task_a_write(on):
    client = on("haswell")
    client.make("job")
    task = client.task()

    assert client.write("job/tasks", f"{task},{task}\n") == EINVAL
    assert client.status() == "ok"
    assert client.write("job/tasks", "4000000\n") == ESRCH
    assert client.status() == "No task 4000000"


def test_of_several_tasks_those_before_the_refused_one_have_moved(on):
    client = on("xeon")
    client.make("job")
    first, last = client.task(), client.task()

    assert client.write("job/tasks", f"{first},4000000,{last}") == ESRCH
    assert client.read("job/tasks") == f"{first}\n"


def test_who_does_not_own_a_task_may_not_move_it(on):
    client = on("xeon")
    client.make("job")
    task = client.task()

    assert client.write_as_nobody("job/tasks", f"{task}\n") == EPERM
    assert client.status() == f"No permission to move task {task}\nError while processing task {task}"


def test_the_number_0_is_the_task_that_writes(on):
    client = on("xeon")
    client.make("job")

    assert client.write("job/tasks", "0\n") == 0
    assert len(client.read("job/tasks").split()) == 1
    assert client.write("tasks", "0\n") == 0


# Monitoring groups


def test_a_monitoring_group_has_tasks_of_its_control_group_only(on):
    client = on("xeon")
    client.make("job")
    client.make("job/mon_groups/part")
    task = client.task()

    assert client.write("job/mon_groups/part/tasks", f"{task}\n") == EINVAL
    assert client.status().startswith("Can't move task to different control group")
    client.write("job/tasks", f"{task}\n")
    assert client.write("job/mon_groups/part/tasks", f"{task}\n") == 0
    assert client.read("job/mon_groups/part/tasks") == client.read("job/tasks") == f"{task}\n"
    client.remove("job/mon_groups/part")
    assert client.read("job/tasks") == f"{task}\n"


def test_groups_are_made_and_removed_in_their_places_only(on):
    client = on("xeon")
    client.make("job")
    client.make("job/mon_groups/part")

    assert client.make("job/inner") == EPERM
    assert client.make("job/mon_groups/mon_groups") == EPERM
    assert client.make("job/mon_groups/part/inner") == EPERM
    assert client.make("mon_data/inner") == EPERM
    assert client.make("info/inner") == ENODEV
    assert client.make("info/L3/inner") == ENODEV
    assert client.make("job") == EEXIST
    assert client.make("info") == EEXIST
    assert client.make("nowhere/inner") == ENOENT
    assert client.make("a\nb") == EINVAL
    for path in ("info", "mon_groups", "mon_data", "job/mon_groups", "job/mon_data", "info/L3"):
        assert client.remove(path) == EPERM
    assert client.names("job") == {
        *("cpus", "cpus_list", "tasks", "schemata", "mode", "size", "mon_groups", "mon_data")
    }
    assert client.names("job/mon_groups/part") == {"cpus", "cpus_list", "tasks", "mon_data"}
    assert client.remove("job") == 0
    assert client.names("") == {
        *("cpus", "cpus_list", "tasks", "schemata", "mode", "size", "mon_groups", "mon_data", "info")
    }


def test_only_a_monitoring_group_can_be_renamed(on):
    client = on("xeon")
    client.make("job")
    client.make("second")
    client.make("job/mon_groups/part")
    task = client.task()
    client.write("job/tasks", f"{task}\n")
    client.write("job/mon_groups/part/tasks", f"{task}\n")

    assert client.rename("job", "renamed") == EPERM
    assert client.status() == "Source must be a MON group"
    assert client.rename("job/mon_groups/part", "second/part") == EPERM
    assert client.rename("job/mon_groups/part", "second/mon_groups/moved") == 0
    assert client.read("second/tasks") == f"{task}\n"
    assert client.names("second/mon_groups") == {"moved"}


def test_without_monitoring_there_are_no_counters_and_no_monitoring_groups(on):
    client = on("xeon-without-monitoring")
    client.make("job")

    assert "L3_MON" not in client.names("info")
    assert client.names("job") == {"cpus", "cpus_list", "tasks", "schemata", "mode", "size"}
    assert client.make("job/inner") == EPERM
    assert client.make("info/inner") == EPERM


def test_info_describes_the_machine(on):
    client = on("xeon")

    assert client.names("info") == {"L3", "MB", "L3_MON", "last_cmd_status"}
    assert {name: client.read(f"info/MB/{name}") for name in client.names("info/MB")} == {
        "num_closids": "16\n",
        "min_bandwidth": "10\n",
        "bandwidth_gran": "10\n",
        "delay_linear": "1\n",
        "thread_throttle_mode": "max\n",
    }
    assert {name: client.read(f"info/L3_MON/{name}") for name in client.names("info/L3_MON")} == {
        "mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n",
        "num_rmids": "192\n",
        "max_threshold_occupancy": "98304\n",
    }
    assert client.read("info/L3/cbm_mask") == "fffff\n"
    assert client.read("info/L3/min_cbm_bits") == "1\n"
    assert client.names("mon_data") == {"mon_L3_00", "mon_L3_01"}
    assert client.names("mon_data/mon_L3_00") == {"llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"}
    assert client.write("info/L3/cbm_mask", "f\n") == EACCES
    assert client.write("info/last_cmd_status", "ok\n") == EACCES


def test_amd_lets_the_counted_events_be_chosen(on):
    client = on("amd")

    assert "mbm_total_bytes_config" in client.read("info/L3_MON/mon_features").split()
    assert client.write("info/L3_MON/mbm_total_bytes_config", "0=0x30;8=33\n") == 0
    assert client.read("info/L3_MON/mbm_total_bytes_config") == "0=0x30;1=0x7f;8=0x33;9=0x7f\n"
    assert client.write("info/L3_MON/mbm_total_bytes_config", "0=0xff\n") == EINVAL
    assert client.status() == "Invalid event configuration: max valid mask is 0x7f"
    assert client.write("info/L3_MON/mbm_total_bytes_config", "0=0x7f;8=7f\n") == 0


# CPUs


def test_cpus_belong_to_one_group_and_go_back_to_the_root_group(on):
    client = on("xeon")
    client.make("job")
    assert client.read("cpus") == "fffffff\n"
    assert (client.read("job/cpus"), client.read("job/cpus_list")) == ("0000000\n", "\n")

    assert client.write("job/cpus_list", "0-3,8\n") == 0
    assert client.read("job/cpus") == "000010f\n"
    assert client.read("cpus_list") == "4-7,9-27\n"
    assert client.write("job/cpus", "03,\n") == 0
    assert client.read("job/cpus_list") == "0-1\n"
    assert client.read("cpus_list") == "2-27\n"
    client.remove("job")
    assert client.read("cpus_list") == "0-27\n"


def test_bad_cpus_are_refused(on):
    client = on("xeon")
    client.make("job")

    assert client.write("cpus_list", "0-3\n") == EINVAL
    assert client.status() == "Can't drop CPUs from default group"
    for path, text, number in [
        ("job/cpus_list", "3-1\n", EINVAL),
        ("job/cpus_list", "x\n", EINVAL),
        ("job/cpus_list", "28\n", ERANGE),
        ("job/cpus", "xyz\n", EINVAL),
        ("job/cpus", "10000000\n", EOVERFLOW),
    ]:
        assert client.write(path, text) == number
        assert client.status() == "Bad CPU list/mask"


def test_a_monitoring_group_has_cpus_of_its_control_group_only(on):
    client = on("xeon")
    client.make("job")
    client.make("job/mon_groups/part")

    assert client.write("job/mon_groups/part/cpus_list", "1\n") == EINVAL
    assert client.status() == "Can only add CPUs to mongroup that belong to parent"
    client.write("job/cpus_list", "0-3\n")
    assert client.write("job/mon_groups/part/cpus_list", "1-2\n") == 0
    client.write("cpus_list", "0-27\n")
    assert client.read("job/mon_groups/part/cpus_list") == "\n"


def test_a_mask_of_many_cpus_is_written_in_groups_of_eight_digits():
    from resctrl_emulator import cpu_lists

    assert cpu_lists.mask_text({0, 40}, 64) == "00000100,00000001"
    assert cpu_lists.mask_text((), 40) == "00,00000000"
    assert cpu_lists.read_mask("00000100,00000001\n") == {0, 40}
    assert cpu_lists.read_list("0-7:2/4,,9") == {0, 1, 4, 5, 9}
