"""The scale factors at which a job may be spread: k times the fewest nodes that can hold it."""

from slurm_sns.errors import BadInput
from slurm_sns.policies.specification import Setting

WIDEST_SCALE = 64

SCALES = Setting("The scale factors that may be used.", "spread_n_share", least=1, most=WIDEST_SCALE, option=True)
EVEN_SCALES_ONLY = Setting("Only scales whose nodes divide the job's processes evenly.", "spread_n_share")


def require_scales(scales: tuple[int, ...]) -> None:
    """Accept scale factors that can be used.

    Raises:
        BadInput: 1 is not among them, one comes twice, or one is below 1 or above WIDEST_SCALE.
    """
    if 1 not in scales or len(set(scales)) < len(scales) or not all(1 <= scale <= WIDEST_SCALE for scale in scales):
        shown = ",".join(map(str, scales))
        raise BadInput(f"scales are {shown}; valid: 1 and others up to {WIDEST_SCALE}, each once, as in 1,2,4,8")
