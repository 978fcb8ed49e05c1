// SPDX-License-Identifier: Apache-2.0

// Command tricks tries to start programs in ways that no shell offers, and does
// things that the monitor should see.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	if err := tricks[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Println("tricks:", err)
		os.Exit(3)
	}
}

var tricks = map[string]func([]string) error{
	"memfd": memfd, "unlinked": unlinked, "emptypath": emptyPath, "at": at, "relative": relative, "argv": argv, "bytes": odd,
	"many": many, "swaplink": swapLink, "swapfile": swapFile, "swapscript": swapScript, "userns": userNamespace, "overlay": ownOverlay,
	"threads": threads, "privileges": privileges, "network": network, "files": files, "flood": flood, "vfork": vfork, "spawn": spawn, "refused": refused,
	"daemons": daemons, "daemon": daemon, "load": load, "inside": inside, "overwrite": overwrite,
	"control": control, "bind": bind,
	"scribble": scribble, "scribbleinside": scribbleInside, "mountandscribble": mountAndScribble, "deep": deep,
}

func execveat(fd int, path string, flags int) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	argv, _ := syscall.SlicePtrFromStrings([]string{"canary"})
	envv, _ := syscall.SlicePtrFromStrings(nil)
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), uintptr(flags), 0)
	return errno
}

func content(name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return b
}

func memfd(args []string) error {
	fd, err := unix.MemfdCreate("x", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, content(args[0])); err != nil {
		return err
	}
	if len(args) > 1 {
		return syscall.Exec("/proc/self/fd/"+strconv.Itoa(fd), []string{"canary"}, nil)
	}
	return execveat(fd, "", unix.AT_EMPTY_PATH)
}

func unlinked(args []string) error {
	name := "/tmp/unlinked"
	if err := os.WriteFile(name, content(args[0]), 0o755); err != nil {
		return err
	}
	fd, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil {
		return err
	}
	return execveat(fd, "", unix.AT_EMPTY_PATH)
}

func emptyPath(args []string) error {
	fd, err := unix.Open(args[0], unix.O_PATH, 0)
	if err != nil {
		return err
	}
	return execveat(fd, "", unix.AT_EMPTY_PATH)
}

func at(args []string) error {
	fd, err := unix.Open(filepath.Dir(args[0]), unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return execveat(fd, filepath.Base(args[0]), 0)
}

func relative(args []string) error {
	if err := os.Chdir(filepath.Dir(args[0])); err != nil {
		return err
	}
	return syscall.Exec("./"+filepath.Base(args[0]), []string{"harmless"}, nil)
}

// argv starts a program with two megabytes of arguments.
func argv(args []string) error {
	list := []string{args[0]}
	for range 20 {
		list = append(list, strings.Repeat("x", 100<<10))
	}
	return syscall.Exec(args[0], append(list, "end"), nil)
}

func odd(args []string) error {
	return syscall.Exec(args[0], []string{args[0], "\xff\xfe\n\x1b[31m", ""}, nil)
}

func many(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range n {
		if err := exec.Command(args[1]).Run(); err != nil {
			return err
		}
	}
	return nil
}

// attempts runs start in child processes while change runs in a thread, and prints
// what they print: count times, and then until one printed or was refused.
func attempts(count string, change func(i int), start func() *exec.Cmd) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	var room atomic.Int64 // the number of changes still allowed: too many are a flood of events
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !stop.Load(); i++ {
			for room.Add(-1) < 0 && !stop.Load() {
				room.Store(0)
				time.Sleep(time.Millisecond)
			}
			change(i)
		}
	}()
	met := false
	for i := 0; i < n || i < 300 && !met; i++ {
		room.Store(100)
		out, err := start().CombinedOutput()
		os.Stdout.Write(out)
		met = met || len(out) > 0 || errors.Is(err, syscall.EACCES)
	}
	stop.Store(true)
	<-done
	return nil
}

// swapLink makes a link point to an allowed program and a refused one in turn.
func swapLink(args []string) error {
	const name = "/tmp/swapped"
	return attempts(args[0], func(i int) {
		_ = os.Symlink(args[1+i%2], name+".new")
		_ = os.Rename(name+".new", name)
	}, func() *exec.Cmd { return exec.Command(append(args, name)[3]) })
}

// swapFile makes a file contain an allowed program and a refused one in turn.
func swapFile(args []string) error {
	const name = "/workspace/swapped"
	contents := [][]byte{content(args[1]), content(args[2])}
	return attempts(args[0], func(i int) {
		_ = os.WriteFile(name+".new", contents[i%2], 0o755)
		_ = os.Rename(name+".new", name)
	}, func() *exec.Cmd { return exec.Command(name) })
}

// swapScript changes the interpreter that a script names while the script is started.
func swapScript(args []string) error {
	const name = "/workspace/swapscript"
	if err := os.WriteFile(name, []byte("#!"+args[1]+"\n"), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return attempts(args[0], func(i int) {
		_, _ = f.WriteAt([]byte("#!"+args[1+i%2]+"\n"), 0)
	}, func() *exec.Cmd { return exec.Command(name) })
}

// userNamespace covers a program with another by its own mounts.
func userNamespace(args []string) error {
	cmd := exec.Command("/proc/self/exe", "overlay", args[0], args[1])
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}}
	return cmd.Run()
}

