"""A plain reading of the paper's figure 11 and section 4.4: no arrays, no shortcuts, exact fractions.

The prototype's list order breaks ties, as the specification says. For jobs that demand ways and bandwidth.
"""

from fractions import Fraction


def figure_11(nodes, queue, beta=2):
    """Job -> (position of its alternative, names of its nodes); the jobs that are delayed are missing."""
    capacity = {node.name: node.capacity for node in nodes}
    left = {node.name: node.free for node in nodes}
    launched = {}
    for job in queue:  # sorted by priority
        for position, alternative in enumerate(job.alternatives):  # the fastest among the remaining scale factors
            chosen = enough_nodes(capacity, left, alternative, beta)
            if chosen is None:
                continue  # other scales?
            for name in chosen:
                left[name] = left[name].minus(capacity[name] if alternative.exclusive else alternative.demand)
            launched[job.id] = (position, tuple(chosen))
            break
    return launched


def enough_nodes(capacity, left, alternative, beta):
    fitting = [
        name
        for name in capacity
        if alternative.demand.within(left[name]) and (not alternative.exclusive or left[name] == capacity[name])
    ]
    if len(fitting) < alternative.nodes:
        return None
    groups = {}
    for name in fitting:
        groups.setdefault(left[name].cores, []).append(name)
    for _, group in sorted(groups.items(), reverse=True):
        if len(group) >= alternative.nodes:
            fitting = group
            break
    idlest = sorted(fitting, key=lambda name: occupied(capacity[name], left[name], beta))[: alternative.nodes]
    return [name for name in capacity if name in idlest]


def occupied(capacity, left, beta):
    def share(resource):
        return Fraction(getattr(capacity, resource) - getattr(left, resource), getattr(capacity, resource))

    return share("cores") + share("bandwidth_gbps") + beta * share("ways")
