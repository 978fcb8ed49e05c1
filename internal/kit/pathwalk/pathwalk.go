// SPDX-License-Identifier: Apache-2.0

// Package pathwalk follows a path as the kernel does. It decides only the order of the steps;
// what is at each of them is found by the caller, in a file system of its own.
package pathwalk

import (
	"path"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links a path may lead through, as for Linux.
const maxLinks = 40

// Resolve follows name, which is taken as absolute, and returns the path that it leads to, with
// no link in it. It calls look for each step, from the root on, with the path of the step: its
// directory is resolved, the step itself is not. look returns the target if the step is a
// symbolic link, and "" otherwise. An error of look ends the walk; too many links are ELOOP.
func Resolve(name string, look func(step string) (target string, err error)) (string, error) {
	done, rest := "/", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		step := rest[0]
		if rest = rest[1:]; step == "" || step == "." {
			continue
		}
		done = path.Join(done, step)
		target, err := look(done)
		switch {
		case err != nil:
			return "", err
		case target == "":
			continue
		}
		if links++; links > maxLinks {
			return "", syscall.ELOOP
		}
		rest = append(strings.Split(target, "/"), rest...)
		if done = path.Dir(done); path.IsAbs(target) {
			done = "/"
		}
	}
	return done, nil
}
