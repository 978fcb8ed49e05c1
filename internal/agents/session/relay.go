// SPDX-License-Identifier: Apache-2.0

package session

import (
	"io"
	"sync"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Relay is the standard error of a session's process. What is printed while clients wait for set-up, which
// takes minutes, they print, too. It is safe for concurrent use.
type Relay struct {
	w       io.Writer
	mu      sync.Mutex
	waiting map[int]func(proposal.Chunk)
	count   int
}

// NewRelay returns a Relay that prints to w.
func NewRelay(w io.Writer) *Relay { return &Relay{w: w, waiting: map[int]func(proposal.Chunk){}} }

// Write prints data.
func (r *Relay) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, show := range r.waiting {
		show(proposal.Chunk{Stream: proposal.ChunkStderr, Data: data})
	}
	return r.w.Write(data)
}

// addClient has show receive what is printed until forget is called; a nil show receives nothing.
func (r *Relay) addClient(show func(proposal.Chunk)) (forget func()) {
	if r == nil || show == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	id := r.count
	r.waiting[id] = show
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, id)
	}
}
