// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	bustedHead = pattern.New(`^(?:Failure|Error) -> \S{1,300} @ \d{1,7}$`)
	luaPlace   = pattern.New(`^([^\s:][^:]{0,300}\.lua):(\d{1,7}): (.{0,900})$`)
	luaRaised  = pattern.New(`^(?:\S{0,200}/)?lua(?:jit|[\d.]{0,5}): ([^\s:][^:]{0,300}\.lua):(\d{1,7}): (.{1,900})$`)
	luaFrame   = pattern.New(`^\t([^\s:\[][^:]{0,300}):(\d{1,7}): in `)
)

// readBusted reads the blocks of busted: the file and the line of the test, its name, and what an
// assertion says at its place.
func readBusted(s *scan) {
	for i := 0; i+2 < len(s.lines); i++ {
		if matchContaining(bustedHead, " -> ", s.lines[i]) == nil {
			continue
		}
		end := s.findLine(i+2, maxBlock, func(t, line string) bool { return t == "" || bustedHead.MatchString(line) })
		f := proposal.Diagnostic{Tool: "busted", Test: strings.TrimSpace(s.lines[i+1])}
		body := s.lines[i+2 : end]
		if m := luaPlace.FindStringSubmatch(s.lines[i+2]); m != nil {
			s.setPlace(&f, place{name: m[1], row: parseNumber(m[2])})
			f.Message = m[3]
		}
		for j, line := range body {
			if j == 1 && strings.HasPrefix(f.Message, "(") {
				f.Message = line // the first line has only the number of values
			}
			if j+1 < len(body) && line == "Passed in:" {
				f.Actual = clipText(body[j+1])
			} else if j+1 < len(body) && line == "Expected:" {
				f.Expected = clipText(body[j+1])
			}
		}
		if f.Message == "" {
			f.Message = lastOf(body)
		}
		s.addReport(rankTest, f)
		i = end - 1
	}
}

// readLua reads an error that ended a program of Lua, and its stack.
func readLua(s *scan) {
	for i, line := range s.lines {
		m := matchContaining(luaRaised, ".lua:", line)
		if m == nil {
			continue
		}
		f := proposal.Diagnostic{Tool: "lua", Message: m[3]}
		var frames []proposal.Frame
		frames = s.appendFrame(frames, place{name: m[1], row: parseNumber(m[2])})
		end := s.findLine(i+1, maxBlock,
			func(t, line string) bool { return t != "stack traceback:" && !strings.HasPrefix(line, "\t") })
		for _, line := range s.lines[i+1 : end] {
			if m := matchContaining(luaFrame, ": in ", line); m != nil {
				if p := (place{name: m[1], row: parseNumber(m[2])}); len(frames) == 0 || frames[0].Line != p.row {
					frames = s.appendFrame(frames, p)
				}
			}
		}
		s.choosePlace(&f, frames)
		s.addReport(rankStack, f)
	}
}
