// Loads kernels from everywhere, in the order of the arguments, and checks what they compute:
// - `fat`: the kernel of the program itself; `file=PATH`, `memory=PATH`: the kernel of a module, whose bytes in memory are overwritten
//   afterwards; `library=NAME:PATH`: that of a library, if it has a function run_NAME
// - `device=N`: where they run from here on; `times=N`: how often each is launched
// - `start`: recording begins; `flush`; `ready`: says so and waits for the file go; `exiting`: says so
// - `fork`: the child does the rest, then the parent does it; `child`: a child that ends at once (the runtime does not bear more)
// - `kill`: the end
#include "../../../fixtures/programs/check.h"

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void of_the_program(int *value) { *value += 2; }

static int *value;
static int times = 1;

static void check(int expected) {
    int found;
    HIP(hipMemcpy(&found, value, sizeof found, hipMemcpyDeviceToHost));
    expect(found == expected, "value", found);
    HIP(hipFree(value));
}

static void begin() {
    int one = 1;
    HIP(hipMalloc((void **)&value, sizeof(int)));
    HIP(hipMemcpy(value, &one, sizeof one, hipMemcpyHostToDevice));
}

static void module(hipModule_t loaded) {
    hipFunction_t function;
    int by = 3, expected = 1;
    HIP(hipModuleGetFunction(&function, loaded, "scale"));
    begin();
    void *arguments[] = {&value, &by};
    for (int i = 0; i < times; i++) {
        HIP(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
        expected = int(unsigned(expected) * 3);
    }
    HIP(hipDeviceSynchronize());
    check(expected);
}

static void call(const char *name) {
    auto function = (void (*)())dlsym(RTLD_DEFAULT, name);
    if (function) function();
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        std::string word = argv[i], rest = word.substr(word.find('=') + 1);
        if (word.rfind("device=", 0) == 0) {
            HIP(hipSetDevice(std::stoi(rest)));
        } else if (word.rfind("times=", 0) == 0) {
            times = std::stoi(rest);
        } else if (word == "fat") {
            begin();
            for (int n = 0; n < times; n++) of_the_program<<<1, 1>>>(value);
            HIP(hipDeviceSynchronize());
            check(1 + 2 * times);
        } else if (word.rfind("file=", 0) == 0) {
            hipModule_t loaded;
            HIP(hipModuleLoad(&loaded, rest.c_str()));
            module(loaded);
        } else if (word.rfind("memory=", 0) == 0) {
            FILE *file = fopen(rest.c_str(), "rb");
            expect(file != nullptr, "cannot open the module");
            std::vector<char> bytes(16 << 20);
            expect(fread(bytes.data(), 1, bytes.size(), file) > 0, "cannot read the module");
            fclose(file);
            hipModule_t loaded;
            HIP(hipModuleLoadData(&loaded, bytes.data()));
            module(loaded);
            std::memset(bytes.data(), 0xa5, bytes.size());
        } else if (word.rfind("library=", 0) == 0) {
            void *library = dlopen(rest.substr(rest.find(':') + 1).c_str(), RTLD_NOW | RTLD_GLOBAL);
            expect(library != nullptr, dlerror());
            auto run = (void (*)())dlsym(library, ("run_" + rest.substr(0, rest.find(':'))).c_str());
            if (run) run();
        } else if (word == "start") {
            call("rpdstart");
        } else if (word == "flush") {
            call("rpdflush");
        } else if (word == "ready") {
            puts("ready");
            fflush(stdout);
            while (access("go", F_OK) != 0) usleep(1000);
        } else if (word == "exiting") {
            puts("exiting");
            fflush(stdout);
        } else if (word == "fork" || word == "child") {
            pid_t child = fork();
            if (child == 0 && word == "child") _exit(0);
            int status;
            if (child) expect(waitpid(child, &status, 0) == child && status == 0, "status of the child", status);
        } else if (word == "kill") {
            raise(SIGKILL);
        }
    }
    return 0;
}
