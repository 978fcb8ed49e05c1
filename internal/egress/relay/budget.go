// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"sync"
	"sync/atomic"
)

// budgets count the bytes sent in the whole run: in total, and for each name.
type budgets struct {
	all  atomic.Int64
	mu   sync.Mutex
	sent map[string]*atomic.Int64
}

// counterOf returns name's counter, which all its connections share.
func (b *budgets) counterOf(name string) *atomic.Int64 {
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
