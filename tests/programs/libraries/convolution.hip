// MIOpen: a convolution of an image of 4 x 4 by a filter of 3 x 3, all of ones.
#include "../../../fixtures/programs/check.h"

#include <miopen/miopen.h>

#define MIOPEN(call) expect((call) == miopenStatusSuccess, #call)

int main() {
    miopenHandle_t handle;
    MIOPEN(miopenCreate(&handle));
    miopenTensorDescriptor_t x, w, y;
    for (auto *tensor : {&x, &w, &y}) MIOPEN(miopenCreateTensorDescriptor(tensor));
    MIOPEN(miopenSet4dTensorDescriptor(x, miopenFloat, 1, 1, 4, 4));
    MIOPEN(miopenSet4dTensorDescriptor(w, miopenFloat, 1, 1, 3, 3));
    MIOPEN(miopenSet4dTensorDescriptor(y, miopenFloat, 1, 1, 2, 2));
    miopenConvolutionDescriptor_t convolution;
    MIOPEN(miopenCreateConvolutionDescriptor(&convolution));
    MIOPEN(miopenInitConvolutionDescriptor(convolution, miopenConvolution, 0, 0, 1, 1, 1, 1));
    float ones[16], result[4], *memory[3];
    for (float &one : ones) one = 1;
    for (float *&part : memory) {
        HIP(hipMalloc(&part, sizeof ones));
        HIP(hipMemcpy(part, ones, sizeof ones, hipMemcpyHostToDevice));
    }
    size_t count = 1;
    miopenConvSolution_t solution;
    void *workspace = nullptr;
    MIOPEN(miopenConvolutionForwardGetSolution(handle, w, x, convolution, y, 1, &count, &solution));
    if (solution.workspace_size > 0) HIP(hipMalloc(&workspace, solution.workspace_size));
    MIOPEN(miopenConvolutionForwardImmediate(handle, w, memory[1], x, memory[0], convolution, y, memory[2], workspace, solution.workspace_size,
                                             solution.solution_id));
    HIP(hipMemcpy(result, memory[2], sizeof result, hipMemcpyDeviceToHost));
    for (int i = 0; i < 4; i++) expect(result[i] == 9, "the sum", i);
    MIOPEN(miopenDestroy(handle));
    puts("done");
    return 0;
}