func ownOverlay(args []string) error {
	if err := unix.Mount(args[0], args[1], "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return syscall.Exec(args[1], []string{args[1]}, nil)
}

// threads execs from a thread that is not the process's first.
func threads(args []string) error {
	result := make(chan error)
	go func() { result <- syscall.Exec(args[0], []string{"harmless"}, nil) }()
	return <-result
}

func vfork(args []string) error {
	pid, err := syscall.ForkExec(args[0], []string{"harmless"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

func privileges([]string) error {
	_ = syscall.Setuid(0)
	_ = unix.Unshare(unix.CLONE_NEWNET)
	_ = unix.Mount("none", "/tmp", "tmpfs", 0, "")
	_ = unix.Chroot("/tmp")
	_, _ = unix.MemfdCreate("x", 0)
	_, _, _ = unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	_, _, _ = unix.Syscall(unix.SYS_BPF, 0, 0, 0)
	_, _, _ = unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1, 0)
	return nil
}

func network([]string) error {
	if l, err := net.Listen("tcp", "127.0.0.1:4321"); err == nil {
		if c, err := net.Dial("tcp", "127.0.0.1:4321"); err == nil {
			c.Close()
		}
		l.Close()
	}
	_, _ = net.Dial("tcp", "169.254.169.254:80")
	_, _ = net.Dial("unix", "/run/absent")
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet4{Port: 53, Addr: [4]byte{192, 0, 2, 9}}
	_ = unix.Sendto(fd, []byte("x"), 0, to)
	_ = unix.Sendmsg(fd, []byte("x"), nil, &unix.SockaddrInet4{Port: 54, Addr: [4]byte{192, 0, 2, 9}}, 0)
	return nil
}

func files([]string) error {
	steps := []error{
		os.WriteFile("/tmp/made", nil, 0o600),
		os.Rename("/tmp/made", "/tmp/renamed"),
		os.Chmod("/tmp/renamed", 0o644),
		os.Link("/tmp/renamed", "/tmp/linked"),
		os.Symlink("/etc/passwd", "/tmp/symlinked"),
		os.Remove("/tmp/linked"),
		os.Mkdir("/tmp/folder", 0o700),
		os.WriteFile("/workspace/inside", nil, 0o600),
		os.Rename("/workspace/inside", "/workspace/inside2"),
	}
	for _, err := range steps {
		if err != nil {
			return err
		}
	}
	return nil
}

func flood(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for i := range n {
		name := "/tmp/f" + strconv.Itoa(i)
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return err
		}
		_ = os.Remove(name)
	}
	return nil
}

// spawn starts a program many times with minimal overhead.
func spawn(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range n {
		pid, err := syscall.ForkExec(args[1], args[1:], &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		if err != nil {
			return err
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// refused times a refused execve, which starts no process.
func refused(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	begin := time.Now()
	for range n {
		if err := syscall.Exec(args[1], args[1:], nil); err != syscall.EACCES {
			return err
		}
	}
	fmt.Println(time.Since(begin).Nanoseconds() / int64(n))
	return nil
}

// daemons starts processes in sessions of their own, which ignore signals and go on.
func daemons([]string) error {
	for range 4 {
		cmd := exec.Command("/proc/self/exe", "daemon")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
	}
	fmt.Println("up")
	time.Sleep(200 * time.Millisecond)
	return nil
}

// daemon starts programs without end, and tries to trace and to continue others.
func daemon([]string) error {
	signal.Ignore()
	for {
		_ = exec.Command("/usr/bin/true").Run()
		_ = unix.PtraceAttach(os.Getpid() + 1)
		_ = unix.Kill(os.Getppid(), unix.SIGCONT)
	}
}

// control changes a file of the workspace through descriptors that were opened for reading, empties
// it by a path below a root of openat2, and removes it from a directory with a very long path.
// bind makes a Unix socket with a name.
func bind(args []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: args[0]})
}

func control(args []string) error {
	file, err := unix.Open(args[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open(filepath.Dir(args[0]), unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	_, _, utimens := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(file), 0, 0, 0, 0, 0)
	_, openat2 := unix.Openat2(dir, "/"+filepath.Base(args[0]),
		&unix.OpenHow{Flags: unix.O_WRONLY | unix.O_TRUNC, Resolve: unix.RESOLVE_IN_ROOT})
	up := "../workspace/" + args[0]
	for i := range 18 {
		name := strings.Repeat("x", 250)
		if i == 0 {
			name = "/tmp/" + name
		}
		if err := errors.Join(os.MkdirAll(name, 0o755), os.Chdir(name)); err != nil {
			return err
		}
		up = "../" + up
	}
	for i, err := range []error{unix.Unlink(up), unix.Fchmod(file, 0o777), unix.Fchown(file, os.Getuid(), os.Getgid()),
		unix.Fsetxattr(file, "user.x", nil, 0), utimens, openat2} {
		if err != unix.EACCES {
			return fmt.Errorf("call %d: %v", i, err)
		}
	}
	fmt.Println("Permission denied")
	return nil
}
