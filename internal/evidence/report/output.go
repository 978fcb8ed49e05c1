// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// smallOutput is the maximum size, in units, of an output that is not given a fence.
const smallOutput = 160

// An output is one stream of one command. Its length is decided last.
type output struct {
	record  int
	packed  bool   // the files are in an artifact, no longer where they were written
	limit   int    // units of the whole page
	name    string // stdout or stderr, also of the base
	stream  *proposal.Stream
	natural int // units if shown in full, at most limit
	min     int // units of the bare label, or of everything if that is less
	share   int // units that it may use, at least min
}

// measureOutputs returns the outputs of a record's command with their natural length,
// which is limit for anything longer. It costs as much as rendering, so it is done
// once for all levels of detail.
func measureOutputs(r *proposal.Result, record, limit int, packed bool) []*output {
	if r == nil {
		return nil
	}
	var list []*output
	for _, o := range []*output{{name: "stdout", stream: &r.Stdout}, {name: "stderr", stream: &r.Stderr}} {
		if s := o.stream; s.Bytes <= 0 && len(s.Head) == 0 && len(s.Tail) == 0 || s.Withheld != "" {
			continue
		}
		o.record, o.limit, o.packed = record, limit, packed
		o.setLabel(o.name)
		list = append(list, o)
	}
	return list
}

// setLabel names the stream and measures it.
func (o *output) setLabel(name string) {
	o.name = name
	whole, _ := o.tryRender(o.limit)
	o.natural = min(o.limit, text.CountUnits(whole))
	o.min = min(o.natural, text.CountUnits(o.bareLabel()))
}

// renderWithin returns the stream in at most max units, or its bare label.
func (o *output) renderWithin(max int) string {
	if o.natural <= max {
		s, _ := o.tryRender(o.limit)
		return s
	}
	room := max - o.min
	for n := 0; n < 3 && room >= smallOutput; n++ {
		s, frame := o.tryRender(room)
		if text.CountUnits(s) <= max {
			return s
		}
		room = max - frame - 4*n // the number of digits in the label may change
	}
	return o.bareLabel()
}

// tryRender returns the stream with at most room units of its lines, and the number of
// units around them.
func (o *output) tryRender(room int) (s string, frame int) {
	b := text.Excerpt(o.stream.Head, o.stream.Tail, o.stream.Bytes, room)
	s = o.sizeLabel(b, "") + "\n\n" + fencedBlock("text", b.Text) + "\n\n"
	return s, text.CountUnits(s) - b.Units
}

func (o *output) bareLabel() string {
	return o.sizeLabel(text.Block{Omitted: o.stream.Bytes}, ", not shown here") + "\n\n"
}

// sizeLabel gives the size of the stream, what is left out, and where the complete stream is.
func (o *output) sizeLabel(b text.Block, note string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "<p><b>%s</b>, %s%s", o.name, text.Size(o.stream.Bytes), note)
	if b.Omitted > 0 {
		if note == "" {
			fmt.Fprintf(&s, ", %s omitted", text.FormatCount(b.Omitted))
		}
		s.WriteString("; " + o.wholeLocation())
	}
	if b.Colours > 0 {
		fmt.Fprintf(&s, "; color codes removed: %d", b.Colours)
	}
	if b.Commands > 0 {
		fmt.Fprintf(&s, "; <b>workflow commands disabled by a space: %d</b>", b.Commands)
	}
	return s.String() + "</p>"
}

// wholeLocation returns where the complete stream is.
func (o *output) wholeLocation() string {
	file := fileName(o.stream.File, o.packed)
	switch {
	case o.stream.File == "":
		return "the full output was not kept"
	case o.stream.FileBytes < o.stream.Bytes:
		return fmt.Sprintf("the first %s are in %s", text.Size(o.stream.FileBytes), file)
	}
	return "full output in " + file
}

// fileName returns the name of a run's file for a reader: its path if it is where
// it was written, or its bare name in the artifact.
func fileName(name string, packed bool) string {
	if packed {
		return formatCode(path.Base(name), 100) + " in the artifact"
	}
	return formatCode(name, 160)
}
