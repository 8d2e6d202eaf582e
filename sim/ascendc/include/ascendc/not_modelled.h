// Public APIs without a model. Calling one is a compile error with a fixed text that the build turns into a message:
//
//     AscendC API not modelled: Sort32
//
// The build reads the names of modelled APIs from the headers beside this one.
#pragma once

namespace sim {

struct Anything {
    template <typename T> constexpr Anything(const T&) {}
    constexpr Anything() {}
};
template <typename... T> inline constexpr bool kNever = false;
template <auto... values> inline constexpr bool kNeverValue = false;

}  // namespace sim

// The explicit template arguments of a call are types, or values, or types followed by a value.
#define SIM_NOT_MODELLED_ARGUMENTS                                                                                     \
    ::sim::Anything = {}, ::sim::Anything = {}, ::sim::Anything = {}, ::sim::Anything = {}, ::sim::Anything = {},      \
    ::sim::Anything = {}, ::sim::Anything = {}, ::sim::Anything = {}, ::sim::Anything = {}
#define SIM_NOT_MODELLED(Name)                                                                                         \
    template <typename... T> void Name(SIM_NOT_MODELLED_ARGUMENTS) {                                                   \
        static_assert(::sim::kNever<T...>, "AscendC API not modelled: " #Name);                                        \
    }                                                                                                                  \
    template <auto value, auto... values> void Name(SIM_NOT_MODELLED_ARGUMENTS) {                                      \
        static_assert(::sim::kNeverValue<values...>, "AscendC API not modelled: " #Name);                                        \
    }                                                                                                                  \
    template <typename A, auto value, typename... T> void Name(SIM_NOT_MODELLED_ARGUMENTS) {                           \
        static_assert(::sim::kNever<T...>, "AscendC API not modelled: " #Name);                                        \
    }                                                                                                                  \
    template <typename A, typename B, auto value, typename... T> void Name(SIM_NOT_MODELLED_ARGUMENTS) {               \
        static_assert(::sim::kNever<T...>, "AscendC API not modelled: " #Name);                                        \
    }

namespace AscendC {

// cube
SIM_NOT_MODELLED(SetFixPipeConfig)
SIM_NOT_MODELLED(SetFixpipeNz2ndFlag)
SIM_NOT_MODELLED(InitConstValue)
SIM_NOT_MODELLED(Fill)
SIM_NOT_MODELLED(SetPadValue)  // DataCopyPad carries its value; the register serves GM -> L1 copies
// order between cores
SIM_NOT_MODELLED(IBSet)
SIM_NOT_MODELLED(IBWait)
SIM_NOT_MODELLED(InitDetermineComputeWorkspace)
SIM_NOT_MODELLED(WaitPreBlock)
SIM_NOT_MODELLED(NotifyNextBlock)
// scalar unit
SIM_NOT_MODELLED(GetSystemCycle)
SIM_NOT_MODELLED(GetProgramCounter)
SIM_NOT_MODELLED(GetArchVersion)
SIM_NOT_MODELLED(SetCtrlSpr)
SIM_NOT_MODELLED(GetCtrlSpr)
SIM_NOT_MODELLED(WriteGmByPassDCache)
SIM_NOT_MODELLED(ReadGmByPassDCache)
SIM_NOT_MODELLED(AtomicCas)
SIM_NOT_MODELLED(AtomicExch)
SIM_NOT_MODELLED(DumpTensor)
// sorting and layout
SIM_NOT_MODELLED(Sort32)
SIM_NOT_MODELLED(Sort)
SIM_NOT_MODELLED(MrgSort)
SIM_NOT_MODELLED(Concat)
SIM_NOT_MODELLED(Extract)
SIM_NOT_MODELLED(TopK)
SIM_NOT_MODELLED(TransDataTo5HD)
SIM_NOT_MODELLED(ConfusionTranspose)
// high-level functions
SIM_NOT_MODELLED(PopStackBuffer)
SIM_NOT_MODELLED(Sin)
SIM_NOT_MODELLED(Cos)
SIM_NOT_MODELLED(Tan)
SIM_NOT_MODELLED(Tanh)
SIM_NOT_MODELLED(Erf)
SIM_NOT_MODELLED(Power)
SIM_NOT_MODELLED(Log)
SIM_NOT_MODELLED(Sigmoid)
SIM_NOT_MODELLED(Gelu)
SIM_NOT_MODELLED(FasterGelu)
SIM_NOT_MODELLED(Silu)
SIM_NOT_MODELLED(Swish)
SIM_NOT_MODELLED(SwiGLU)
SIM_NOT_MODELLED(SoftMax)
SIM_NOT_MODELLED(SoftmaxFlash)
SIM_NOT_MODELLED(SoftmaxFlashV2)
SIM_NOT_MODELLED(LogSoftMax)
SIM_NOT_MODELLED(LayerNorm)
SIM_NOT_MODELLED(RmsNorm)
SIM_NOT_MODELLED(Mean)
SIM_NOT_MODELLED(Broadcast)
SIM_NOT_MODELLED(Pad)
SIM_NOT_MODELLED(UnPad)
SIM_NOT_MODELLED(Frac)
SIM_NOT_MODELLED(Floor)
SIM_NOT_MODELLED(Ceil)
SIM_NOT_MODELLED(Round)
SIM_NOT_MODELLED(Trunc)
SIM_NOT_MODELLED(Where)
SIM_NOT_MODELLED(ArithProgression)
SIM_NOT_MODELLED(DropOut)
SIM_NOT_MODELLED(AscendQuant)
SIM_NOT_MODELLED(AscendDequant)
SIM_NOT_MODELLED(AscendAntiQuant)
#if __NPU_ARCH__ == 3510
SIM_NOT_MODELLED(NdDmaDci)
#endif

// Parameter types of such APIs: named only.
struct Dn2NzParams;
struct Nz2NdParamsFull;
struct SliceInfo;
struct DataCopyEnhancedParams;

}  // namespace AscendC
