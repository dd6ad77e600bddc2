# ruff: noqa: F821, RUF012 -- ReFrame defines these names in the class, and reads its attributes as a test's parameters
"""ReFrame's tests: some that pass, a chain, and two that must fail."""

import reframe as rfm
import reframe.utility.sanity as sn


class Sleeps(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "sh"
    executable_opts = ["-c", "'sleep 1; echo done'"]
    num_tasks = 14
    time_limit = "5m"

    @sanity_function
    def ends_well(self):
        return sn.assert_found("done", self.stdout)


@rfm.simple_test
class Fine(Sleeps):
    number = parameter(range(8))
    tags = {"fine"}


@rfm.simple_test
class TwoNodes(Sleeps):
    num_tasks = 4
    num_tasks_per_node = 2


@rfm.simple_test
class Later(Sleeps):
    @run_after("init")
    def needs(self):
        self.depends_on("TwoNodes")


@rfm.simple_test
class Fails(Sleeps):
    executable = "false"


@rfm.simple_test
class WaitsTooLong(Sleeps):
    max_pending_time = "10s"

    @run_before("run")
    def begins_later(self):
        self.job.options = ["--begin=now+1hour"]
