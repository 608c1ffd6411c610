/* Runs a program for which the system refuses to lock files, as it does on a Lustre that is mounted without flock (ENOSYS) and on NFS
 * whose server has no lock service (ENOLCK). Needs no rights: a filter of system calls stands for the file system.
 *
 * Usage: no_locks ERROR PROGRAM ARGUMENTS...     ERROR: its number
 * LD_PRELOAD of the program is the variable PRELOAD, so that nothing is recorded here. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* On to the refusal, `steps` after the next instruction, when it is that. */
#define REFUSE_IF(value, steps) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, steps, 0)

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    /* The numbers are those of <linux/fcntl.h>: F_SETLK, F_SETLKW, and the same for open file descriptions. */
    struct sock_filter filter[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
        LOAD(args[1]),
        REFUSE_IF(6, 4),
        REFUSE_IF(7, 3),
        REFUSE_IF(37, 2),
        REFUSE_IF(38, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (atoi(argv[1]) & SECCOMP_RET_DATA)),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("no_locks");
        return 77;
    }
    setenv("LD_PRELOAD", getenv("PRELOAD"), 1);
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
