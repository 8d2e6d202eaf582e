"""The libraries around the runtime: every symbol is there, what is not modelled fails by its name, the C string functions keep bounds."""

import ctypes

import pytest
import torch


@pytest.fixture(scope="module")
def library():
    from custom_ops import _paths

    return lambda name: ctypes.CDLL(str(_paths.library("custom_ops_sim").parent / "cann" / f"lib{name}.so"))


def recent_error(library):
    function = library("ascendcl").aclGetRecentErrMsg
    function.restype = ctypes.c_char_p
    return function().decode()


def test_every_symbol_resolves(simulated, run_script):
    """Symbols are looked up when the libraries are loaded, not when they are called."""
    output = run_script("""
        import torch, torch_npu, torchair
        torchair.get_npu_backend
        from torchair.core import _torchair, _npu_graph_executor, _npu_utils
        print("all there")
    """, LD_BIND_NOW="1")
    assert "all there" in output


@pytest.mark.parametrize("name, function, status", [
    ("hccl", "HcclAllReduce", 5), ("hccl", "HcclGetRootInfo", 5), ("acl_op_compiler", "aclopCompileAndExecuteV2", 207000),
    ("acl_tdt_channel", "acltdtReceiveTensor", 207000), ("ge_runner", "rtKernelLaunch", 207000)])
def test_absent_functions_fail_by_name(simulated, library, name, function, status):
    assert getattr(library(name), function)() == status
    assert recent_error(library).startswith(f"{function} is not modelled by the simulator: ")


def test_an_operator_of_the_old_kind_fails_by_name(simulated):
    """torch_npu runs some operators by name through the operator compiler. The failure comes out once and harms nothing else."""
    x = torch.randn(4, 4).npu()
    with pytest.raises(RuntimeError, match="operator Svd by aclopCompileAndExecute is not modelled by the simulator"):
        torch.linalg.svd(x)[1].cpu()
    assert torch.equal((x + 1).cpu(), x.cpu() + 1)


def test_collectives_fail_by_name(simulated, run_script):
    output = run_script("""
        import torch, torch_npu, torch.distributed as dist
        dist.init_process_group("hccl", rank=0, world_size=1, store=dist.HashStore())
        try:
            dist.all_reduce(torch.ones(4, device="npu:0"))
            torch.npu.synchronize()
        except RuntimeError as error:
            print(error)
        import os; os._exit(0)
    """)
    assert "is not modelled by the simulator: there is no communication between simulated devices" in output


def test_compile_options_are_kept(simulated, library):
    compiler = library("acl_op_compiler")
    compiler.aclGetCompileoptSize.restype = ctypes.c_size_t
    option, text = 9, b"fast"  # ACL_OP_PERFORMANCE_MODE, which nobody uses
    assert compiler.aclSetCompileopt(option, text) == 0
    size = compiler.aclGetCompileoptSize(option)
    buffer = ctypes.create_string_buffer(size)
    assert compiler.aclGetCompileopt(option, buffer, ctypes.c_size_t(size)) == 0 and buffer.value == text
    assert compiler.aclGetCompileopt(option, buffer, ctypes.c_size_t(size - 1)) == 100000
    assert compiler.aclSetCompileopt(99, text) == 100000 and "no option 99" in recent_error(library)


def strings(library, function, *arguments, size=8, before=b"xxxxxxx"):
    """(status, destination afterwards) of a bounds-checked function on a buffer of `size` bytes."""
    buffer = ctypes.create_string_buffer(before, size)
    sizes = [ctypes.c_size_t(a) if isinstance(a, int) else a for a in arguments]
    status = getattr(library("graph"), function)(buffer, ctypes.c_size_t(size), *sizes)
    return status, buffer.value


@pytest.mark.parametrize("function, arguments, expected", [
    ("strcpy_s", (b"1234567",), (0, b"1234567")),
    ("strcpy_s", (b"12345678",), (34, b"")),                 # ERANGE: one too long for the end
    ("strncpy_s", (b"123456789", 3), (0, b"123")),
    ("snprintf_s", (7, b"%s", b"1234567"), (7, b"1234567")),
    ("snprintf_s", (3, b"%s", b"1234567"), (-1, b"123")),    # cut at `count`
    ("snprintf_s", (9, b"%s", b"12345678"), (-1, b"")),      # the buffer is too small
    ("sprintf_s", (b"%s-%s", b"ab", b"cd"), (5, b"ab-cd")),
    ("sprintf_s", (b"%s", b"12345678"), (-1, b"")),
])
def test_string_functions(simulated, library, function, arguments, expected):
    assert strings(library, function, *arguments) == expected


def test_string_functions_append(simulated, library):
    assert strings(library, "strcat_s", b"cd", before=b"ab") == (0, b"abcd")
    assert strings(library, "strcat_s", b"123456", before=b"ab") == (34, b"")


def test_memory_functions(simulated, library):
    assert strings(library, "memcpy_s", b"1234", 4) == (0, b"1234xxx")
    assert strings(library, "memcpy_s", b"123456789", 9) == (34, b"")
    assert torch.npu.is_available()
