// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/seccomp"
)

// installSeccompFilter makes the kernel refuse every system call that is not listed here, in all threads. It
// sets no_new_privs.
func installSeccompFilter() error {
	p := seccomp.Program{
		RuleSets: []seccomp.RuleSet{
			{Rules: allowAnyArguments(deadly), Action: seccomp.KillProcess},
			// A filter cannot inspect clone3's arguments; without clone3, callers fall back to
			// clone.
			{Rules: allowAnyArguments([]uintptr{unix.SYS_CLONE3}), Action: seccomp.ReturnError.Code(uint16(unix.ENOSYS))},
			{Rules: allowAnyArguments(needed).Merge(argumentRules()).Merge(archNeeded()), Action: seccomp.Allow},
		},
		Options: seccomp.ProgramOptions{
			DefaultAction: seccomp.ReturnError.Code(uint16(unix.EPERM)),
			BadArchAction: seccomp.KillProcess,
			// Optimizing takes too long for a gateway's start, so frequent calls come first.
			SkipOptimizations: true,
			HotSyscalls: []uintptr{unix.SYS_FUTEX, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV,
				unix.SYS_WRITEV},
		},
	}
	instructions, _, err := p.Build()
	if err != nil {
		return err
	}
	return seccomp.SetFilter(instructions)
}

func allowAnyArguments(calls []uintptr) seccomp.SyscallRules {
	rules := seccomp.NewSyscallRules()
	for _, c := range calls {
		rules.Set(c, seccomp.MatchAll{})
	}
	return rules
}

// deadly are calls that our code never makes: a process that makes one has been compromised.
var deadly = []uintptr{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
	unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_MEMFD_CREATE,
	unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_PIDFD_GETFD, unix.SYS_OPEN_BY_HANDLE_AT,
}

// needed are the calls, with any arguments, that the Go runtime, the C library's threads if it
// is linked, and established sockets need.
var needed = []uintptr{
	unix.SYS_FSTAT, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_SHUTDOWN,
	unix.SYS_RECVFROM, unix.SYS_SENDTO, unix.SYS_RECVMSG, unix.SYS_SENDMSG, unix.SYS_RECVMMSG, unix.SYS_SENDMMSG,
	unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT,
	unix.SYS_SETSOCKOPT,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_PPOLL,
	unix.SYS_EVENTFD2,
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETUID,
	unix.SYS_GETRANDOM,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_RESTART_SYSCALL,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_DUP, unix.SYS_DUP3,
}

// argumentRules are the calls that are needed only with some arguments.
func argumentRules() seccomp.SyscallRules {
	type any = seccomp.AnyValue
	notExecutable := seccomp.PerArg{any{}, any{}, seccomp.MaskedEqual(unix.PROT_EXEC, 0)}
	return seccomp.MakeSyscallRules(map[uintptr]seccomp.SyscallRule{
		unix.SYS_SOCKET: socketRule(),
		// A thread, never a process.
		unix.SYS_CLONE: seccomp.PerArg{seccomp.MaskedEqual(unix.CLONE_THREAD|unix.CLONE_VM,
			unix.CLONE_THREAD|unix.CLONE_VM)},
		unix.SYS_MMAP:     notExecutable,
		unix.SYS_MPROTECT: notExecutable,
		unix.SYS_TGKILL:   seccomp.PerArg{seccomp.EqualTo(1)},
		unix.SYS_FCNTL: seccomp.Or{
			seccomp.PerArg{any{}, seccomp.EqualTo(unix.F_GETFL)}, seccomp.PerArg{any{}, seccomp.EqualTo(unix.F_SETFL)},
			seccomp.PerArg{any{}, seccomp.EqualTo(unix.F_GETFD)}, seccomp.PerArg{any{}, seccomp.EqualTo(unix.F_SETFD)},
			seccomp.PerArg{any{}, seccomp.EqualTo(unix.F_DUPFD_CLOEXEC)},
		},
	})
}

// socketRule allows TCP and UDP sockets.
func socketRule() seccomp.SyscallRule {
	kind := ^uintptr(unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK)
	var rules seccomp.Or
	for _, family := range []uintptr{unix.AF_INET, unix.AF_INET6} {
		for _, s := range [][2]uintptr{{unix.SOCK_STREAM, unix.IPPROTO_TCP}, {unix.SOCK_DGRAM, unix.IPPROTO_UDP}} {
			for _, protocol := range []uintptr{0, s[1]} {
				rules = append(rules, seccomp.PerArg{seccomp.EqualTo(family), seccomp.MaskedEqual(kind, s[0]),
					seccomp.EqualTo(protocol)})
			}
		}
	}
	return rules
}
