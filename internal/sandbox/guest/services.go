// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// serviceSet are the servers that live until the sandbox ends. A process is one of them if
// keep recorded it, or it descends from a recorded one that still lives; and its user is
// one of theirs. They are stopped while no command runs. Commands have other users, so an
// id that is used again can only be another service's.
//
// Interpreters and commands in the background are spared and stopped like services, with all
// that descends from them, while hold names them. They have the commands' user: what runs in a session may harm its
// other commands.
type serviceSet struct {
	first int          // of their users
	roots map[int]bool // recorded ones, by process id
	held  map[int]bool // interpreters, by process id
	// shells are those of held whose children are killed like those of any command.
	shells map[int]bool
}

// setInterpreters makes interpreters of these processes, and of no others. Those after a word "shells"
// are shells.
func (s *serviceSet) setInterpreters(ids string) (err error) {
	all, shells, _ := strings.Cut(ids, "shells")
	if s.shells, err = parseProcessIDs(shells); err != nil {
		return err
	}
	if s.held, err = parseProcessIDs(all); err == nil {
		maps.Copy(s.held, s.shells)
	}
	return err
}

// parseProcessIDs reads process ids.
func parseProcessIDs(ids string) (map[int]bool, error) {
	set := map[int]bool{}
	for _, word := range strings.Fields(ids) {
		id, err := strconv.Atoi(word)
		if err != nil || id <= 1 {
			return map[int]bool{}, fmt.Errorf("invalid process id %q", word)
		}
		set[id] = true
	}
	return set, nil
}

// goOn lets these processes, and what descends from them, go on after a sweep.
func (s *serviceSet) goOn(ids string) error {
	roots, err := parseProcessIDs(ids)
	if err != nil {
		return err
	}
	list, err := listProcesses(true)
	if err != nil {
		return err
	}
	for id := range (&serviceSet{held: roots}).findServices(list) {
		if err := syscall.Kill(id, syscall.SIGCONT); err != nil && err != syscall.ESRCH {
			return err
		}
	}
	return nil
}

// interruptInterpreter interrupts an interpreter.
func (s *serviceSet) interruptInterpreter(word string) error {
	id, err := strconv.Atoi(word)
	if err != nil || id <= 1 {
		return fmt.Errorf("invalid process id %q", word)
	}
	return syscall.Kill(id, syscall.SIGINT)
}

// isServiceUser reports whether a user is one of services.
func (s *serviceSet) isServiceUser(id int) bool { return id >= s.first && id < s.first+MaxServices }

// keepServices records the processes of services' users that belong to no other process, and kills
// all others.
func (s *serviceSet) keepServices() error {
	list, err := listProcesses(true)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.dead || p.parent != os.Getpid() || !s.isServiceUser(p.uid) {
			continue
		}
		if s.roots == nil {
			s.roots = map[int]bool{}
		}
		s.roots[p.id] = true
	}
	_, err = s.killAllButServices()
	return err
}

// killAllButServices kills every process except for this one and the services, and returns how many
// there were at the start. It returns only when none is left, and when every service is
// stopped, so that nothing happens until resume.
func (s *serviceSet) killAllButServices() (int, error) {
	if len(s.roots)+len(s.held) == 0 {
		return killAll()
	}
	left := -1
	for round := range sweepRounds {
		if round >= busyRounds {
			time.Sleep(time.Millisecond)
		}
		list, err := stopAll(len(s.roots) > 0)
		if err != nil {
			return max(left, 0), err
		}
		found, running, err := s.killOthers(list, round >= busyRounds)
		if left < 0 {
			left = found
		}
		if err != nil {
			return left, err
		}
		if found > 0 || running {
			continue
		}
		if new, err := hasNewProcess(list); !new || err != nil {
			return left, err
		}
	}
	return max(left, 0), fmt.Errorf("processes are left after SIGKILL or SIGSTOP")
}

// How often sweep looks, and how often without a pause at first: most processes stop in less
// time than the shortest pause, which takes more than a millisecond in gVisor.
const (
	sweepRounds = 2000
	busyRounds  = 20
)

// stopAll stops all other processes, and lists them.
func stopAll(users bool) ([]process, error) {
	if err := signalAll(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return listProcesses(users)
}

// hasNewProcess stops all processes again, and reports whether one is not in list, all of which were
// seen stopped: the child of a fork that was in progress.
func hasNewProcess(list []process) (bool, error) {
	if err := signalAll(syscall.SIGSTOP); err != nil {
		return true, err
	}
	now, err := otherProcessIDs()
	return slices.ContainsFunc(now, func(name string) bool {
		return !slices.ContainsFunc(list, func(p process) bool { return strconv.Itoa(p.id) == name })
	}), err
}

// resumeServices lets the services go on: no other process is there. Of the shells, it lets only
// those with these ids go on.
func (s *serviceSet) resumeServices(ids string) error {
	wanted, err := parseProcessIDs(ids)
	if err != nil || len(s.shells) == 0 {
		return errors.Join(err, signalAll(syscall.SIGCONT))
	}
	names, err := otherProcessIDs()
	for _, name := range names {
		id, _ := strconv.Atoi(name)
		if s.shells[id] && !wanted[id] {
			continue
		}
		if killed := syscall.Kill(id, syscall.SIGCONT); killed != nil && killed != syscall.ESRCH {
			err = errors.Join(err, killed)
		}
	}
	return err
}

// signalAll sends a signal to every other process.
func signalAll(signal syscall.Signal) error {
	if err := syscall.Kill(-1, signal); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

// killOthers kills the processes of list that are no services. It returns how many it found alive, and
// whether a service has a thread that is not stopped. If late is set, one that waits is stopped if a child of it is,
// which has not started a program yet: its vfork returns when both go on.
func (s *serviceSet) killOthers(list []process, late bool) (found int, running bool, err error) {
	spared := s.findServices(list)
	hasStoppedChild := func(id int) bool {
		return slices.ContainsFunc(list, func(p process) bool { return p.parent == id && p.stopped })
	}
	for _, p := range list {
		switch {
		case p.dead:
		case spared[p.id]:
			running = running || !p.stopped && !(late && p.waiting && hasStoppedChild(p.id))
		default:
			found++
			if err := syscall.Kill(p.id, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				return found, running, err
			}
		}
	}
	return found, running, nil
}

// findServices returns which processes of list are services, and forgets those that have ended.
func (s *serviceSet) findServices(list []process) map[int]bool {
	spared := map[int]bool{}
	for _, p := range list {
		if p.isWhole() && (s.isServiceUser(p.uid) && s.roots[p.id] || s.held[p.id]) {
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
			if !spared[p.id] && spared[p.parent] && !s.shells[p.parent] &&
				(s.isServiceUser(p.uid) || len(s.held) > 0) && p.isWhole() {
				spared[p.id], grown = true, true
			}
		}
	}
	return spared
}
