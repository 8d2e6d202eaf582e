"""Op packages that go wrong on purpose. How many tokens a call has decides whether it does."""

import shutil
import subprocess
from pathlib import Path

from custom_ops import _paths
from custom_ops.sim import builder

FAULTY_TOKENS = 3  # the kernel reads a GB behind x
REFUSED_TOKENS = 5  # the first phase refuses
FAILING_TOKENS = 7  # the second phase fails

_SHIM = """
#include <cstdint>
#include <dlfcn.h>
struct aclTensor;
struct aclOpExecutor;
extern "C" int aclGetViewShape(const aclTensor*, int64_t**, uint64_t*);
static void* Real(const char* name) {
    static void* library = dlopen("REAL", RTLD_NOW);
    return dlsym(library, name);
}
static aclOpExecutor* failing;
extern "C" int aclnnHcPreInvRmsGetWorkspaceSize(const aclTensor* x, double epsilon, const aclTensor* y, uint64_t* bytes, aclOpExecutor** executor) {
    int64_t* shape;
    uint64_t rank;
    aclGetViewShape(x, &shape, &rank);
    const int64_t tokens = shape[0];
    delete[] shape;
    if (tokens == REFUSED_TOKENS) return 561002;
    const auto prepare = (int (*)(const aclTensor*, double, const aclTensor*, uint64_t*, aclOpExecutor**))Real("aclnnHcPreInvRmsGetWorkspaceSize");
    const int status = prepare(x, epsilon, y, bytes, executor);
    if (tokens == FAILING_TOKENS) failing = *executor;
    return status;
}
extern "C" int aclnnHcPreInvRms(void* workspace, uint64_t bytes, aclOpExecutor* executor, void* stream) {
    if (executor == failing) return failing = nullptr, 507899;
    return ((int (*)(void*, uint64_t, aclOpExecutor*, void*))Real("aclnnHcPreInvRms"))(workspace, bytes, executor, stream);
}
"""


def faulty_kernel(folder: Path, soc: str) -> Path:
    """hc_pre_inv_rms of this project, with a kernel that reads outside x when it is given FAULTY_TOKENS tokens."""
    for name in ("op_host", "op_kernel"):
        shutil.copytree(_paths.SOURCE_ROOT / name, folder / name)
    source = folder / "op_kernel" / "hc_pre_inv_rms" / "hc_pre_inv_rms.cpp"
    text = source.read_text()
    patched = text.replace("    AscendC::TPipe pipe;", f"    if (tilingData.tokens == {FAULTY_TOKENS}) x += 1 << 30;\n    AscendC::TPipe pipe;")
    assert patched != text
    source.write_text(patched)
    return builder.build_package(folder, soc, ["hc_pre_inv_rms"]).path


def failing_phases(folder: Path, package: Path) -> Path:
    """A package whose library stands before that of `package`, and refuses or fails for REFUSED_TOKENS and FAILING_TOKENS tokens."""
    library = folder / "op_api" / "lib" / "libcust_opapi.so"
    library.parent.mkdir(parents=True)
    source = folder / "shim.cpp"
    text = _SHIM.replace("REAL", str(package / "op_api" / "lib" / "libcust_opapi.so"))
    source.write_text(text.replace("REFUSED_TOKENS", str(REFUSED_TOKENS)).replace("FAILING_TOKENS", str(FAILING_TOKENS)))
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", source, "-ldl", "-o", library], check=True)
    return folder
