// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"sync"
	"sync/atomic"
)

// budgets are the bytes that left in the whole run: all of them, and those for each
// name.
type budgets struct {
	all  atomic.Int64
	mu   sync.Mutex
	sent map[string]*atomic.Int64
}

// of returns the count of name, which is shared by all of its connections.
func (b *budgets) of(name string) *atomic.Int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent == nil {
		b.sent = map[string]*atomic.Int64{}
	}
	if b.sent[name] == nil {
		b.sent[name] = new(atomic.Int64)
	}
	return b.sent[name]
}
