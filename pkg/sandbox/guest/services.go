// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// services are the servers that live until the sandbox ends. A process is one of them if
// keep recorded it, or it descends from a recorded one that still lives; and its user is
// one of theirs. They are stopped while no command runs. Commands have other users, so an
// id that is used again can only be another service's.
//
// Interpreters are spared and stopped like services, with all that descends from them,
// while hold names them. They have the commands' user: what runs in a session may harm its
// other commands.
type services struct {
	first int          // of their users
	roots map[int]bool // recorded ones, by process id
	held  map[int]bool // interpreters, by process id
}

// hold makes interpreters of these processes, and of no others.
func (s *services) hold(ids string) error {
	s.held = map[int]bool{}
	for _, word := range strings.Fields(ids) {
		id, err := strconv.Atoi(word)
		if err != nil || id <= 1 {
			return fmt.Errorf("invalid process id %q", word)
		}
		s.held[id] = true
	}
	return nil
}

// interrupt interrupts an interpreter.
func (s *services) interrupt(word string) error {
	id, err := strconv.Atoi(word)
	if err != nil || id <= 1 {
		return fmt.Errorf("invalid process id %q", word)
	}
	return syscall.Kill(id, syscall.SIGINT)
}

// user reports whether a user is one of services.
func (s *services) user(id int) bool { return id >= s.first && id < s.first+MaxServices }

// keep records the processes of services' users that belong to no other process, and kills
// all others.
func (s *services) keep() error {
	list, err := processes()
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.dead || p.parent != os.Getpid() || !s.user(p.uid) {
			continue
		}
		if s.roots == nil {
			s.roots = map[int]bool{}
		}
		s.roots[p.id] = true
	}
	_, err = s.sweep()
	return err
}

// sweep kills every process except for this one and the services, and returns how many
// there were at the start. It returns only when none is left, and when every service is
// stopped, so that nothing happens until resume.
func (s *services) sweep() (int, error) {
	if len(s.roots)+len(s.held) == 0 {
		return sweep()
	}
	left, clean := -1, 0
	for range 2000 {
		// A stopped process does not fork. A fork in progress is stopped by the next round.
		if err := syscall.Kill(-1, syscall.SIGSTOP); err != nil && err != syscall.ESRCH {
			return max(left, 0), err
		}
		found, running, err := s.kill()
		if left < 0 {
			left = found
		}
		if err != nil {
			return left, err
		}
		// The child of a process that ended while the first list was made is in the second.
		if clean++; found > 0 || running {
			clean = 0
		}
		if clean == 2 {
			return left, nil
		}
		time.Sleep(time.Millisecond)
	}
	return max(left, 0), fmt.Errorf("processes are left after SIGKILL or SIGSTOP")
}

// resume lets the services go on: no other process is there.
func (s *services) resume() error {
	if err := syscall.Kill(-1, syscall.SIGCONT); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

// kill kills the processes that are no services. It returns how many it found alive, and
// whether a service has a thread that is not stopped.
func (s *services) kill() (found int, running bool, err error) {
	list, err := processes()
	if err != nil {
		return 0, false, err
	}
	spared := s.spared(list)
	for _, p := range list {
		switch {
		case p.dead:
		case spared[p.id]:
			running = running || !stopped(p.id)
		default:
			found++
			if err := syscall.Kill(p.id, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				return found, running, err
			}
		}
	}
	return found, running, nil
}

// stopped reports whether no thread of a process runs.
func stopped(id int) bool {
	dir := fmt.Sprintf("/proc/%d/task", id)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return false // it has just ended: look again
	}
	return !slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
		fields := fieldsOf(dir + "/" + thread.Name() + "/stat")
		return len(fields) == 0 || !strings.Contains("TZX", fields[0])
	})
}

// spared returns which processes of list are services, and forgets those that have ended.
func (s *services) spared(list []process) map[int]bool {
	spared := map[int]bool{}
	for _, p := range list {
		if !p.dead && (s.user(p.uid) && s.roots[p.id] || s.held[p.id]) {
			spared[p.id] = true
		}
	}
	for id := range s.roots {
		if !spared[id] {
			delete(s.roots, id)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range list {
			if !spared[p.id] && spared[p.parent] && (s.user(p.uid) || len(s.held) > 0) && !p.dead {
				spared[p.id], grown = true, true
			}
		}
	}
	return spared
}

// A process is one line of the process table.
type process struct {
	id, parent, uid int
	dead            bool // a zombie, or gone
}

// processes lists the other processes.
func processes() ([]process, error) {
	names, err := others()
	if err != nil {
		return nil, err
	}
	list := make([]process, 0, len(names))
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil {
			return nil, err
		}
		list = append(list, read(id))
	}
	return list, nil
}

// read returns what /proc says about a process. One that cannot be read is gone.
func read(id int) process {
	p := process{id: id, uid: -1, dead: true}
	fields := fieldsOf(fmt.Sprintf("/proc/%d/stat", id))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
	if err != nil || len(fields) < 2 {
		return p
	}
	p.dead = fields[0] == "Z" || fields[0] == "X"
	p.parent, _ = strconv.Atoi(fields[1])
	p.uid = onlyUser(string(status))
	return p
}

// fieldsOf returns the fields of a stat file from the state on. They follow the last ')',
// because a program chooses its own name.
func fieldsOf(file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
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
