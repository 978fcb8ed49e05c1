// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A system call takes ten times as long here as on Linux, and os.ReadFile makes eight. So what
// is read of /proc after each command is read with as few as possible.

// A process is one line of the process table.
type process struct {
	id, parent, uid int
	dead            bool // a zombie, or gone
	headless        bool // its first thread has ended, and others have not
	stopped         bool // no thread runs; if headless, that is not known
	waiting         bool // no thread runs, and some may wait for a child of vfork, which gVisor shows as disk sleep
}

// isWhole reports whether p is alive, with its first thread. A headless process is never
// spared: gVisor does not list its threads.
func (p process) isWhole() bool { return !p.dead && !p.headless }

// listProcesses lists the other processes, with their users if asked.
func listProcesses(users bool) ([]process, error) {
	names, err := otherProcessIDs()
	if err != nil {
		return nil, err
	}
	list := make([]process, 0, len(names))
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil {
			return nil, err
		}
		p := readProcess(id)
		if users && !p.dead {
			p.uid = onlyUser(string(procFile(name + "/status")))
		}
		list = append(list, p)
	}
	return list, nil
}

// readProcess returns what /proc says about a process. One that cannot be read is gone.
func readProcess(id int) process {
	p := process{id: id, uid: -1, dead: true}
	name := strconv.Itoa(id)
	fields := fieldsOf(procFile(name + "/stat"))
	if len(fields) <= numThreads {
		return p
	}
	p.parent, _ = strconv.Atoi(fields[1])
	threads, _ := strconv.Atoi(fields[numThreads])
	ended := strings.Contains("ZX", fields[0])
	p.dead, p.headless = ended && threads <= 1, ended && threads > 1
	p.stopped = fields[0] == "T" && (threads == 1 || hasOnlyThreads(name, "TZX"))
	p.waiting = !p.stopped && strings.Contains("TD", fields[0]) && (threads == 1 || hasOnlyThreads(name, "TDZX"))
	return p
}

// numThreads is the index of that field of a stat file after the state.
const numThreads = 17

// hasOnlyThreads reports whether all threads of a process except for the first have one of the states.
func hasOnlyThreads(id, states string) bool {
	proc, err := procDir()
	if err != nil {
		return false
	}
	dir, err := syscall.Openat(proc, id+"/task", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return false // it has just ended: look again
	}
	defer syscall.Close(dir)
	threads, err := namesIn(dir)
	return err == nil && !slices.ContainsFunc(threads, func(thread string) bool {
		fields := fieldsOf(fileAt(dir, thread+"/stat"))
		return thread != id && (len(fields) == 0 || !strings.Contains(states, fields[0]))
	})
}

var procDir = sync.OnceValues(func() (int,
	error) {
	return syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
})

// procFile is fileAt for a file of /proc.
func procFile(name string) []byte {
	dir, err := procDir()
	if err != nil {
		return nil
	}
	return fileAt(dir, name)
}

// otherProcessIDs lists the ids of the other processes, including zombies.
func otherProcessIDs() ([]string, error) {
	dir, err := procDir()
	if err != nil {
		return nil, err
	}
	if _, err := syscall.Seek(dir, 0, 0); err != nil {
		return nil, err
	}
	names, err := namesIn(dir)
	self := strconv.Itoa(os.Getpid())
	return slices.DeleteFunc(names, func(name string) bool {
		return name[0] < '0' || name[0] > '9' || name == self
	}), err
}

// namesIn lists the rest of an open directory.
func namesIn(dir int) (names []string, err error) {
	var buf [8 << 10]byte
	for {
		n, err := syscall.ReadDirent(dir, buf[:])
		if err != nil || n <= 0 {
			return names, err
		}
		_, _, names = syscall.ParseDirent(buf[:n], -1, names)
	}
}

// fileAt returns what one read returns of a file, which is all of a process's files, or
// nothing.
func fileAt(dir int, name string) []byte {
	fd, err := syscall.Openat(dir, name, syscall.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	var buf [4 << 10]byte
	n, err := syscall.Read(fd, buf[:])
	if err != nil {
		return nil
	}
	return bytes.Clone(buf[:n])
}

// fieldsOf returns the fields of a stat file from the state on. They follow the last ')',
// because a program chooses its own name.
func fieldsOf(stat []byte) []string {
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// onlyUser returns the user of a process whose real, effective, saved and file system
// users are the same, or -1.
func onlyUser(status string) int {
	for line := range strings.Lines(status) {
		words := strings.Fields(line)
		if len(words) != 5 || words[0] != "Uid:" {
			continue
		}
		if slices.Equal(words[1:4], words[2:5]) {
			if uid, err := strconv.Atoi(words[1]); err == nil {
				return uid
			}
		}
		return -1
	}
	return -1
}
