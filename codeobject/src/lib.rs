//! Reading AMDGPU code objects and their containers.
