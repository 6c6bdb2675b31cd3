#!/usr/bin/env python3
"""coverage.py finds what a newer toolkit has beside the table: new_toolkit.py TABLE NOT_ROWS CUDA"""
import os
import subprocess
import sys
import tempfile

NEW = {
    "cuda.h": ["CUresult CUDAAPI cuStreamBeginCapture_v3(CUstream hStream);",
               "    #define cuCtxSynchronize __CUDA_API_PTSZ(cuCtxSynchronize_v3)",
               "CUresult CUDAAPI cuMemAllocNew(CUdeviceptr *dptr, size_t bytesize);",
               "CUresult CUDAAPI cuCtxGetNewThing(int *thing);"],
    "cuda_runtime_api.h": ["extern __host__ cudaError_t CUDARTAPI cudaFreeAsync_v2(void *devPtr);"],
}
FOUND = {"cuStreamBeginCapture_v3", "cuCtxSynchronize_v3", "cuCtxSynchronize_v3_ptsz", "cuMemAllocNew",
         "cudaFreeAsync_v2"}


def main():
    table, not_rows, cuda = sys.argv[1:]
    coverage = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coverage.py")
    if not os.path.exists(f"{cuda}/include/cuda.h") or not os.path.exists(f"{cuda}/lib64"):
        print(f"skipped: no toolkit in {cuda}")
        return 77
    with tempfile.TemporaryDirectory() as newer:
        os.symlink(f"{cuda}/lib64", f"{newer}/lib64")
        os.mkdir(f"{newer}/include")
        for header, lines in NEW.items():
            with open(f"{cuda}/include/{header}") as old, open(f"{newer}/include/{header}", "w") as new:
                new.write(old.read() + "\n".join(lines) + "\n")
        ran = subprocess.run([coverage, "complete", table, not_rows, newer], capture_output=True, text=True)
    found = {line.split()[0] for line in ran.stdout.splitlines()}
    if ran.returncode == 77:
        return 77
    if ran.returncode != 1 or found != FOUND:
        print(f"status {ran.returncode}, found {sorted(found)} instead of {sorted(FOUND)}")
        return 1
    return 0


sys.exit(main())
