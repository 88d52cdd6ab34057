package sandbox

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deniedCalls are the system calls that reach the network or another process. A
// network namespace would leave sockets that have a path, and needs leave that
// containers mostly don't give.
var deniedCalls = []uint32{
	unix.SYS_SOCKET, unix.SYS_IO_URING_SETUP, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
}

// architectures is how seccomp names those on which sockets are made by no other
// call than these.
var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64,
	"riscv64": unix.AUDIT_ARCH_RISCV64, "loong64": unix.AUDIT_ARCH_LOONGARCH64,
}

// x32 marks the calls of amd64's other set.
const x32 = 1 << 30

// Where the kernel puts what it asks about a call: struct seccomp_data.
const (
	callNumber       = 0
	callArchitecture = 4
)

// filterCalls has the kernel refuse deniedCalls, and all calls of another
// architecture.
func filterCalls() error {
	architecture, known := architectures[runtime.GOARCH]
	if !known {
		return errors.New("not on " + runtime.GOARCH)
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	unless := func(test uint16, k uint32, skip uint8) unix.SockFilter { // the next instruction, unless
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, K: k, Jt: skip, Jf: 1 - skip}
	}
	answer := func(with uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
	}
	refuse := answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	program := []unix.SockFilter{
		load(callArchitecture), unless(unix.BPF_JEQ, architecture, 1), refuse,
		load(callNumber), unless(unix.BPF_JGE, x32, 0), refuse,
	}
	for _, call := range deniedCalls {
		program = append(program, unless(unix.BPF_JEQ, call, 0), refuse)
	}
	program = append(program, answer(unix.SECCOMP_RET_ALLOW))
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
}
