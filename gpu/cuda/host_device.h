// What it takes to compile one source for the host and for a device.
#pragma once

#if defined(__CUDACC__)
#define SAVEGATE_HOST_DEVICE __host__ __device__
#define SAVEGATE_UNROLL _Pragma("unroll")
#else
#define SAVEGATE_HOST_DEVICE
#define SAVEGATE_UNROLL
#endif
