// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// JSON returns r as a fumehood.report/v1 document, indented, ending in a newline.
//
// An empty Schema is filled in, any other than ours is an error. Hidden characters
// are written as \u escapes and no line is a workflow command, so that the document
// may be printed, yet decodes to exactly what it was; only bytes in text that are
// not UTF-8 become U+FFFD.
func JSON(r proposal.Report) ([]byte, error) {
	if r.Schema == "" {
		r.Schema = proposal.ReportSchema
	}
	if r.Schema != proposal.ReportSchema {
		return nil, fmt.Errorf("invalid report schema %q: want %q", r.Schema, proposal.ReportSchema)
	}
	if r.Records == nil {
		r.Records = []proposal.Record{}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write report: %w", err)
	}
	return append(inert(data), '\n'), nil
}

// inert escapes, in a JSON document, what must not reach a terminal or the
// runner's log reader. Such characters stand only inside strings, where an escape
// means the same.
func inert(data []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(data))
	for i := 0; i < len(data); {
		if data[i] < utf8.RuneSelf {
			switch {
			case data[i] == '[' && bytes.HasSuffix(data[:i], []byte("##")), data[i] == 0x7f:
				writeEscape(&out, rune(data[i]))
			default:
				out.WriteByte(data[i])
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		if text.Hidden(r) {
			writeEscape(&out, r)
		} else {
			out.Write(data[i : i+size])
		}
		i += size
	}
	return out.Bytes()
}

func writeEscape(out *bytes.Buffer, r rune) {
	if r > 0xFFFF {
		r -= 0x10000
		fmt.Fprintf(out, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		return
	}
	fmt.Fprintf(out, `\u%04x`, r)
}
