// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/fumehood/fumehood/internal/kit/text"

// outputShares divides the room for outputs, first among commands and then among the
// streams of each command.
type outputShares struct {
	commands [][]*output
}

// requestRoom adds an output. Outputs of one command must be added one after another.
func (s *outputShares) requestRoom(o *output) {
	if n := len(s.commands); n > 0 && s.commands[n-1][0].record == o.record {
		s.commands[n-1] = append(s.commands[n-1], o)
		return
	}
	s.commands = append(s.commands, []*output{o})
}

// divideRoom gives every output its minimum and a share of the remaining room.
func (s *outputShares) divideRoom(room int) {
	wants := make([]int, len(s.commands))
	for i, outputs := range s.commands {
		for _, o := range outputs {
			wants[i] += o.natural - o.min
			room -= o.min
		}
	}
	for i, share := range text.DivideRoom(wants, room) {
		streams := make([]int, len(s.commands[i]))
		for j, o := range s.commands[i] {
			streams[j] = o.natural - o.min
		}
		for j, part := range text.DivideRoom(streams, share) {
			s.commands[i][j].share = s.commands[i][j].min + part
		}
	}
}
