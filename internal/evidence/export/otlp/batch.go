// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"slices"

	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/fumehood/fumehood/internal/evidence/export"
)

// The maximum number of decisions of each kind; refused and allowed ones are
// counted separately.
const (
	MaxRecords = 2000
	maxBytes   = 2 << 20
)

// A Batch holds the decisions of one run that will be sent. The zero Batch is empty.
type Batch struct {
	Dropped int // decisions left out for lack of room
	records []*logs.LogRecord
	rooms   map[room]*filled
}

type room struct {
	path string
	let  bool // allowed, and no rule objected
}

type filled struct{ records, bytes int }

// Take is Add, to be passed to export.Log and export.Report. It never fails.
func (b *Batch) Take(d export.Decision) error {
	b.Add(d)
	return nil
}

// Add takes d if there is room. It ignores the line that ends a run: the run is a span.
func (b *Batch) Add(d export.Decision) {
	if d.Path == export.PathRun {
		return
	}
	if b.rooms == nil {
		b.rooms = map[room]*filled{}
	}
	of := room{d.Path, d.Result.Effect == export.Allow && !d.Result.Observed}
	if b.rooms[of] == nil {
		b.rooms[of] = &filled{}
	}
	f := b.rooms[of]
	if f.records >= MaxRecords || f.bytes >= maxBytes {
		b.Dropped++
		return
	}
	r := logRecord(d)
	f.records, f.bytes = f.records+1, f.bytes+proto.Size(r)
	b.records = append(b.records, r)
}

// The limits of one request.
const (
	maxOfRequest = 512
	requestBytes = 1 << 20
)

// splitRequests splits list into lists that fit in one request.
func splitRequests[M proto.Message](list []M) [][]M {
	var out [][]M
	for begin := 0; begin < len(list); {
		end, size := begin, 0
		for end < len(list) && end-begin < maxOfRequest && (end == begin || size < requestBytes) {
			size += proto.Size(list[end])
			end++
		}
		out = append(out, slices.Clone(list[begin:end]))
		begin = end
	}
	return out
}
