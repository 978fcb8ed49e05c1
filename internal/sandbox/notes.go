// SPDX-License-Identifier: Apache-2.0

package sandbox

import "sync"

// Notes carries lines that are not the command's own into its error output, while it runs:
// who reads a client's "could not resolve host" there reads the reason before it.
// The zero value is ready for use, by many goroutines at once; nil takes no line.
type Notes struct {
	mu   sync.Mutex
	show func(line string)
}

// Show makes show receive the lines from now on; nil ends that. It returns when no other
// call of show is under way.
func (n *Notes) Show(show func(line string)) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.show = show
}

// Add shows a line, which must not contain a line break. Without a running command it is lost.
func (n *Notes) Add(line string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.show != nil {
		n.show(line)
	}
}
