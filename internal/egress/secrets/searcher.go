// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"io"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/kit/cputime"
)

const (
	window  = MaxBody // bytes of a stream that are searched at once
	overlap = 8 << 10 // of two windows: a secret up to this long is found at any position
	maxIn   = 8 << 10 // finds in one window; more are merged into one
)

// The time limit for searching one stream: ten times what a slow machine needs for ordinary
// text. The rest of a stream that takes longer is not written.
const (
	minPatience = 3 * time.Second
	pace        = 5 << 20 // bytes per second
)

// A searcher replaces text that looks like a secret in the text written to it.
type searcher struct {
	scanner *Scanner
	to      io.Writer
	keep    func(rule string) bool
	count   func(rule, form string)

	patience time.Duration // processor time for a short stream
	live     bool          // text is written as soon as it can be: see Live
	held     []byte
	done     int           // bytes at the beginning of held that are written already
	size     int64         // total bytes written
	spent    time.Duration // processor time used so far
	spoil    bool          // the time is up
}

// Write searches whole windows.
func (s *searcher) Write(p []byte) (int, error) {
	n := len(p)
	s.size += int64(n)
	for len(p) > 0 && !s.spoil {
		take := min(len(p), window-len(s.held))
		s.held, p = append(s.held, p[:take]...), p[take:]
		if len(s.held) == window {
			if err := s.writeBefore(window - overlap); err != nil {
				return 0, err
			}
		}
	}
	if s.live && !s.spoil {
		return n, s.writeCompleteLines()
	}
	return n, nil
}

// Close searches and writes the rest.
func (s *searcher) Close() error {
	if s.spoil || len(s.held) == s.done {
		return nil
	}
	return s.writeBefore(len(s.held))
}

// writeBefore writes the held text before offset end, or before a find that continues after it.
func (s *searcher) writeBefore(end int) error {
	spans := s.searchHeld()
	if s.spoil {
		s.held = nil
		s.count(Unscanned, "plain")
		_, err := io.WriteString(s.to, markerFor(Unscanned)+"\n")
		return err
	}
	var out []byte // what was held before the text at offset at, replaced
	at := s.done
	for _, f := range spans {
		if f.start = max(f.start, s.done); f.start >= end {
			break
		}
		if f.end <= s.done {
			continue
		}
		if f.end > end && f.start > s.done && end < len(s.held) {
			end = f.start
			break
		}
		out = append(out, s.held[at:f.start]...)
		out = append(out, markerFor(f.rule)...)
		s.count(f.rule, "plain")
		at = f.end
	}
	end = max(at, end)
	if len(out) == 0 {
		out = s.held[at:end] // nothing was replaced: no copy
	} else {
		out = append(out, s.held[at:end]...)
	}
	_, err := s.to.Write(out)
	kept := end
	if s.live {
		kept = max(0, end-context)
	}
	s.held, s.done = append(s.held[:0], s.held[kept:]...), end-kept
	return err
}

// searchHeld finds secrets in the held text, not overlapping, unless the time is up.
func (s *searcher) searchHeld() []secretFind {
	left := s.patience + time.Duration(s.size)*time.Second/pace - s.spent
	clock := cputime.Start()
	spans := s.scanner.textSpans(string(s.held), maxIn, left)
	s.spent += clock.Stop()
	spans = slices.DeleteFunc(spans, func(f secretFind) bool {
		s.spoil = s.spoil || f.rule == Unscanned
		return f.start >= f.end || s.keep != nil && s.keep(f.rule)
	})
	return mergeOverlapping(spans)
}

// mergeOverlapping merges finds that overlap. A rule for a specific kind of secret takes precedence over
// the generic one.
func mergeOverlapping(spans []secretFind) []secretFind {
	slices.SortStableFunc(spans, func(a, b secretFind) int { return a.start - b.start })
	var list []secretFind
	for _, f := range spans {
		if len(list) == 0 || f.start >= list[len(list)-1].end {
			list = append(list, f)
			continue
		}
		last := &list[len(list)-1]
		last.end = max(last.end, f.end)
		if last.rule == generic {
			last.rule = f.rule
		}
	}
	return list
}

// markerFor returns the replacement for a find of rule.
func markerFor(rule string) string { return marker + rule + "]" }
