// Tiling structs of the high-level API (TCubeTiling, SoftMaxTiling ...) have no model: kernels may include the header, and
// using one of the structs is a compile error that names it.
#pragma once
