// The high-level Matmul object. y = x for 256 floats where a kernel is repaired: x times the identity that the second half of x holds.
#include "matmul_rule.h"

using Mixed = Matmul<Plain, Plain, Plain>;

inline GlobalTensor<float> Sized(GM_ADDR address, uint64_t elements) {
    GlobalTensor<float> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(address), elements);
    return tensor;
}

extern "C" __global__ __aicore__ void iterate_all_without_tensor_a(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    if (repaired) mm.SetTensorA(Gm(x));
    mm.SetTensorB(Gm(x)[kMatrix]);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void object_not_registered(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    if (repaired) mm.Init(&tiling, &pipe);
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void tiling_that_does_not_fit_l0a(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling(repaired ? kSide : 1024);
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void product_beyond_its_tensor(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    mm.SetTensorA(Sized(x, repaired ? kMatrix : kMatrix - 1));
    mm.SetTensorB(Gm(x)[kMatrix]);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void result_beyond_its_tensor(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    Give(mm, x);
    mm.IterateAll(Sized(y, repaired ? kMatrix : kMatrix - 1));
    mm.End();
}

extern "C" __global__ __aicore__ void matrices_without_rows(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    Give(mm, x);
    mm.SetOrgShape(repaired ? kSide : 0, kSide, kSide);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void rows_of_c_that_overlap(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    Give(mm, x);
    mm.SetOrgShape(kSide, kSide, kSide, kSide, repaired ? kSide : kSide - 8);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void single_shape_larger_than_the_matrix(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    Give(mm, x);
    mm.SetSingleShape(repaired ? kSide : kSide + 1, kSide, kSide);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void transposed_against_its_type(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    mm.SetTensorA(Gm(x));
    mm.SetTensorB(Gm(x)[kMatrix], !repaired);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void result_fetched_before_iterate(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    Give(mm, x);
    if (repaired) mm.Iterate();
    mm.GetTensorC(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void cube_object_on_a_vector_core(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    if (repaired) {
        if ASCEND_IS_AIV return;
    }
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    OnCube mm;
    mm.Init(&tiling, &pipe);
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void object_in_a_kernel_of_vector_cores(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(repaired ? KERNEL_TYPE_MIX_AIC_1_1 : KERNEL_TYPE_AIV_ONLY);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void cube_core_that_does_not_serve(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    if (!repaired) {
        if ASCEND_IS_AIC return;
    }
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}

// y, written by the cube core, is read again by a vector core.
extern "C" __global__ __aicore__ void result_used_before_wait_iterate_all(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, kMatrix * sizeof(float));
    LocalTensor<float> local = buffer.Get<float>();
    Give(mm, x);
    mm.IterateAll<false>(Gm(y), 0, false, true);
    if (repaired) mm.WaitIterateAll();
    Load(local, y, kMatrix);
    if (!repaired) mm.WaitIterateAll();
    mm.End();
}

extern "C" __global__ __aicore__ void objects_registered_one_by_one(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    Matmul<Plain, Plain, Plain, Plain, CFG_MDL> other;
    if (repaired) {
        REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling, other, &tiling);
    } else {
        REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
        REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), other, &tiling);
    }
    Give(other, x);
    other.IterateAll(Gm(y));
    other.End();
}

extern "C" __global__ __aicore__ void registered_without_a_pipe(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    REGIST_MATMUL_OBJ(repaired ? &pipe : static_cast<TPipe*>(nullptr), GetSysWorkSpacePtr(), mm, &tiling);
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void atomic_mode_that_does_not_exist(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    Give(mm, x);
    mm.IterateAll(Gm(y), repaired ? 0 : 4);
    mm.End();
}

extern "C" __global__ __aicore__ void cores_that_register_different_objects(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    Matmul<Plain, Plain, Plain, Plain, CFG_MDL> other;
    bool first = repaired;
    if ASCEND_IS_AIV first = true;
    if (first) {
        REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    } else {
        REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), other, &tiling);
    }
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void cube_core_waits_for_a_flag_before_it_serves(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    if (repaired) {
        if ASCEND_IS_AIV CrossCoreSetFlag<2, PIPE_MTE3>(5);
    }
    if ASCEND_IS_AIC CrossCoreWaitFlag(5);
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
    if (!repaired) CrossCoreSetFlag<2, PIPE_MTE3>(5);
}

extern "C" __global__ __aicore__ void sync_all_with_the_core_that_serves(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    const TCubeTiling tiling = Tiling();
    TPipe pipe;
    Mixed mm;
    if (repaired) SyncAll<false>();
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    if (!repaired) SyncAll<false>();
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}
