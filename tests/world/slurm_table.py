"""The table of Slurm's rules: steps whose outcome the model must share with a real Slurm.

table_steps says what a line means. There are no expected values: tests/cluster/test_model_of_slurm.py compares what is
seen on the model with what is seen on the mini cluster. There all cases run at the same time, so each has jobs of its
own and, where it fills or changes nodes, nodes of its own:

    partition   nodes    used for
    main        c3, c4   managed: the submit filter gates the jobs for a minute, then Slurm may start them
    t, u, v     c3, c4   small jobs; u also with limits that do not concern them
    d           c4       a partition whose state and limits are changed
    q, y, z     s1       jobs that wait behind others; z has the PriorityTier 5
    x           s2, c4   the same, on nodes of others: its case runs alone
    r           c2       reservations, whole nodes
    w           c1       suspended jobs, drained and dead nodes
    k           c1, c3   a job that waits for such a node
    low, high   c1       in the last two cases alone: jobs of high suspend those of low
"""

#: The nodes of the mini cluster's partitions, and of those that the table adds to it: their names have one letter.
PARTITIONS = {
    "main": ("c3", "c4"),
    "small": ("s1", "s2"),
    "plain": ("c1", "c2", "c3", "c4", "s1", "s2"),
    "t": ("c3", "c4"),
    "u": ("c3", "c4"),
    "d": ("c4",),
    "q": ("s1",),
    "r": ("c2",),
    "w": ("c1",),
    "k": ("c1", "c3"),
    "x": ("s2", "c4"),
    "v": ("c4",),
    "y": ("s1",),
    "z": ("s1",),
    "low": ("c1",),
    "high": ("c1",),
}
#: Their PriorityTier, where it is not 1.
TIERS = {"z": 5, "high": 10}

