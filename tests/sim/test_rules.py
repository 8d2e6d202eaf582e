"""Each rule of the simulator: the smallest kernel that breaks it, and its repaired twin that stays silent."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import custom_ops
from custom_ops import KernelError

RULES = Path(__file__).parent / "rules"
MEMBASE = ("ascend910b", "ascend910_93")
REGBASE = ("ascend950",)


@dataclass(frozen=True)
class Case:
    file: str
    entry: str
    rule: str
    says: tuple = ()            # pieces of the message
    socs: tuple = ("ascend910b", "ascend950")
    x: int = 64                 # floats of x
    y: int = 64                 # floats of y
    blocks: int = 1
    written: bool = False       # y holds values before the launch
    timeout: float = 60.0

    def __str__(self):
        return self.entry


CASES = [
    Case("operands", "unaligned_vector_operand", "alignment", ("Adds", "32"), x=128, y=128),
    Case("operands", "copy_length_not_32_bytes", "alignment", ("DataCopy", "28"), y=8),
    Case("operands", "operand_past_its_buffer", "out-of-range", ("Adds",)),
    Case("operands", "repeats_past_the_buffer", "out-of-range", ("Adds",), x=128, y=128),
    Case("operands", "local_memory_overflow", "local-memory-overflow", ("524288",)),
    Case("operands", "read_of_unwritten_bytes", "uninitialized-read", ("Adds",), x=128, y=128),
    Case("operands", "read_of_dummy_bytes", "uninitialized-read", ("Adds",), y=8),
    Case("operands", "repeat_over_255", "repeat-limit", ("256", "255"), x=2048, y=2048),
    Case("operands", "block_count_over_4095", "repeat-limit", ("4096", "4095"), x=32768, y=32768),
    Case("operands", "repeat_stride_over_255", "stride-limit", ("256", "255"), x=4096, y=4096),
    Case("operands", "mask_longer_than_a_repeat", "mask-limit", ("128", "64"), x=128, y=128),
    Case("operands", "bit_mask_high_word_of_float", "mask-limit"),
    Case("operands", "scalar_write_past_its_buffer", "out-of-range", ("SetValue", "past the end of small UB [0x0000, 0x0100)")),
    Case("operands", "tensor_without_memory", "out-of-range", ("Adds", "src is a tensor without memory")),
    Case("operands", "partial_overlap", "overlap", ("Adds",), x=128, y=128),
    Case("operands", "compare_over_its_source", "overlap", ("CompareScalar", "dst", "src0"), x=128),
    Case("operands", "select_over_its_mask", "overlap", ("Select", "selMask"), x=192),
    Case("operands", "gather_over_its_source", "overlap", ("Gather", "src"), x=128),
    Case("operands", "gather_over_its_offsets", "overlap", ("Gather", "srcOffset")),
    Case("operands", "gather_by_offsets_past_the_memory", "out-of-range", ("Gather", "srcOffset")),
    Case("operands", "gather_by_unwritten_offsets", "uninitialized-read", ("Gather", "srcOffset")),
    Case("dtypes", "bfloat16_add_on_membase", "dtype", ("Add", "bfloat16"), MEMBASE, x=32, y=32),
    Case("dtypes", "cast_to_bfloat16_without_rounding", "dtype", ("CAST_NONE",), y=32),
    Case("gm", "copy_in_past_the_tensor", "gm-out-of-bounds", ("x",)),
    Case("gm", "copy_out_past_the_tensor", "gm-out-of-bounds", ("y",)),
    Case("gm", "write_into_an_input", "gm-out-of-bounds", ("into x, an input",)),
    Case("gm", "tail_written_over_the_neighbour", "core-conflict", y=16, blocks=3),
    Case("gm", "read_of_another_cores_result", "core-conflict", blocks=3, written=True),
    Case("gm", "return_before_sync_all", "deadlock", ("SyncAll",), blocks=3),
    Case("gm", "value_left_in_the_data_cache", "hazard", ("DataCacheCleanAndInvalid",), written=True),
    Case("gm", "cores_add_to_the_same_bytes", "core-conflict", blocks=8, written=True),
    Case("queues", "tensor_freed_twice", "queue-state", ("FreeTensor",)),
    Case("queues", "enque_without_alloc", "queue-state", ("EnQue",)),
    Case("queues", "deque_of_an_empty_queue", "queue-state", ("DeQue",)),
    Case("queues", "alloc_with_no_free_buffer", "queue-state", ("AllocTensor",)),
    Case("queues", "enque_beyond_the_depth", "queue-state", ("EnQue", "depth")),
    Case("queues", "tensor_of_another_queue", "queue-state", ("EnQue",)),
    Case("queues", "tensor_never_freed", "queue-leak"),
    Case("events", "wait_without_set", "event-flag", ("MTE2_V",)),
    Case("events", "set_twice", "event-flag", ("MTE2_V",)),
    Case("events", "flag_left_set", "event-flag", ("MTE2_V",)),
    Case("events", "event_ids_exhausted", "event-flag", ("V_S",)),
    Case("events", "cube_barrier_on_a_vector_core", "pipe-legality", ("PIPE_M",)),
    Case("hazards", "v_before_mte2_is_done", "hazard", ("MTE2", "V")),
    Case("hazards", "v_before_v_is_done", "hazard", ("PipeBarrier<PIPE_V>",), MEMBASE),
    Case("hazards", "v_before_v_in_a_loop", "hazard", ("2 times in this launch",), MEMBASE),
    Case("hazards", "v_overwrites_what_v_reads", "hazard", ("PipeBarrier<PIPE_V>",), MEMBASE),
    Case("hazards", "mte3_before_v_is_done", "hazard", ("V", "MTE3")),
    Case("hazards", "mte2_overwrites_what_v_reads", "hazard", ("V", "MTE2"), x=128),
    Case("hazards", "mte2_overwrites_what_mte3_reads", "hazard", ("MTE3", "MTE2"), x=128),
    Case("hazards", "mte2_over_mte2", "hazard", ("PipeBarrier<PIPE_MTE2>",), x=128),
    Case("hazards", "mte3_over_mte3", "hazard", ("PipeBarrier<PIPE_MTE3>",)),
    Case("hazards", "scalar_reads_before_v_is_done", "hazard", ("V_S",)),
    Case("hazards", "v_before_the_scalar_write_is_done", "hazard", ("S_V",)),
    Case("hazards", "buffer_freed_before_its_last_use", "hazard", ("V", "MTE2"), x=128),
    Case("faults", "null_pointer", "memory-fault"),
    Case("faults", "division_by_zero", "memory-fault"),
    Case("faults", "calls_exit", "kernel-crash", ("exit(3)",)),
    Case("faults", "calls_abort", "kernel-crash", ("abort()",)),
    Case("faults", "throws_an_exception", "kernel-crash", ("threw",)),
    Case("faults", "throws_through_noexcept", "kernel-crash", ("noexcept",)),
    Case("faults", "recursion_without_end", "kernel-crash", ("stack overflow",)),
    Case("faults", "array_larger_than_the_stack", "kernel-crash", ("stack overflow",)),
    Case("faults", "never_ends", "timeout", timeout=1.0),
    Case("regbase", "load_after_store_without_local_mem_bar", "hazard", ("LocalMemBar",), REGBASE),
    Case("regbase", "store_after_store_without_local_mem_bar", "hazard", ("LocalMemBar",), REGBASE),
    Case("regbase", "vector_function_that_runs_for_hours", "timeout", (), REGBASE, timeout=1.0),
    Case("regbase", "unaligned_register_load", "alignment", ("32",), REGBASE, x=128),
    Case("regbase", "register_load_past_the_unified_buffer", "out-of-range", (), REGBASE),
    Case("regbase", "mte3_before_the_vector_function_is_done", "hazard", ("V", "MTE3"), REGBASE),
    Case("regbase", "mte3_before_a_returning_vector_function_is_done", "hazard", ("V", "MTE3"), REGBASE),
    Case("cube", "mte1_before_mte2_is_done", "hazard", ("MTE2_MTE1",), x=512, y=256),
    Case("cube", "m_before_mte1_is_done", "hazard", ("MTE1_M",), x=512, y=256),
    Case("cube", "fixpipe_before_m_is_done", "hazard", ("M_FIX",), x=512, y=256),
    Case("cube", "mte1_before_fixpipe_to_l1_is_done", "hazard", ("FIX_MTE1",), x=512, y=256),
    Case("cube", "fixpipe_without_its_unit_flag", "hazard", ("M_FIX",), x=512, y=256),
    Case("cube", "short_mmad_before_the_last_is_done", "hazard", ("PipeBarrier<PIPE_M>",), x=512, y=256),
    Case("cube", "load_to_an_unaligned_fractal", "alignment", ("LoadData", "512"), x=512, y=256),
    Case("cube", "load_past_the_l1_buffer", "out-of-range", ("LoadData", "L1"), x=512, y=256),
    Case("cube", "mmad_of_a_matrix_that_was_not_loaded", "uninitialized-read", ("L0A",), x=512, y=256),
    Case("cube", "mmad_accumulates_on_nothing", "uninitialized-read", ("L0C",), x=512, y=256),
    Case("cube", "vector_instruction_on_a_cube_core", "pipe-legality", ("a cube core has no V pipe", "AIC 0")),
    Case("cube", "vector_event_on_a_cube_core", "pipe-legality", ("MTE2_V",)),
    Case("cube", "vector_core_reads_what_the_cube_core_writes", "core-conflict", ("AIC 0 and AIV 0", "CrossCoreSetFlag"), x=512, y=256,
         written=True),
    Case("cube", "one_vector_core_sets_no_flag", "deadlock",
         ("AIC 0 waits in CrossCoreWaitFlag(8) for AIV 1", "AIV 1 waits in CrossCoreWaitFlag(9) for AIC 0")),
    Case("cube", "cross_core_flag_left_set", "event-flag", ("cross-core flag 3 of AIV 0",)),
    Case("cube", "cube_core_misses_sync_all", "deadlock", ("2 of 3 cores wait in SyncAll<false> (AIV 0, AIV 1) for AIC 0",)),
    Case("cube", "cube_core_runs_ahead_of_its_counter", "event-flag", ("flag 3 may be set 16 times more",)),
    Case("cube", "sync_all_without_the_scheduler", "deadlock", ("KERNEL_TYPE_AIV_ONLY",), blocks=2),
    Case("cube", "two_types_of_kernel", "argument", ("declares two types",)),
    Case("cube", "type_declared_after_a_copy", "argument", ("already copied to or from GM",)),
    Case("matmul", "iterate_all_without_tensor_a", "argument", ("IterateAll without SetTensorA",), x=512, y=256),
    Case("matmul", "object_not_registered", "argument", ("IterateAll of an object that is not registered",), x=512, y=256),
    Case("matmul", "tiling_that_does_not_fit_l0a", "local-memory-overflow", ("TCubeTiling does not fit L0A", "131072"), x=512, y=256),
    Case("matmul", "product_beyond_its_tensor", "out-of-range", ("A is read as 16 x 16", "255"), x=512, y=256),
    Case("matmul", "result_beyond_its_tensor", "out-of-range", ("C is written as 16 x 16", "255"), x=512, y=256),
    Case("matmul", "matrices_without_rows", "argument", ("the matrices have m = 0",), x=512, y=256),
    Case("matmul", "rows_of_c_that_overlap", "argument", ("rows of 16 elements 8 apart",), x=512, y=256),
    Case("matmul", "single_shape_larger_than_the_matrix", "argument", ("m of this product is 17",), x=512, y=256),
    Case("matmul", "transposed_against_its_type", "argument", ("isTrans",), x=512, y=256),
    Case("matmul", "result_fetched_before_iterate", "argument", ("GetTensorC without Iterate",), x=512, y=256),
    Case("matmul", "cube_object_on_a_vector_core", "pipe-legality", ("works on a cube core", "AIV 0"), x=512, y=256),
    Case("matmul", "object_in_a_kernel_of_vector_cores", "pipe-legality", ("KERNEL_TYPE_MIX_AIC_1_2",), x=512, y=256),
    Case("matmul", "objects_registered_one_by_one", "argument", ("a second REGIST_MATMUL_OBJ",), x=512, y=256),
    Case("matmul", "registered_without_a_pipe", "argument", ("without a TPipe",), x=512, y=256),
    Case("matmul", "atomic_mode_that_does_not_exist", "argument", ("enAtomic is 4",), x=512, y=256),
    Case("matmul", "cores_that_register_different_objects", "argument", ("vector core 0", "REGIST_MATMUL_OBJ does not have"), x=512, y=256),
    Case("matmul", "cube_core_waits_for_a_flag_before_it_serves", "deadlock",
         ("AIC 0 waits in CrossCoreWaitFlag(5) for AIV 0; AIV 0 waits in IterateAll for AIC 0", "serves Matmul objects"), x=512, y=256),
    Case("matmul", "sync_all_with_the_core_that_serves", "deadlock",
         ("AIC 0 waits in REGIST_MATMUL_OBJ for AIV 0; AIV 0 waits in SyncAll<false> for AIC 0", "serves Matmul objects"), x=512, y=256),
    Case("matmul", "cube_core_that_does_not_serve", "deadlock", ("the cube core has ended",), x=512, y=256),
    Case("matmul", "result_used_before_wait_iterate_all", "core-conflict", ("AIC 0 and AIV 0",), x=512, y=256, written=True),
]

#: Kernels whose repaired form computes y = 2 * (x + 1), and whose broken form must not in adversarial mode.
WRONG_WHEN_HELD_BACK = [
    "v_before_mte2_is_done", "v_before_v_is_done", "v_overwrites_what_v_reads", "mte3_before_v_is_done",
    "mte2_over_mte2", "mte3_over_mte3", "load_after_store_without_local_mem_bar", "store_after_store_without_local_mem_bar",
]  # fmt: skip


def run(case, soc, repaired, **options):
    """Launches the case's kernel; returns (x, y, report)."""
    x = np.arange(1, case.x + 1, dtype=np.float32)
    y = np.zeros(case.y, np.float32)
    report = custom_ops.sim.launch(
        RULES / f"{case.file}.cpp", case.entry, case.blocks, [x, y, np.bool_(repaired)], soc=soc,
        inputs=[0], outputs=[] if case.written else [1], timeout=case.timeout, **options,
    )  # fmt: skip
    return x, y, report


