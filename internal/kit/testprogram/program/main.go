// SPDX-License-Identifier: Apache-2.0

// Command program does one thing that a test needs: it sleeps, allocates, forks, prints,
// connects or listens. See the table of commands.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var commands = map[string]func(args []string) error{
	"sleep":     sleepFor,       // sleep DURATION
	"print":     printText,      // print TEXT: prints the line TEXT; print TEXT N: prints it N times, for N = -1 without end
	"exit":      exitWithCode,   // exit CODE
	"interrupt": awaitInterrupt, // prints "up", waits for SIGINT and prints "interrupted"
	"alloc":     allocateMemory, // alloc MIB [DURATION]: uses this much memory, prints "allocated" and sleeps
	"map":       mapFile,        // map FILE: prints the file, which it maps into memory
	"fill":      fillFile,       // fill FILE MIB: writes a file of this size
	"run":       runProgram,     // run PROGRAM ARG…: starts the program, waits for it and has its exit code
	"script":    runScript,      // script FILE: runs each line after the first as a program with arguments
	"fork":      forkSleepers,   // fork N DURATION: starts N processes that sleep, prints "forked" and ends
	"zombie":    keepZombie,     // zombie: has a child that ended, prints "up" and sleeps
	"daemon":    startDaemon,    // daemon PROGRAM ARG…: starts the program in a session of its own with its standard streams, prints "up" and ends
	"headless":  endFirstThread, // headless FILE: appends to the file without end, while its first thread has ended
	"running":   countRunning,   // running NAME: prints how many processes of this name have not ended
	"connect":   connectTo,      // connect [udp:]HOST:PORT: connects, prints "connected" and what the peer sends until it closes
	"listen":    listenOn,       // listen HOST:PORT [TEXT]: prints the address, sends TEXT to each connection and closes it
	"get":       getURL,         // get URL: prints the body; exit code 22 and "status N" on standard error for 400 and above
	"serve":     serveHTTP,      // serve HOST:PORT TEXT: prints the address and answers each HTTP request with TEXT
}

func init() { runtime.LockOSThread() } // main runs in the first thread

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "testprogram: unknown command %q\n", os.Args[1:])
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "testprogram:", err)
		os.Exit(1)
	}
}

func sleepFor(args []string) error {
	d, err := time.ParseDuration(args[0])
	time.Sleep(d)
	return err
}

func printText(args []string) error {
	times := 1
	if len(args) > 1 {
		times, _ = strconv.Atoi(args[1])
	}
	for i := 0; i != times; i++ {
		if _, err := fmt.Println(args[0]); err != nil {
			return err
		}
	}
	return nil
}

func exitWithCode(args []string) error {
	code, err := strconv.Atoi(args[0])
	if err == nil {
		os.Exit(code)
	}
	return err
}

func awaitInterrupt([]string) error {
	came := make(chan os.Signal, 1)
	signal.Notify(came, os.Interrupt)
	fmt.Println("up")
	<-came
	fmt.Println("interrupted")
	return nil
}

func allocateMemory(args []string) error {
	mib, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	memory, err := syscall.Mmap(-1, 0, mib<<20, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	fmt.Println("allocated")
	if len(args) > 1 {
		return sleepFor(args[1:])
	}
	return nil
}

func mapFile(args []string) error {
	file, err := os.Open(args[0])
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	content, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(content)
	return err
}

func fillFile(args []string) error {
	file, err := os.Create(args[0])
	if err != nil {
		return err
	}
	mib, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for block := make([]byte, 1<<20); mib > 0; mib-- {
		if _, err := file.Write(block); err != nil {
			return err
		}
	}
	return file.Close()
}

// newCommand returns a command with the standard streams of this process.
func newCommand(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

func runProgram(args []string) error {
	err := newCommand(args...).Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		os.Exit(ended.ExitCode())
	}
	return err
}

func runScript(args []string) error {
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n")[1:] {
		if err := runProgram(strings.Fields(line)); err != nil {
			return err
		}
	}
	return nil
}

func forkSleepers(args []string) error {
	n, err := strconv.Atoi(args[0])
	for range n {
		if err := newCommand("/proc/self/exe", "sleep", args[1]).Start(); err != nil {
			return err
		}
	}
	fmt.Println("forked")
	return err
}

func keepZombie([]string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	child := exec.Command("/proc/self/exe", "exit", "0")
	child.Stdout = write
	if err := child.Start(); err != nil {
		return err
	}
	write.Close()
	if _, err := io.Copy(io.Discard, read); err != nil { // the pipe's other end closes when the child ends
		return err
	}
	fmt.Println("up")
	return sleepFor([]string{"1000s"})
}

func startDaemon(args []string) error {
	cmd := newCommand(args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Println("up")
	return nil
}

func endFirstThread(args []string) error {
	go func() {
		for ; ; time.Sleep(10 * time.Millisecond) {
			file, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				panic(err)
			}
			_, _ = file.WriteString(".")
			file.Close()
		}
	}()
	time.Sleep(50 * time.Millisecond) // other threads are there
	_, _, err := syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	return err
}

func countRunning(args []string) error {
	count := 0
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, found := strings.Cut(string(text), " ("+args[0]+") ")
		if found && rest[0] != 'Z' && rest[0] != 'X' {
			count++
		}
	}
	fmt.Println(count)
	return err
}

func connectTo(args []string) error {
	network, address := "tcp", args[0]
	if rest, ok := strings.CutPrefix(address, "udp:"); ok {
		network, address = "udp", rest
	}
	conn, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return err
	}
	fmt.Println("connected")
	if network == "udp" {
		return conn.Close()
	}
	_, err = io.Copy(os.Stdout, conn)
	return err
}

func listenOn(args []string) error {
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, strings.Join(args[1:], " "))
		if err := errors.Join(err, conn.Close()); err != nil {
			return err
		}
	}
}

// getURL uses the proxy and the certificates that the environment names.
func getURL(args []string) error {
	answer, err := http.Get(args[0])
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode >= 400 {
		fmt.Fprintln(os.Stderr, "status", answer.StatusCode)
		os.Exit(22)
	}
	return nil
}

func serveHTTP(args []string) error {
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, args[1])
	}))
}
