"""Max-Jobs, figure 11 on other machines: the paper prints their cores in total (512), neither their size nor memory."""
