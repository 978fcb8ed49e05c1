// SPDX-License-Identifier: Apache-2.0

package split

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
)

// The limits of a file of durations.
const (
	MaxDurationsFile = 256 << 10 // bytes
	maxDurations     = 1000      // entries
	MaxDuration      = 6 * time.Hour
)

var idShape = document.ID("")

const durationsSchema = "fumehood.durations/v1"

// Durations are how long commands took, by the id of their proposal. They say only which part
// of a plan a command is in: see Split.
type Durations map[string]time.Duration

type durationsFile struct {
	Schema       string           `json:"schema"`
	Milliseconds map[string]int64 `json:"milliseconds"`
}

// ReadDurations reads what Durations.JSON made, at most MaxDurationsFile bytes. It is not trusted. The
// error says what is not valid, or why it cannot be read: then nothing of it is used.
func ReadDurations(r io.Reader) (Durations, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxDurationsFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxDurationsFile {
		return nil, fmt.Errorf("invalid durations: more than %d bytes", MaxDurationsFile)
	}
	var f durationsFile
	if strictjson.Decode(data, &f) != nil || f.Schema != durationsSchema {
		return nil, errors.New("invalid durations: not one document of " + durationsSchema)
	}
	d := Durations{}
	for id, ms := range f.Milliseconds {
		if !d.AddDuration(id, time.Duration(min(ms, int64(MaxDuration/time.Millisecond)+1))*time.Millisecond) {
			return nil, fmt.Errorf("invalid durations: want at most %d ids with durations up to %s", maxDurations,
				MaxDuration)
		}
	}
	return d, nil
}

// AddDuration notes that the proposal with an id took a while; the longest counts. It reports false, and
// notes nothing, if the id is not one of a plan, took is not positive or longer than MaxDuration,
// or there are MaxDurations others.
func (d Durations) AddDuration(id string, took time.Duration) bool {
	_, known := d[id]
	var ps document.Problems
	document.Check(&document.Node{Kind: document.Text, Value: id}, idShape, "", &ps)
	if took <= 0 || took > MaxDuration || len(ps.List) > 0 || !known && len(d) >= maxDurations {
		return false
	}
	d[id] = max(d[id], took)
	return true
}

// Took is for Split.
func (d Durations) Took(id string) (time.Duration, bool) {
	took, ok := d[id]
	return took, ok
}

// JSON returns the file that ReadDurations reads, in milliseconds, at least one each.
func (d Durations) JSON() ([]byte, error) {
	f := durationsFile{durationsSchema, map[string]int64{}}
	for id, took := range d {
		f.Milliseconds[id] = max(1, took.Milliseconds())
	}
	return json.Marshal(f)
}