def params(cases):
    return [pytest.param(c, soc, id=f"{c.entry}-{soc}") for c in cases for soc in c.socs]


@pytest.mark.parametrize(("case", "soc"), params(CASES))
def test_broken_kernel_is_reported(case, soc):
    with pytest.raises(KernelError) as caught:
        run(case, soc, repaired=False)
    error = caught.value
    assert error.rule == case.rule, str(error)
    assert error.soc and error.line > 0, str(error)
    assert Path(error.file).name in (f"{case.file}.cpp", "rule_kernel.h"), str(error)
    for piece in case.says:
        assert piece in str(error), f"{piece!r} is not in:\n{error}"


@pytest.mark.parametrize(("case", "soc"), params(CASES))
def test_repaired_twin_is_silent(case, soc):
    _, _, report = run(case, soc, repaired=True)
    assert report.findings == []


@pytest.mark.parametrize("entry", WRONG_WHEN_HELD_BACK)
def test_missing_order_gives_wrong_numbers_in_adversarial_mode(entry):
    case = next(c for c in CASES if c.entry == entry)
    wrong = 0
    for seed in range(1, 9):
        x, y, _ = run(case, case.socs[0], repaired=False, adversarial_seed=seed, raise_on_finding=False)
        wrong += not np.array_equal(y, 2 * (x[:64] + 1))
        x, y, _ = run(case, case.socs[0], repaired=True, adversarial_seed=seed)
        np.testing.assert_array_equal(y, 2 * (x[:64] + 1))
    assert wrong > 0, "no seed of eight made the missing order visible"


