"""What the generator `idcp` assumes about the site and its jobs: every number, with what it is and where it is from.

Source: Cost-based dynamic job rescheduling (2010), "the paper" below. Its traces are not public, and it prints neither
the sizes of pools, machines and jobs nor how long jobs run. "Assumed" is what we chose. "Calibrated" is assumed as
well, and chosen so that replays without restarts come near what the paper prints for that case: tables 1 and 2 for two
weeks, figure 2 for ten weeks, figure 3 for a year. So these numbers of the paper are inputs, never results. Figure 2 is
met roughly, and only if each suspension counts by itself: the total over a job's life is far longer than printed.
`dataclasses.replace` varies the parameters.
"""

from dataclasses import dataclass

#: Values and the share of each.
Shares = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class IdcpParameters:
    """A load is the work of jobs (run time x cores) over the capacity of its pools. Shares need not sum to 1."""

    # -- The site

    #: Machines of each pool at scale 1. The paper: 20 pools, hundreds of machines in each. Assumed: 10,000 in all.
    pool_machines: tuple[int, ...] = (
        *(800, 350, 620, 400, 680, 330, 510, 450, 600, 360),
        *(560, 420, 740, 340, 480, 380, 650, 430, 540, 360),
    )
    #: Cores, GB and share of each size of machine, the largest last. The paper: "heterogeneous multi-core". Assumed:
    #: about as many cores as give the 840,552 jobs of two weeks, with these run times, the printed utilisation.
    machine_sizes: tuple[tuple[int, int, float], ...] = (
        (2, 8, 0.64),
        (2, 16, 0.20),
        (4, 16, 0.10),
        (4, 32, 0.04),
        (8, 64, 0.02),
    )
    #: The pools are in so many groups in turn, each with users of one part of the world. The paper: jobs "originated
    #: from several sites across the globe", with data centres of several pools. Assumed number.
    groups: int = 5

    # -- Low-priority jobs: when they come and where to

    #: Their load. Calibrated: with the bursts, 40 % mean utilisation in a year.
    low_load: float = 0.35
    #: The share that names a pool; round robin distributes the others. Those that name one prefer pools that round
    #: robin leaves with less than the mean load, as far as they can. The paper: "according to resource availability and
    #: configurations". Calibrated: small pools must not be full all the time.
    named_share: float = 0.36
    #: Of the others, the share that may run in the pools of their own group only. Assumed.
    bound_share: float = 0.10
    #: How far the arrival rate by the local hour is above and below its mean, as a fraction of it. Assumed.
    day_amplitude: float = 0.5
    #: The arrival rate at the weekend over that of a working day. Assumed.
    weekend: float = 0.6
    #: The standard deviation of the logarithm of the arrival rate, common to the site and of each group; these levels
    #: change within `correlation_days`. Calibrated: utilisation from 20 to 60 % in a year (figure 3).
    site_spread: float = 0.17
    group_spread: float = 0.25
    correlation_days: float = 10

    # -- Programs: how long jobs run, and how large they are

    #: Programs of low-priority jobs ("activities"), some far more frequent than others. Assumed.
    programs: int = 400
    #: The mean run time of low-priority jobs. Calibrated (table 2).
    low_run_min: float = 215
    #: The standard deviation of the logarithm of the programs' run times. Calibrated: 2.5 % of all jobs complete
    #: after more than 2408 min and 0.25 % after more than 7821 min without restarts (section 4.2: a reduction of
    #: 602 min is 25 %, one of 2268 min is 29 %).
    program_spread: float = 1.5
    #: The same within a program. The paper: a program's averages by hour "vary little" (figure 5). Assumed.
    job_spread: float = 0.3
    #: A program's run time changes when its chip model does, "every few days or weeks" (section 3.2), by this spread of
    #: the logarithm. Assumed.
    release_days: float = 10
    release_spread: float = 0.2
    #: No job runs longer. Assumed: jobs complete after up to about 10 days without restarts (figure 7).
    longest_run_days: float = 10
    #: Cores of a program's jobs, and GB for each core. Assumed: suspended and running jobs fit into memory together.
    job_cores: Shares = ((1, 0.80), (2, 0.12), (4, 0.08))
    job_gb_per_core: Shares = ((1, 0.65), (2, 0.25), (4, 0.08), (8, 0.02))
    #: A user asks for this many times the typical run time of a program, uniform in its logarithm, rounded up to a
    #: usual limit. Assumed.
    limit_factor: tuple[float, float] = (2, 10)

    # -- Bursts of high-priority jobs

    #: How often one begins at the site. Calibrated (figures 2 and 3).
    bursts_per_week: float = 3.5
    #: How long it lasts: the smallest and the largest number of hours. The paper: "several hours up-to a week".
    burst_hours: tuple[float, float] = (2, 168)
    #: The duration is a Pareto variable within these bounds, of this exponent above 0. Calibrated (figure 2).
    burst_tail: float = 0.5
    #: How many pools of one group it takes, at least and at most. The paper: "isolated to particular pools".
    burst_pools: tuple[int, int] = (1, 4)
    #: Its load in these pools while it demands cores, at least and at most. Calibrated (figure 2).
    burst_height: tuple[float, float] = (0.4, 1.3)
    #: A burst that is longer than this demands cores in so many hours of each day, counted from its beginning.
    #: Calibrated: suspended jobs go on every day, so nearly all of them complete in time (table 1).
    wave_hours: int = 18
    #: The relative standard deviation of the load from hour to hour. Calibrated (table 1: the suspend time).
    wave_spread: float = 0.1
    #: Low-priority load that the owners of a burst add in its pools while it demands cores; these jobs name the pool
    #: and may be moved anywhere. Calibrated (table 1: the number of suspended jobs).
    surge_load: float = 0.17
    #: So many jobs run one after another on a core in a burst, at least and at most: the run time is the duration over
    #: this number. Calibrated (figure 2: the median suspension is 275 s, that of a short job in a pool that is full).
    runs_per_burst: tuple[float, float] = (8, 40)
    #: High-priority programs, with run times from the smallest to the largest in equal ratios. Assumed.
    high_programs: int = 30
    high_run_min: tuple[float, float] = (3, 2000)
    #: The standard deviation of the logarithm of the run times within such a program. Calibrated (figure 2).
    high_spread: float = 1.7
    #: High-priority jobs have one core and this memory. Assumed.
    high_gb: int = 1

    # -- The two weeks of tables 1 and 2

    #: Days before the two weeks in which only low-priority jobs come. Assumed: whole weeks, for the weekly rhythm.
    warm_up_days: int = 7
    #: The low-priority load from the beginning of the warm-up on. Calibrated: 42.3 % utilisation.
    fortnight_low_load: float = 0.255
    #: When strong bursts begin, each in another group, in days from the beginning of the two weeks. Calibrated: 2.7 %
    #: of the suspended jobs do not complete in the period.
    strong_begin_days: tuple[float, ...] = (1.5, 3.2, 4.9, 6.6, 8.3)
    #: Their duration, number of pools, load, and mean run time. Calibrated: 4.3 % of the jobs suspended, for 1432.6 min
    #: on average. Run times vary by `job_spread`.
    strong_days: float = 5.5
    strong_pools: int = 2
    strong_height: float = 1.01
    strong_run_min: float = 165


DEFAULTS = IdcpParameters()
