// SPDX-License-Identifier: Apache-2.0

// Command testexec runs test programs for go test's option -exec:
//
//	go test -exec "testexec -usage usage.txt -budgets .ci/budgets" ./...
//	go test -exec "testexec -lane TestNightly -part 3/8" -tags e2e,nightly ./...
//	testexec -summary usage.txt
//
// It measures the processor time of each package's tests, including that of processes which
// outlive their parents, as sandboxes do. A package that uses more than its budget fails. Seconds of
// a clock would fail on a busy machine; processor time does not change much there.
//
// With -lane it runs the tests whose names begin with a prefix, with -part a part of these: each test
// is in one part, by a hash of its package and name. The summary fails if no test ran at all.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// defaultBudget is the processor time in seconds of a package without a line in the budgets.
const defaultBudget = 3.0

func main() {
	usage := flag.String("usage", "", "append each package's processor time to this `file`")
	budgets := flag.String("budgets", "",
		"`file` with lines of a package's directory and its seconds of processor time")
	lane := flag.String("lane", "", "run only tests whose names begin with this `prefix`")
	part := flag.String("part", "1/1", "run part `K/N` of the lane")
	summary := flag.String("summary", "", "print the usage in this `file`, and fail if no test ran")
	flag.Parse()
	if *summary != "" {
		if err := printSummary(os.Stdout, *summary); err != nil {
			fmt.Fprintln(os.Stderr, "testexec:", err)
			os.Exit(1)
		}
		return
	}
	code, err := runPackage(flag.Args(), *usage, *budgets, *lane, *part)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testexec:", err)
		os.Exit(2)
	}
	os.Exit(code)
}

// runPackage runs the test program of the package in the working directory, and returns the exit code.
func runPackage(args []string, usage, budgets, lane, part string) (int, error) {
	if len(args) == 0 {
		return 0, errors.New("usage: go test -exec \"testexec [flags]\" packages")
	}
	name, err := packageName()
	if err != nil {
		return 0, err
	}
	budget, err := readBudget(budgets, name)
	if err != nil {
		return 0, err
	}
	ran := true
	if lane != "" {
		tests, err := selectTests(args[0], name, lane, part)
		if err != nil {
			return 0, err
		}
		ran = len(tests) > 0
		args = append(args, "-test.run=^("+strings.Join(tests, "|")+")$")
	}
	code, warned := 0, false
	begin := time.Now()
	if ran {
		if code, warned, err = runProgram(args); err != nil {
			return 0, err
		}
	}
	used, err := childrenTime()
	if err != nil {
		return 0, err
	}
	if err := appendUsage(usage, packageUsage{name, used, time.Since(begin).Seconds(), ran && !warned}); err != nil {
		return 0, err
	}
	if budgets != "" && used > budget {
		fmt.Printf("FAIL: the tests of %s used %.1f s of processor time; their budget in %s is %.1f s\n", name, used,
			filepath.Base(budgets), budget)
		code = max(code, 1)
	}
	return code, nil
}

// packageName returns the working directory relative to the module's root.
func packageName() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for root := dir; root != "/"; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Rel(root, dir)
		}
	}
	return "", fmt.Errorf("%s is not in a module", dir)
}

// readBudget returns the seconds of a package, from a file with lines of "DIRECTORY SECONDS".
func readBudget(file, name string) (float64, error) {
	if file == "" {
		return 0, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	budget := defaultBudget
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return 0, fmt.Errorf("%s: invalid line %q: want a directory and seconds", file, strings.TrimSpace(line))
		}
		seconds, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || !(seconds > 0) {
			return 0, fmt.Errorf("%s: invalid seconds %q", file, fields[1])
		}
		if fields[0] == name {
			budget = seconds
		}
	}
	return budget, nil
}

