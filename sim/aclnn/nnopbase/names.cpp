// libnnopbase.so has the aclCreate.../aclDestroy... functions of libcustom_ops_sim.so, which it links: dlsym finds them through it.
