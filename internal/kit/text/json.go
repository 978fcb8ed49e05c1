// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// EscapeJSON escapes characters in a JSON document that must not reach a terminal or
// the runner's log reader: hidden characters, and those that make a line a workflow
// command. They occur only inside strings, where an escape has the same meaning.
func EscapeJSON(data []byte) []byte {
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
		if IsHidden(r) {
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
