"""libascendcl.so as a C program sees it, for what torch_npu does not reach: each call raises AclError with code and text."""

import ctypes
import re
from ctypes import byref, c_char_p, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

H2H, H2D, D2H, D2D, DEFAULT = range(5)
TIME_LINE, EXTERNAL = 0x8, 0x20
GLOBAL, THREAD_LOCAL, RELAXED = range(3)

INVALID_PARAMETER, INVALID_DEVICE, CONTEXT_NULL, TIMESTAMP_INVALID, INVALID_HANDLE = 107000, 107001, 107002, 107006, 107017
CAPTURE_DEPENDENCY, UNJOINED, STREAM_CAPTURED, EVENT_CAPTURED, NOT_CAPTURED = 107024, 107025, 107027, 107028, 107029
MODE_REFUSES, TASK_GROUP, UNMATCHED, WRONG_THREAD, UPDATE_FAILED, BLOCKING_COPY = 107030, 107033, 107036, 107038, 107040, 107041
NOT_SUPPORTED, OUT_OF_MEMORY, SYNC_TIMEOUT, EVENT_TIMEOUT, INVALIDATED = 207000, 207001, 507046, 507047, 507903

#: Of functions whose integer arguments are wider than C's int.
_WIDE = {
    "aclrtMalloc": [c_void_p, c_size_t, c_int], "aclrtFree": [c_void_p], "aclrtMallocHost": [c_void_p, c_size_t],
    "aclrtFreeHost": [c_void_p], "aclrtMemcpy": [c_void_p, c_size_t, c_void_p, c_size_t, c_int],
    "aclrtMemcpyAsync": [c_void_p, c_size_t, c_void_p, c_size_t, c_int, c_void_p],
    "aclrtMemset": [c_void_p, c_size_t, c_int32, c_size_t], "aclrtMemsetAsync": [c_void_p, c_size_t, c_int32, c_size_t, c_void_p],
    "aclrtReserveMemAddress": [c_void_p, c_size_t, c_size_t, c_void_p, c_uint64], "aclrtReleaseMemAddress": [c_void_p],
    "aclrtMallocPhysical": [c_void_p, c_size_t, c_void_p, c_uint64], "aclrtFreePhysical": [c_void_p],
    "aclrtMapMem": [c_void_p, c_size_t, c_size_t, c_void_p, c_uint64], "aclrtUnmapMem": [c_void_p],
    "aclrtHostRegisterV2": [c_void_p, c_uint64, c_uint32], "aclrtHostUnregister": [c_void_p],
    "aclrtPointerGetAttributes": [c_void_p, c_void_p], "aclrtMemGetAddressRange": [c_void_p, c_void_p, c_void_p],
    "aclrtCreateStreamWithConfig": [c_void_p, c_uint32, c_uint32], "aclrtCreateStream": [c_void_p],
    "aclrtSetOpExecuteTimeOutV2": [c_uint64, c_void_p], "aclrtSetStreamFailureMode": [c_void_p, c_uint64],
    "aclrtSynchronizeStreamWithTimeout": [c_void_p, c_int32],
    "aclrtLaunchHostFunc": [c_void_p, c_void_p, c_void_p], "aclrtLaunchCallback": [c_void_p, c_void_p, c_int, c_void_p],
    "aclrtSubscribeReport": [c_uint64, c_void_p], "aclrtUnSubscribeReport": [c_uint64, c_void_p],
    "aclrtMemcpyBatchAsync": [c_void_p] * 4 + [c_size_t, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p],
    "aclmdlRIExecuteAsync": [c_void_p, c_void_p], "aclmdlRICaptureBegin": [c_void_p, c_int],
    "aclrtSynchronizeEventWithTimeout": [c_void_p, c_int32], "aclrtSetStreamResLimit": [c_void_p, c_int, c_uint32],
    "aclrtGetStreamResLimit": [c_void_p, c_int, c_void_p], "aclmdlRIDebugJsonPrint": [c_void_p, c_char_p, c_uint32],
}
_runtime = ctypes.CDLL("libascendcl.so")
_runtime.aclGetRecentErrMsg.restype = c_char_p
_runtime.aclrtGetSocName.restype = c_char_p


class AclError(Exception):
    def __init__(self, function: str, code: int):
        self.code = code
        self.text = (_runtime.aclGetRecentErrMsg() or b"").decode()
        super().__init__(f"{function} returned {code}: {self.text}")


def acl(function: str, *arguments):
    entry = getattr(_runtime, function)
    entry.argtypes = _WIDE.get(function, [c_void_p if isinstance(a, (int, c_void_p)) and (a is None or isinstance(a, c_void_p) or a > 0xFFFF)
                                          else c_int if isinstance(a, int) else c_void_p for a in arguments])
    code = entry(*arguments)
    if code != 0:
        raise AclError(function, code)


def fails(code: int, function: str, *arguments, match: str | None = None) -> str:
    """The text of the error."""
    try:
        acl(function, *arguments)
    except AclError as error:
        assert error.code == code and (match is None or re.search(match, error.text)), error
        return error.text
    raise AssertionError(f"{function} returned 0, not {code}")


def out(function: str, *arguments, kind=c_void_p):
    """Of a function whose first parameter is the result."""
    value = kind()
    acl(function, byref(value), *arguments)
    return value.value


def device_count() -> int:
    return out("aclrtGetDeviceCount", kind=c_uint32)


def malloc(size: int) -> int:
    return out("aclrtMalloc", size, 0)


def stream() -> int:
    return out("aclrtCreateStreamWithConfig", 0, 0)


def event(flags: int = TIME_LINE) -> int:
    return out("aclrtCreateEventExWithFlag", flags)


def upload(address: int, data: bytes) -> None:
    acl("aclrtMemcpy", address, len(data), ctypes.c_char_p(data), len(data), H2D)


def download(address: int, size: int) -> bytes:
    buffer = ctypes.create_string_buffer(size)
    acl("aclrtMemcpy", ctypes.addressof(buffer), size, address, size, D2H)
    return buffer.raw


def elapsed_ms(start: int, end: int) -> float:
    value = c_float()
    acl("aclrtEventElapsedTime", byref(value), c_void_p(start), c_void_p(end))
    return value.value


def memory_info() -> tuple[int, int]:
    free, total = c_size_t(), c_size_t()
    acl("aclrtGetMemInfo", 1, byref(free), byref(total))
    return free.value, total.value


def host_function(function):
    """A C callback without argument; the caller keeps it alive."""
    return ctypes.CFUNCTYPE(None, c_void_p)(lambda _: function())


def capture_info(handle: int) -> int:
    status, model = c_int(), c_void_p()
    acl("aclmdlRICaptureGetInfo", c_void_p(handle), byref(status), byref(model))
    return status.value


def end_capture(handle: int) -> int:
    model = c_void_p()
    acl("aclmdlRICaptureEnd", c_void_p(handle), byref(model))
    return model.value
