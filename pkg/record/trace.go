// SPDX-License-Identifier: Apache-2.0

package record

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// A Trace is where a run's spans belong.
type Trace struct {
	ID     [16]byte
	Parent [8]byte // of the span that the run is a part of; zero for none
}

var traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

// TraceOf is the trace that the environment's TRACEPARENT names, as W3C Trace Context
// writes it, or when there is none, or none that is valid, one made of the run's id: the
// same each time.
func TraceOf(parent, run string) Trace {
	if t, ok := joined(parent); ok {
		return t
	}
	var t Trace
	sum := sha256.Sum256([]byte("fumehood trace\x00" + run))
	copy(t.ID[:], sum[:])
	return t
}

func joined(parent string) (t Trace, ok bool) {
	m := traceparent.FindStringSubmatch(parent)
	if m == nil || m[1] == "ff" || m[1] == "00" && m[4] != "" {
		return t, false
	}
	_, _ = hex.Decode(t.ID[:], []byte(m[2])) // the pattern says that they are hex
	_, _ = hex.Decode(t.Parent[:], []byte(m[3]))
	return t, t.ID != [16]byte{} && t.Parent != [8]byte{}
}

// A Span is what of a run a span stands for.
type Span string

// The spans of a run, and of each of its proposals.
const (
	SpanRun     Span = "run"
	SpanTask    Span = "proposal"
	SpanDecide  Span = "decide"
	SpanExecute Span = "execute"
)

// SpanID is the id of a span of run: the same each time. Of SpanRun entry counts nothing,
// of the others it is the decision's entry.
func SpanID(run string, span Span, entry int64) [8]byte {
	if span == SpanRun {
		entry = 0
	}
	var id [8]byte
	sum := sha256.Sum256([]byte("fumehood span\x00" + run + "\x00" + string(span) + "\x00" + number(entry)))
	copy(id[:], sum[:])
	return id
}
