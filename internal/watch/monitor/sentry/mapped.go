// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"sync"

	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/mm"
)

// mappedFiles are the files of overlays that processes could write to through a mapping, by inode. gVisor
// gives a file no new time for that. The zero mappedFiles are ready to use.
type mappedFiles struct {
	mu       sync.Mutex
	listings uint64            // how many have begun
	last     map[uint64]uint64 // the last listing before which a process could write
	live     map[uint64]bool   // processes may have mapped them since that
	over     bool              // there were more than maxMapped
}

const maxMapped = 1 << 16

// add notes that a process maps a file.
func (m *mappedFiles) add(inode uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last, m.live = map[uint64]uint64{}, map[uint64]bool{}
	}
	if _, known := m.last[inode]; !known && len(m.last) >= maxMapped {
		m.over = true
		return
	}
	m.last[inode], m.live[inode] = m.listings+1, true
}

// beginListing begins a listing for init's task t. It reports whether every file is known.
func (m *mappedFiles) beginListing(t *kernel.Task) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listings++
	if len(m.live) == 0 {
		return !m.over
	}
	for inode := range m.live {
		m.last[inode] = m.listings
	}
	m.live = m.findLive(t)
	return !m.over
}

// findLive returns which files of live a process other than init has mapped now.
func (m *mappedFiles) findLive(t *kernel.Task) map[uint64]bool {
	live, seen := map[uint64]bool{}, map[*mm.MemoryManager]bool{}
	for _, other := range t.Kernel().RootPIDNamespace().Tasks() {
		var memory *mm.MemoryManager
		other.WithMuLocked(func(other *kernel.Task) {
			if memory = other.MemoryManager(); memory != nil && (seen[memory] || !memory.IncUsers()) {
				memory = nil
			}
		})
		if memory == nil {
			continue
		}
		seen[memory] = true
		memory.ReadMapsDataInto(t, func(_, _ hostarch.Addr, _ hostarch.AccessType, private string, _ uint64,
			_, _ uint32, inode uint64, _ string) {
			if private == "s" && m.live[inode] {
				live[inode] = true
			}
		})
		memory.DecUsers(t)
	}
	return live
}

// lastListing returns the last listing before which a process could write to a file through a mapping, or 0.
func (m *mappedFiles) lastListing(inode uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[inode]
}