_TABLE = """
# Dependencies: these cases are the first, because Slurm looks at those of held jobs once a minute only

a dependency is fulfilled
    alice: submit a -p t -n1 run=6
    alice: submit b -p t -n1 -d afterok:{a}
    alice: submit c -p t -n1 -H -d afterok:{a}
    until b Dependency
    see b
    see c
    until b running
    see b
    until c free
    see c
    alice: submit d -p t -n1 -H -d afterok:{a}
    see d
    alice: submit e -p t -n1 -d afterok:999999
    alice: submit f -p t -n1 -a 1-2 run=1
    alice: submit g -p t -n1 -d afterok:{f}
    until g running

a dependency fails
    alice: submit a -p t -n1 fail=6
    alice: submit b -p t -n1 -d afterok:{a}
    alice: submit c -p t -n1 -H -d afterok:{a}
    alice: submit d -p t -n1 -d afterany:{a}
    alice: submit e -n1 -d afterok:{a}
    alice: submit f -p t -n1
    alice: submit g -p t -n1 -d afterok:{f} --begin=now+3600
    until f running
    alice: cancel f
    until g DependencyNeverSatisfied
    see g
    until a ended
    until d running
    until b,e DependencyNeverSatisfied
    see b
    see e
    until c JobHeldAdmin
    see c
    alice: release c
    see c but reason

a placed job still waits for others
    alice: submit a -p t -n1 -H
    alice: submit b -n1 -d afterok:{a}
    slurm: place b c3
    until b Dependency
    see b
    slurm: regate b 3600
    until b Dependency
    see b

# Submitting

a managed job is gated, and its number of nodes is open
    alice: submit a -n4
    see a
    alice: submit b -N2
    see b
    alice: submit c -n1 --mem=500
    see c
    alice: submit d -n4 --ntasks-per-node=2 -c2 --nice=100
    see d
    alice: submit e -n2 --begin=now+3600
    see e

a job of other partitions passes
    alice: submit a -p t -n2 --begin=now+3600 --nice=7 --comment=hello
    see a
    alice: submit b -p t -N2 --begin=now+3600 --mem=300
    see b
    alice: submit c -p t -n1 --begin=now+3600 --no-requeue -x c3 -w c4
    see c
    alice: submit d -p t -n2 --begin=now+3600 --gres=llc:2,membw:5
    see d
    alice: submit e -p t -n2 run=1
    until e succeeded quiet
    see e
    alice: submit f -p t -n1 fail=1
    until f ended quiet
    see f

jobs begin when they may
    alice: submit a -p t -n1 --begin=now+4
    see a
    until a running
    see a
    alice: update a StartTime=now+3600
    alice: submit b -p t -n1 --begin=now+3600
    alice: update b StartTime=now
    until b running

a gate that nobody renews opens by itself
    alice: submit a -n1
    until a BeginTime
    see a
    until a running
    see a

# Begin times and holds

a hold and a gate do not touch each other
    alice: submit a -n1
    slurm: renew a 3600
    see a
    alice: hold a
    see a
    alice: release a
    see a
    root: hold a
    alice: release a
    see a
    root: release a
    until a BeginTime
    see a
    alice: submit b -n1 -H
    slurm: renew b 3600
    see b
    alice: release b
    until b BeginTime
    see b
    root: release b
    see b
    alice: requeue b
    alice: requeuehold b
    see b

an owner opens and moves a gate
    alice: submit a -n1
    slurm: renew a 3600
    alice: update a StartTime=now
    until a running
    see a
    alice: update a StartTime=now
    alice: submit b -n1
    alice: update b StartTime=now+3600
    see b
    slurm: renew b 7200
    see b
    slurm: free b
    until b running
    alice: submit c -n1
    slurm: free c 3600
    until c BeginTime
    see c

only administrators write AdminComment and SiteFactor
    alice: submit a -n1
    slurm: renew a 3600
    alice: update a AdminComment=mine
    alice: update a SiteFactor=5
    alice: update a Comment=there AdminComment=mine
    see a
    root: update a AdminComment=a-site-note
    see a
    root: update a SiteFactor=2000000000
    see a
    slurm: renew a 7200
    see a
    alice: submit b -p t -n1
    until b running
    root: update b AdminComment=late SiteFactor=5
    see b
    slurm: unboost b
    see b

# Holds

an owner holds and releases
    alice: submit a -p t -n2 -H
    see a
    alice: hold a
    see a
    alice: release a
    until a running
    see a
    alice: hold a
    alice: release a
    see a
    root: release a
    see a
    alice: cancel a
    until a ended quiet
    see a
    alice: hold a
    alice: release a
    root: release a
    alice: cancel a
    alice: hold 999999
    alice: release 999999

a job that runs is held once it is requeued
    alice: submit a -p t -n1 --nice=3
    until a running
    pause 1.2
    alice: hold a
    see a
    alice: requeue a
    until a pending restarts=1 quiet
    see a
    alice: release a
    until a running
    root: hold a
    alice: release a
    root: update a Nice=7
    see a
    root: requeue a
    until a pending restarts=2 quiet
    see a
    root: release a
    until a running
    alice: hold a
    alice: release a
    see a
    root: requeue a
    until a pending restarts=3 quiet
    see a

a suspended job has lost its priority
    alice: submit a -p t -n1 --nice=3
    until a running
    pause 1.2
    root: suspend a
    see a
    alice: hold a
    alice: release a
    root: update a Nice=5
    alice: update a ReqNodeList=c3
    alice: update a Comment=x
    alice: update a TimeLimit=30
    see a
    root: resume a
    see a
    root: suspend a
    root: requeue a
    until a pending restarts=1 quiet JobHeldAdmin
    see a
    alice: release a
    slurm: place a c3
    see a
    root: release a
    until a running
    alice: suspend a
    root: release a
    see a
    alice: resume a
    root: suspend a
    slurm: requeue a
    root: resume a
    root: requeue a
    until a pending restarts=2 quiet
    see a

a resumed job is not held
    alice: submit a -p t -n1
    until a running
    pause 1.2
    alice: hold a
    root: suspend a
    see a
    root: resume a
    see a
    root: requeue a
    until a pending restarts=1 quiet
    see a but reason
    alice: release a
    alice: submit b -p t -n1
    until b running
    root: suspend b
    alice: cancel b
    until b ended quiet
    see b
    root: suspend b
    root: resume b

an owner cannot release what an administrator holds
    alice: submit a -p t -n1 -H
    root: hold a
    see a
    alice: release a
    see a
    alice: hold a
    see a
    alice: uhold a
    see a
    root: uhold a
    see a
    root: hold a
    root: release a
    until a running
    see a

an administrator may hold for the owner
    alice: submit a -p t -n1 --begin=now+3600 --nice=100
    root: hold a
    see a
    root: uhold a
    see a
    alice: release a
    see a
    root: uhold a
    see a
    root: release a
    see a

a hold keeps nice, and a release of a job that is not held does not
    alice: submit a -p t -n1 --begin=now+3600 --nice=100
    alice: hold a
    see a
    alice: release a
    see a
    alice: release a
    see a
    alice: update a Nice=60
    root: release a
    see a

another user may change nothing
    alice: submit a -p t -n1 -H
    bob: hold a
    bob: release a
    bob: update a Nice=5
    bob: update a Comment=mine
    bob: cancel a
    see a
    alice: release a
    until a running
    bob: requeue a
    bob: suspend a
    bob: cancel a
    alice: suspend a
    alice: resume a
    see a

# Placements

a placed job starts on its nodes, the first of all
    alice: submit a -n4 --mem=500
    slurm: place a c3,c4 per_node=2 tasks=4 ways=1 bandwidth=5
    until a running
    see a
    slurm: unboost a
    see a
    slurm: place a c3
    slurm: regate a 3600
    slurm: renew a 3600
    see a
    alice: cancel a
    until a ended quiet
    slurm: place a c3
    slurm: unboost a
    see a
    slurm: place 999999 c3
    slurm: renew 999999 3600

a placement keeps what it does not name
    alice: submit a -n2 --nice=100
    slurm: place a c3 begin=3600
    see a but nodes_min
    alice: submit b -n4
    slurm: place b c3,c4 per_node=3 tasks=4 begin=3600
    see b but nodes_min
    alice: submit c -n4
    slurm: place c c4 per_node=4 tasks=4 memory=900 extra=sns:grant=x begin=3600
    see c but nodes_min
    alice: submit d -N2 -n4
    slurm: place d c3,c4 begin=3600
    see d
    alice: submit e -n2 --mem=400
    slurm: place e c4 per_node=2 tasks=2 memory=800 ways=2 begin=3600
    see e but nodes_min

a placement on nodes that do not serve
    alice: submit a -n2
    slurm: place a nowhere
    see a
    slurm: place a s1
    until a BadConstraints
    see a but nodes_min
    slurm: regate a 3600
    until a BeginTime
    see a
    slurm: place a c3
    until a running
    alice: submit b -n2
    slurm: place b c3,s1
    until b running
    see b
    alice: submit c -p t -n1 -H -w c3
    alice: update c Partition=v
    alice: release c
    until c BadConstraints
    see c

of a node list that is longer than necessary Slurm takes a part
    alice: submit a -n4
    slurm: place a c3,c4
    until a running
    see a but allocated
    alice: submit b -p t -n2 -w c3,c4
    until b running
    see b
    alice: submit c -p t -n2 -H
    alice: update c ReqNodeList=c3,c4
    alice: release c
    until c running
    see c but allocated
    alice: submit e -p x -N1 -n2 -w s2
    until e running
    see e

a placement of a held job does not start
    alice: submit a -n1 -H
    slurm: place a c3
    see a but nodes_min
    alice: release a
    until a running
    see a
    alice: submit b -n1
    slurm: renew b 3600
    root: hold b
    slurm: place b c3
    see b but nodes_min
    slurm: regate b 3600
    see b
    root: release b
    until b BeginTime
    see b

an impossible placement is held by Slurm
    alice: submit a -n4
    slurm: place a c3 per_node=40 tasks=4
    until a BadConstraints
    slurm: regate a 3600 per_node=0 tasks=4
    until a BeginTime
    see a
    alice: submit b -n2
    slurm: place b c3 per_node=2 tasks=2 ways=30
    until b BadConstraints
    slurm: free b per_node=0 tasks=2
    until b running
    see b
    alice: submit c -n2
    slurm: place c c3 per_node=2 tasks=2 memory=200000
    until c BadConstraints
    alice: update c Comment=x
    until c BadConstraints
    slurm: regate c 3600 per_node=0 tasks=2 per_cpu=100
    until c BeginTime
    see c
    alice: update c Nice=50
    see c

an update that Slurm refuses in the middle stays in part
    alice: submit a -n2
    slurm: renew a 3600
    root: update a ReqNodeList=c3 TresPerNode=gres/nothing:1 AdminComment=x StartTime=now+7200
    see a but nodes_min
    root: update a ReqNodeList= Partition=nowhere
    see a but nodes_min
    alice: submit b -N2 -n4
    slurm: renew b 3600
    root: update b ReqNodeList=c3,c4 AdminComment=x NumTasks=1 StartTime=now+7200 SiteFactor=7
    see b but cpus,asks_for,is_countable
    alice: submit c -N2 -n4
    slurm: renew c 3600
    root: update c TasksPerNode=0 AdminComment=y
    see c

an impossible job waits or is held as bad
    alice: submit a -p t -n1 -H --mem=200000
    alice: submit b -p t -N3 -H
    alice: submit c -p t -n1 -H --gres=llc:30
    alice: release a
    alice: release b
    alice: release c
    until a,c BadConstraints
    until b PartitionNodeLimit
    see a
    see b
    see c
    alice: update a MinMemoryNode=100
    until a running
    alice: submit d -p t -n1 --mem=200000
    alice: submit e -p t -n200
    until e PartitionConfig
    see e
    alice: update e NumTasks=2
    until e running
    alice: hold c
    until c JobHeldAdmin
    see c
    alice: release c
    alice: update c Comment=x
    see c

# Taking back

a placement that has not started is taken back
    alice: submit a -n4 --nice=5
    slurm: place a c3 per_node=4 tasks=4 ways=2 bandwidth=9 memory=700 extra=sns:grant=x begin=3600
    see a but nodes_min
    slurm: regate a 3600 per_node=0 tasks=4 per_cpu=100 no_extra
    see a
    slurm: place a c4 per_node=2 tasks=4 memory=700 begin=3600
    slurm: regate a 3600 per_node=0 tasks=4 memory=600
    see a
    slurm: free a 3600
    until a BeginTime
    see a
    alice: submit b -n4 --ntasks-per-node=2
    slurm: place b c3,c4 per_node=4 tasks=4 begin=3600
    slurm: regate b 3600 per_node=2 tasks=4
    see b
    slurm: place b c3,c4
    until b running
    see b

fewer tasks on each node may follow more
    alice: submit a -n8
    slurm: place a c3,c4 per_node=4 tasks=8 ways=1 begin=3600
    slurm: regate a 3600 per_node=0 tasks=8
    slurm: place a c3 per_node=8 tasks=8
    until a running
    see a

a part of a placement that its owner has changed stays
    alice: submit a -n1
    slurm: place a c3 ways=2 begin=3600
    alice: update a ReqNodeList=c4
    see a but nodes_min
    slurm: regate a 3600 keeps_nodes
    see a but nodes_min
    alice: submit b -n1
    slurm: place b c3 ways=2 begin=3600
    alice: update b TresPerNode=gres/llc:3
    slurm: regate b 3600 keeps_gres
    see b but nodes_min

# Nice

users raise nice and administrators lower it
    alice: submit a -p t -n1 -H --nice=100
    alice: update a Nice=200
    see a
    alice: update a Nice=150
    see a
    alice: update a Nice=-5
    see a
    root: update a Nice=-5
    see a
    alice: update a Nice=-5
    alice: update a Nice=-6
    alice: update a Nice=3
    see a

nice of a running job
    alice: submit a -p t -n1 --nice=100
    until a running
    root: update a Nice=50
    see a
    alice: update a Nice=20
    alice: update a Nice=60
    alice: update a Nice=-1
    root: update a Nice=-2000000000
    see a
    alice: cancel a
    until a ended quiet
    root: update a Nice=8
    see a

a completing job takes little
    alice: submit a -p t -n1 stubborn=1
    until a running
    alice: cancel a
    see a
    slurm: unboost a
    alice: hold a
    slurm: place a c3
    root: requeue a
    see a

alone: nothing starts where a job is completing
    alice: submit a -p w -n1 stubborn=1
    until a running
    alice: submit b -p w -n1 --begin=now+3600
    alice: cancel a
    until a completing
    slurm: place b c1
    until b ReqNodeNotAvail
    until a ended quiet
    until b running

a priority that an administrator has set stays
    alice: submit a -p t -n1 --begin=now+3600 --nice=5
    root: update a Priority=2000000000
    see a
    alice: update a Nice=9
    see a
    alice: hold a
    see a
    root: update a Priority=500
    alice: release a
    see a
    root: update a Priority=500
    root: release a
    see a

# Requeued jobs

a requeued job keeps what was written into it, and Slurm gates it
    alice: submit a -n2 --nice=9
    slurm: place a c3 per_node=2 tasks=2 ways=2 memory=300 extra=sns:grant=x
    until a running
    pause 1.2
    root: requeue a
    until a pending restarts=1 quiet
    see a but nodes_min
    slurm: regate a 3600 per_node=0 tasks=2 per_cpu=100 no_extra
    until a BeginTime
    see a
    alice: submit b -n1
    slurm: place b c3
    until b running
    pause 1.2
    alice: requeuehold b
    until b pending restarts=1 quiet
    slurm: regate b 3600
    see b
    alice: release b
    until b BeginTime
    see b

a job that is held while it runs
    alice: submit a -p t -n1
    alice: submit b -p t -n1
    until a,b running
    pause 1.2
    root: uhold a
    see a
    root: release a
    see a
    root: requeue a
    until a pending restarts=1 quiet
    see a
    root: uhold b
    root: requeue b
    until b pending restarts=1 quiet
    see b

a job is requeued and held
    alice: submit a -p t -n1
    alice: submit b -p t -n1
    alice: submit c -p t -n1
    alice: submit d -p t -n1 -H
    alice: submit e -p t -n1 run=1
    alice: submit f -p t -n1 --no-requeue
    alice: requeuehold d
    see d
    until a,b,c,f running
    until e succeeded quiet
    pause 1.2
    alice: requeuehold a
    bob: requeuehold b
    root: requeuehold b
    alice: requeuehold e
    alice: requeuehold f
    alice: suspend c
    root: suspend c
    alice: requeuehold c
    until a,b,c,e pending restarts=1 quiet
    see a
    see b
    see c
    see e
    see f
    alice: release a
    alice: release c
    see a
    see c
    alice: requeuehold a
    alice: hold b
    see b
    root: release b
    see b
    root: hold c
    see c

a requeued job is not held
    alice: submit a -p t -n1
    until a running
    pause 1.2
    alice: requeue a
    until a pending restarts=1 quiet
    see a
    alice: hold a
    see a
    alice: requeue a
    root: requeue a
    root: suspend a
    root: resume a
    see a

a job may be moved to another partition
    alice: submit a -p t -n1 -w c3 --gres=llc:1
    until a running
    pause 1.2
    root: requeue a
    until a pending restarts=1 quiet
    root: update a Partition=u ReqNodeList= TresPerNode=
    see a
    alice: submit b -p t -n1 -w c3
    until b running
    pause 1.2
    root: requeue b
    until b pending restarts=1 quiet
    root: update b Partition=q ReqNodeList=
    see b
    root: update b Partition=nowhere
    see b

a job that may not restart is not requeued
    alice: submit a -p t -n1 --no-requeue
    until a running
    root: requeue a
    alice: requeue a
    see a
    alice: cancel a
    until a ended quiet
    alice: requeue a
    slurm: requeue 999999

an ended job may be requeued
    alice: submit a -p t -n1 run=1
    alice: submit b -p t -n1
    until a succeeded quiet
    alice: requeue a
    until a pending restarts=1 quiet
    see a
    until b running
    alice: cancel b
    until b ended quiet
    alice: requeue b
    until b pending restarts=1 quiet
    see b

# Nodes: partition w, node c1

a suspended job keeps its memory, and a dead node loses its jobs
    alice: submit a -p w -n20 --mem=1000 --gres=llc:2
    until a running
    see node c1
    root: suspend a
    see a
    see node c1
    root: suspend a
    alice: submit b -p w -n28 --mem=1000 -t 30
    until b running
    see node c1
    root: resume a
    see a
    see node c1
    root: resume a
    alice: cancel a,b
    until a,b ended quiet
    alice: submit c -p w -n2
    until c running
    root: node c1 drain
    see c
    see node c1
    alice: submit d -p w -n1
    alice: submit e -p w -n1 -w c1
    until e ReqNodeNotAvail
    see d but reason
    see e
    alice: submit f -p k -n1 --begin=now+3600
    slurm: place f c1
    until f ReqNodeNotAvail
    see f
    alice: cancel c
    until c ended quiet
    see node c1
    root: node c1 undrain
    until d,e,f running
    see node c1
    alice: submit g -p w -n1 --no-requeue
    until g running
    pause 1.2
    root: suspend e
    root: node c1 down
    root: node c1 drain
    until g ended quiet
    see g
    until d,f pending restarts=1 quiet
    until e JobHeldAdmin
    see d
    see e
    see f
    see g
    root: node c1 undrain
    until d,f running
    see d
    see f

# Waiting behind others

the main pass starts nothing behind a job that waits
    alice: submit a -p q -n3
    until a running
    alice: submit b -p q -n4
    until b planned
    alice: submit c -p q -n1
    start the watch
    alice: submit d -p q -n1 -t 1 run=1
    until d ended quiet
    alice: submit e -p y -n1 -t 1 run=1
    until e ended quiet
    alice: submit f -p y -n1 -t 1
    until f running
    see the watch over 15
    see b
    see c
    alice: cancel f
    until f ended quiet
    alice: cancel a
    until b running
    see c
    alice: submit g -p q -n4
    alice: submit h -p z -n4
    alice: cancel b
    until h running
    see g
    see c
    root: update g Nice=-1000000
    alice: cancel h
    until g running
    see c

# Arrays

any change of some tasks splits them off
    alice: submit a -p t -n1 -a 1-9 -H --nice=3
    see a
    alice: update a_[2-3] Nice=10
    see a
    see a_2,a_3
    alice: hold a_4
    alice: update a_5 Comment=five
    see a
    see a_4,a_5
    alice: release a_6
    until a_6 running
    see a
    see a_6
    alice: cancel a_7
    see a
    see a_7
    alice: update a_[1,8] Comment=both
    see a
    see a_1,a_8
    alice: cancel a_9
    see a but array_task
    alice: cancel a_1
    until a_1 ended
    see a_1

a record that is named as a whole is not split
    alice: submit a -p t -n1 -a 1-3 -H
    alice: update a_[1-3] Nice=10
    see a
    alice: update a_[1,2] Nice=11
    see a

an array's id means all its tasks
    alice: submit a -p t -n1 -a 1-4 -H
    alice: hold a_1
    alice: update a Nice=5
    see a
    see a_1
    root: hold a_1
    see a_1
    alice: release a
    until a_2,a_3,a_4 running
    see a_1
    alice: hold a
    see a_1
    see a_2
    alice: release a
    see a_1
    see a_2
    alice: cancel a_2
    until a_2 ended quiet
    alice: update a Nice=8
    see a_1
    see a_3
    bob: update a Nice=9
    bob: hold a_3
    alice: cancel a
    until a_1,a_2,a_3,a_4 ended quiet
    see a_1

an array's id means only its record to our own RPCs
    alice: submit a -n1 -a 1-4
    slurm: renew a 3600
    see a
    slurm: place a_1 c3
    until a_1 running
    slurm: renew a 7200
    see a
    see a_1
    slurm: free a
    until a_2,a_3,a_4 running
    see a_1
    see a_4

tasks are placed straight from their record and taken back one by one
    alice: submit a -n1 -a 1-3
    slurm: renew a 3600
    slurm: place a_1 c3 ways=1 begin=3600
    see a_1 but nodes_min
    see a
    slurm: regate a_1 3600
    see a_1
    slurm: place a_2 c3
    until a_2 running
    see a
    slurm: place a_3 c3 ways=1 begin=3600
    see a_3 but nodes_min
    slurm: regate a_3 3600
    see a_3
    see a_1
    alice: update a ReqNodeList=c3
    alice: update a_1 ReqNodeList=c3
    see a_1 but nodes_min

placed tasks of an array are requeued
    alice: submit a -n1 -a 1-3
    slurm: renew a 3600
    slurm: place a_3 c3 ways=1
    slurm: place a_1 c3 ways=1
    until a_1,a_3 running
    pause 1.2
    slurm: unboost a_3
    root: requeue a_1
    until a_1 pending restarts=1 quiet
    see a_1 but nodes_min
    slurm: regate a_1 3600
    root: requeue a_3
    until a_3 pending restarts=1 quiet
    see a_3 but nodes_min
    slurm: regate a_3 3600
    until a_1,a_3 BeginTime
    see a_1
    see a_2
    see a_3

an array's limit holds for placed tasks
    alice: submit a -n1 -a 1-3%1
    slurm: renew a 3600
    slurm: place a_1 c3
    slurm: place a_2 c3
    until a_1 running
    until a_2 JobArrayTaskLimit
    see a_2 but nodes_min

an array's limit is Slurm's
    alice: submit a -p t -n1 -a 1-4%2 --gres=llc:1
    until a_1,a_2 running
    until a JobArrayTaskLimit
    see a
    alice: update a ArrayTaskThrottle=3
    until a_3 running
    see a_4
    alice: submit b -p t -n1 -a 1-6 -H
    alice: update b_1 ArrayTaskThrottle=1
    see b_1
    see b
    alice: update b ArrayTaskThrottle=2
    see b_1
    see b
    alice: update b ArrayTaskThrottle=0
    see b_1
    alice: submit c -p t -n1 -H
    alice: update c ArrayTaskThrottle=1
    see c

a task of an array is requeued
    alice: submit a -p t -n1 -a 1-3 -H
    alice: release a_1
    until a_1 running
    pause 1.2
    alice: requeue a_1
    until a_1 pending restarts=1 quiet
    see a_1
    see a
    alice: requeue a
    alice: release a_2
    until a_2 running
    root: suspend a
    see a_2
    root: resume a
    see a_2

# Partitions and limits

a partition that is down starts nothing
    alice: submit a -p d -n1 -H
    root: partition d State=DOWN
    alice: release a
    until a PartitionDown
    see a
    alice: submit b -p d -n1
    until b PartitionDown
    root: partition d State=INACTIVE
    until a PartitionInactive
    see a
    alice: submit c -p d -n1
    root: partition d State=DRAIN
    until a,b running
    alice: submit c -p d -n1
    root: partition d State=UP MaxTime=10
    alice: submit e -p d -n1 -t 20
    alice: submit f -p d -n1 -t 9
    until f running
    until e PartitionTimeLimit
    see e
    root: partition d MaxTime=UNLIMITED
    until e running

# Alone: a job that waits on c4 in another partition would leave these jobs to the backfill, one in each pass

alone: a job that waits for its own nodes holds up nobody elsewhere
    alice: submit a -p x -n2 -w s2
    until a running
    alice: submit f -p x -n4 --ntasks-per-node=3 -N2 -w c4,s2
    until f Resources
    see f
    alice: cancel f
    alice: submit b -p x -N1 -n4 -w s2
    until b Resources
    start the watch
    alice: submit c -p x -n1
    until c running
    alice: submit d -p x -n1
    until d running
    alice: submit e -p x -n1
    until e running
    alice: submit g -p x -n1
    until g running
    alice: submit h -p x -n1
    until h running
    alice: submit i -p x -n1
    until i running
    see the watch under 45
    see b

# Alone: while a partition limits its nodes, the submit filter leaves no job's number of nodes open

alone: a partition's MaxNodes
    alice: submit a -p u -N2 -H
    alice: submit b -p u -n2
    root: partition u MaxNodes=1
    alice: release a
    until a PartitionNodeLimit
    see a
    until b running
    root: partition u MaxNodes=UNLIMITED
    until a running
    see a

an account's limit
    bob: submit a -p t -n2
    until a running
    root: limit chemistry 2
    bob: submit b -p t -n1
    until b AssocGrpCpuLimit
    see b
    bob: submit c -n1
    slurm: place c c3 ways=1
    until c AssocGrpCpuLimit
    see c
    root: limit chemistry none
    until b,c running
    root: user-limit bob 3
    bob: submit d -p t -n1
    bob: submit e -n1
    slurm: place e c3
    until d,e AssocMaxJobsLimit
    see d
    see e
    alice: submit f -p t -n1
    until f running
    bob: cancel a
    root: user-limit bob none
    until d,e running

a QOS' limit
    root: qos-limit small 2
    alice: submit a -p t -n2 --qos=small
    until a running
    alice: submit b -p t -n1 --qos=small
    until b QOSGrpCpuLimit
    see b
    bob: submit c -n1 --qos=small
    slurm: place c c3 ways=1
    until c QOSGrpCpuLimit
    see c
    bob: submit d -n1
    slurm: place d c3
    until d running
    alice: update b QOS=normal
    until b running
    see b
    alice: update b QOS=small
    see b
    alice: update c QOS=normal
    root: qos-limit small none
    until c running
    see c

a reservation
    root: reserve now c2 0 3600
    alice: submit a -p r -n1
    until node c2 reserved
    see a but reason
    root: unreserve now
    until a running
    root: reserve later c2 600 3600
    see node c2
    alice: submit b -p r -n1
    alice: submit c -p r -n1 -t 5
    until c running
    see b but reason
    root: unreserve later
    until b running
    alice: cancel a,b,c
    until a,b,c ended quiet
    alice: submit d -p r -n2 --exclusive --gres=llc:3
    until d running
    see d
    see node c2

# Updates

an owner changes a job that is held
    alice: submit a -p t -n2 -H
    alice: update a NumTasks=3
    see a
    alice: submit b -n4
    alice: update b NumTasks=3
    see b
    alice: submit c -N2 -n4
    alice: update c NumTasks=5
    see c
    alice: submit d -n4 --ntasks-per-node=2
    alice: update d NumTasks=6
    see d
    alice: update a MinMemoryCPU=200
    see a
    alice: update a MinMemoryNode=700
    see a
    alice: update a TresPerNode=gres/llc:2,gres/membw:3
    see a
    alice: update a TresPerNode=
    see a
    alice: update a Extra=hello Comment=there
    see a
    alice: update a TimeLimit=30
    see a
    alice: update a TimeLimit=90
    see a
    root: update a TimeLimit=90
    see a
    alice: update a ReqNodeList=c4
    alice: update a ExcNodeList=c3
    see a
    alice: update a Partition=u
    see a
    alice: update a Partition=q
    see a
    alice: update a Partition=nowhere
    alice: update a ReqNodeList=s1
    alice: update a ReqNodeList=nowhere
    alice: update a Extra=both Nice=-4
    see a
    alice: update a TresPerNode=gres/llc:1 Nice=-4 MinMemoryCPU=100
    see a
    alice: update a Nice=4 Partition=nowhere
    see a
    root: update a JobName=other Extra=
    see a
    alice: update 999999 Nice=4

a job with fewer tasks than nodes
    alice: submit a -p t -N2 -n3 -H
    alice: update a NumTasks=1
    see a but cpus,asks_for,is_countable
    alice: update a NumTasks=2
    see a
    alice: submit b -p t -n4 --ntasks-per-node=2 -H
    alice: update b NumTasks=1
    see b but cpus,asks_for,is_countable
    alice: submit c -n4
    slurm: place c c3,c4 begin=3600
    alice: update c NumTasks=1
    see c but nodes_min

an owner changes a job that was placed
    alice: submit a -n2
    slurm: place a c3 per_node=2 tasks=2 ways=2 begin=3600
    alice: update a NumTasks=3
    see a but nodes_min
    alice: update a MinMemoryCPU=200
    see a but nodes_min
    alice: update a Extra=mine
    see a but nodes_min
    alice: update a TimeLimit=30
    see a but nodes_min
    alice: update a Partition=small
    see a but nodes_min
    alice: update a Partition=t
    see a but nodes_min
    alice: update a ReqNodeList=
    see a but nodes_min

a running job takes few changes
    alice: submit a -p t -n2
    until a running
    alice: update a NumTasks=3
    alice: update a TresPerNode=gres/llc:2
    alice: update a ReqNodeList=c3
    alice: update a ReqNodeList=
    alice: update a ExcNodeList=c3
    alice: update a Partition=u
    see a
    alice: update a Extra=mine Comment=there
    alice: update a TimeLimit=30
    alice: update a TimeLimit=90
    root: update a TimeLimit=70
    alice: update a StartTime=now
    root: update a AdminComment=there StartTime=now
    see a
    alice: cancel a
    until a ended quiet
    alice: update a Extra=late
    alice: update a Comment=late
    alice: update a TimeLimit=5
    alice: update a NumTasks=1
    see a

# slurmctld forgets the table's own partitions when it starts again

last: a slurmctld that is killed goes on from what it saved
    alice: submit a -p plain -n1 -H
    alice: submit b -p plain -n1 -H
    alice: submit c -p plain -n1
    alice: submit d -p plain -n1
    alice: submit f -n2
    slurm: renew f 3600
    until c,d running
    root: save
    alice: release a
    alice: update b Extra=mine Nice=77
    slurm: place f c3 per_node=2 tasks=2 begin=1800
    alice: cancel d
    alice: submit e -p plain -n1
    until a,e running
    until d ended quiet
    root: kill
    see a
    see b
    see c
    see d
    see f but has_open_nodes
    alice: submit g -p plain -n1 -H --nice=5
    see e
    slurm: place f c3 per_node=2 tasks=2 begin=1800
    see f but nodes_min,has_open_nodes

last: a job that preemption suspends keeps its priority
    root: preempt
    alice: submit a -p low -n28 --nice=3
    until a running
    pause 1.2
    alice: submit b -p high -n2
    until b running
    until a suspended
    see a
    see b
    slurm: requeue a
    until a pending restarts=1 quiet
    see a
    alice: cancel b
    until a running
    see a
    pause 1.2
    alice: submit c -p high -n28
    until c running
    until a suspended
    see a
    alice: cancel c
    until a running
    see a
    alice: submit d -p high -n28
    until d running
    until a suspended
    root: suspend a
    see a
    alice: cancel d
    until d ended quiet
    pause 3
    see a
    root: resume a
    see a

last: what may become of a job while preemption has it suspended
    root: preempt
    alice: submit a -p low -n28 --mem-per-cpu=10
    until a running
    pause 1.2
    bob: submit b -p high -n2 --mem-per-cpu=10
    until b running
    until a suspended
    see a
    see node c1
    alice: submit c -p low -n1 --mem-per-cpu=10
    pause 3
    see c
    alice: cancel c
    alice: update a Requeue=0
    see a
    slurm: requeue a
    see a
    alice: update a Requeue=1
    alice: hold a
    see a
    slurm: requeue a
    alice: release a
    see a
    root: suspend a
    slurm: requeue a
    root: release a
    see a
    slurm: requeue a
    slurm: requeue a
    until a pending restarts=1 quiet
    see a
    slurm: requeue a
    bob: cancel b
    until a running
    see a
    see node c1
    slurm: requeue a
    pause 1.2
    bob: submit d -p high -n28 --mem-per-cpu=10
    until a suspended
    alice: hold a
    alice: requeue a
    until a pending restarts=2 quiet
    see a
    alice: release a
    bob: cancel d
    until a running
    pause 1.2
    bob: submit e -p high -n28 --mem-per-cpu=10
    until a suspended
    root: suspend a
    alice: requeue a
    until a pending restarts=3 quiet JobHeldAdmin
    see a
    root: release a
    bob: cancel e
    until a running
    pause 1.2
    bob: submit f -p high -n28 --mem-per-cpu=10
    until a suspended
    alice: cancel a
    until a ended quiet
    see a
    see node c1
"""


def _cases(text: str) -> dict[str, tuple[str, ...]]:
    """The cases by name: a name is a line of its own, and its steps are indented."""
    cases: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("    "):
            cases[name].append(line.strip())
        elif line and not line.startswith("#"):
            name = line
            assert name not in cases, name
            cases[name] = []
    return {name: tuple(lines) for name, lines in cases.items()}


CASES = _cases(_TABLE)
#: The names of the cases that disturb others.
ALONE = tuple(name for name in CASES if name.startswith("alone: "))
#: Those after which the partitions of the table are gone.
LAST = tuple(name for name in CASES if name.startswith("last: "))
