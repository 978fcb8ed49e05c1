// SPDX-License-Identifier: Apache-2.0

package export

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A Trace identifies the trace of a run's spans.
type Trace struct {
	ID     [16]byte
	Parent [8]byte // the parent span of the run; zero for none
}

var traceparent = pattern.New(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

// TraceOf returns the trace of the environment's TRACEPARENT, in the format of W3C
// Trace Context. If that is missing or invalid, it derives one from the run's id,
// the same each time.
func TraceOf(parent, run string) Trace {
	if t, ok := parseTraceparent(parent); ok {
		return t
	}
	var t Trace
	sum := sha256.Sum256([]byte("fumehood trace\x00" + run))
	copy(t.ID[:], sum[:])
	return t
}

func parseTraceparent(parent string) (t Trace, ok bool) {
	m := traceparent.FindStringSubmatch(parent)
	if m == nil || m[1] == "ff" || m[1] == "00" && m[4] != "" {
		return t, false
	}
	_, _ = hex.Decode(t.ID[:], []byte(m[2])) // the pattern ensures that they are hex
	_, _ = hex.Decode(t.Parent[:], []byte(m[3]))
	return t, t.ID != [16]byte{} && t.Parent != [8]byte{}
}

// A Span is a kind of span.
type Span string

// The spans of a run, and of each of its proposals.
const (
	SpanRun     Span = "run"
	SpanTask    Span = "proposal"
	SpanDecide  Span = "decide"
	SpanExecute Span = "execute"
)

// SpanID returns the id of a span of run, the same each time. entry is the
// decision's log entry; it is ignored for SpanRun.
func SpanID(run string, span Span, entry int64) [8]byte {
	if span == SpanRun {
		entry = 0
	}
	var id [8]byte
	sum := sha256.Sum256([]byte("fumehood span\x00" + run + "\x00" + string(span) + "\x00" + formatNumber(entry)))
	copy(id[:], sum[:])
	return id
}