def test_atomic_copies_of_many_cores_add_up():
    case = next(c for c in CASES if c.entry == "cores_add_to_the_same_bytes")
    x, y, _ = run(case, "ascend910b", repaired=True)
    np.testing.assert_array_equal(y, case.blocks * x)


def test_every_rule_has_a_kernel():
    untested = set(custom_ops.sim.rules()) - {c.rule for c in CASES}
    assert untested <= {"argument", "tiling-key"}, untested


def test_a_finding_counts_instructions_and_cores():
    case = next(c for c in CASES if c.entry == "v_before_v_in_a_loop")
    _, _, report = run(replace(case, blocks=4), "ascend910b", repaired=False, raise_on_finding=False)
    assert {(f["times"], f["cores"]) for f in report.findings} == {(8, 4)}
    assert "8 times in this launch, on 4 cores" in report.findings[0]["text"]


def test_an_ignored_rule_is_not_raised():
    case = next(c for c in CASES if c.entry == "v_before_v_is_done")
    _, _, report = run(case, "ascend910b", repaired=False, ignore=["hazard"])
    assert report.findings == []


def test_the_process_survives_and_the_next_launch_is_right():
    fault = next(c for c in CASES if c.entry == "null_pointer")
    good = next(c for c in CASES if c.entry == "v_before_mte2_is_done")
    for _ in range(3):
        with pytest.raises(KernelError):
            run(fault, "ascend910b", repaired=False)
        x, y, report = run(good, "ascend910b", repaired=True)
        assert report.findings == []
        np.testing.assert_array_equal(y, 2 * (x + 1))
