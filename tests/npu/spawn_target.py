"""What test_op_processes.py runs in a spawned process: importable by its name there."""

import torch

import custom_ops


def put_result(queue) -> None:
    queue.put(custom_ops.hc_pre_inv_rms(torch.ones(2, 4, 16).npu()).tolist())