// selectTests returns the tests of a program that are in a part of a lane.
func selectTests(program, pkg, lane, part string) (tests []string, err error) {
	var k, n uint32
	if _, err := fmt.Sscanf(part+".", "%d/%d.", &k, &n); err != nil || k < 1 || k > n {
		return nil, fmt.Errorf("invalid part %q: want K/N with K from 1 to N", part)
	}
	out, err := exec.Command(program, "-test.list=^"+lane).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the tests of %s: %v", pkg, err)
	}
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(name, lane) && partOf(pkg, name, n) == k {
			tests = append(tests, name)
		}
	}
	return tests, nil
}

// partOf returns the part of n, from 1, that a test is in.
func partOf(pkg, test string, n uint32) uint32 {
	sum := fnv.New32a()
	fmt.Fprintf(sum, "%s.%s", pkg, test)
	return sum.Sum32()%n + 1
}

// runProgram runs a program to its end. Processes that it leaves become children of this one, and
// are waited for, so that their time counts. It reports whether the program had no tests to run.
func runProgram(args []string) (code int, warned bool, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, false, fmt.Errorf("cannot wait for processes that the tests leave: %v", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return 0, false, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	process, err := os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{os.Stdin, write, os.Stderr}})
	if err != nil {
		return 0, false, err
	}
	write.Close()
	go func() {
		for s := range signals {
			_ = process.Signal(s)
		}
	}()
	copied := make(chan bool, 1)
	go func() { copied <- copyOutput(os.Stdout, read) }()
	code, err = waitFor(process.Pid)
	if err != nil {
		return 0, false, err
	}
	select { // a process that the tests left may have the pipe open
	case warned = <-copied:
	case <-time.After(5 * time.Second):
	}
	return code, warned, nil
}

// copyOutput copies lines, and reports whether one says that there were no tests to run.
func copyOutput(to io.Writer, from io.Reader) (warned bool) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		_, _ = to.Write(line)
		warned = warned || bytes.Equal(bytes.TrimSpace(line), []byte("testing: warning: no tests to run"))
		if err != nil {
			return warned
		}
	}
}

// waitFor waits for a process, and then for those that are left, for at most two seconds.
func waitFor(pid int) (code int, err error) {
	var deadline time.Time
	for {
		options := 0
		if !deadline.IsZero() {
			options = syscall.WNOHANG
		}
		var status syscall.WaitStatus
		found, err := syscall.Wait4(-1, &status, options, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			return code, nil
		case err != nil:
			return 0, err
		case found == pid:
			code = status.ExitStatus()
			if status.Signaled() {
				code = 128 + int(status.Signal())
			}
			deadline = time.Now().Add(2 * time.Second)
		case found == 0 && time.Now().After(deadline):
			return code, nil
		case found == 0:
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// childrenTime returns the processor time, in seconds, of all processes that were waited for.
func childrenTime() (float64, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return 0, err
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9, nil
}

// A packageUsage is what the tests of a package used: seconds of processor time and of a clock.
type packageUsage struct {
	name       string
	used, wall float64
	ran        bool // at least one test
}

func appendUsage(file string, u packageUsage) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %.2f %.2f %t\n", u.name, u.used, u.wall, u.ran)
	return errors.Join(err, f.Close())
}

// printSummary prints the ten packages that used most, and the sum of all.
func printSummary(to io.Writer, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var list []packageUsage
	total, tested := 0.0, 0
	for line := range strings.Lines(string(data)) {
		var u packageUsage
		if _, err := fmt.Sscan(line, &u.name, &u.used, &u.wall, &u.ran); err != nil {
			return fmt.Errorf("%s: invalid line %q", file, line)
		}
		total += u.used
		if u.ran {
			tested++
		}
		list = append(list, u)
	}
	if tested == 0 {
		return errors.New("no test ran")
	}
	slices.SortFunc(list, func(a, b packageUsage) int { return cmp.Compare(b.used, a.used) })
	fmt.Fprintf(to, "tests of %d packages used %.0f s of processor time; most used:\n", tested, total)
	for _, u := range list[:min(10, len(list))] {
		fmt.Fprintf(to, "%8.1f s, %6.1f s by the clock: %s\n", u.used, u.wall, u.name)
	}
	return nil
}
