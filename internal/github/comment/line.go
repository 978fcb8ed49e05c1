// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	lineStart = "<!-- fumehood:state "
	lineEnd   = " -->"
	maxLine   = 28000 // units
)

var errMalformedState = errors.New("malformed state")

// version is the format's. A state of another version is treated as absent.
const version = 2

// encodedState is a State as encoded. The order of its fields is part of the format.
type encodedState struct {
	Version  int              `json:"v"`
	Sections []encodedSection `json:"sections,omitempty"`
	Omitted  *OmittedSections `json:"omitted,omitempty"`
	Earlier  []encodedResult  `json:"earlier,omitempty"`
	Starts   [][2]int         `json:"starts,omitempty"` // run id and day
	Dropped  *Dropped         `json:"dropped,omitempty"`
	Notice   *AnsweredComment `json:"notice,omitempty"`
	Review   *Reviewed        `json:"review,omitempty"`
}

type encodedSection struct {
	Source
	encodedResult
	Mark       string    `json:"mark"`
	Title      string    `json:"title"`
	Pending    []Pending `json:"pending,omitempty"`
	AllPending bool      `json:"all_pending,omitempty"`
	Approved   []string  `json:"approved,omitempty"`
}

type encodedResult struct {
	Stamp
	Conclusion string `json:"said"`
	Totals     [9]int `json:"totals"`
}

// encodeState returns s as the comment's second line, without the newline. If the
// line is too long, the oldest starts are counted instead of listed, and then the
// oldest results are left out.
func encodeState(s State) (string, error) {
	if err := s.check(); err != nil {
		return "", err
	}
	for {
		line := formatStateLine(s)
		switch {
		case text.CountUnits(line) <= maxLine:
			return line, nil
		case len(s.Starts) > 0:
			s.Dropped = Dropped{Count: s.Dropped.Count + 1, Through: s.Starts[0].RunID}
			s.Starts = s.Starts[1:]
		case len(s.Earlier) > 0:
			s.Earlier = s.Earlier[:len(s.Earlier)-1]
		default:
			return "", fmt.Errorf("%w: more than %d units", errMalformedState, maxLine)
		}
	}
}

func formatStateLine(s State) string {
	w := encodedState{Version: version, Omitted: s.Omitted, Review: s.Review}
	for _, x := range s.Sections {
		w.Sections = append(w.Sections,
			encodedSection{x.Source, encodeResult(x.Result), x.Mark, x.Title, x.Pending, x.AllPending, x.Approved})
	}
	for _, r := range s.Earlier {
		w.Earlier = append(w.Earlier, encodeResult(r))
	}
	for _, start := range s.Starts {
		w.Starts = append(w.Starts, [2]int{int(start.RunID), start.Day})
	}
	if s.Dropped != (Dropped{}) {
		w.Dropped = &s.Dropped
	}
	if s.Notice != (AnsweredComment{}) {
		w.Notice = &s.Notice
	}
	data, err := json.Marshal(w) // with < and > escaped
	if err != nil {
		panic("comment: internal error: " + err.Error())
	}
	// A minus occurs only in strings, since no number here is negative, so "--" can
	// be escaped.
	return lineStart + strings.ReplaceAll(string(data), "--", `-\u002d`) + lineEnd
}

// decodeState accepts only what encodeState writes: encoding its result again gives
// the same line.
func decodeState(line string) (State, error) {
	data, found := strings.CutPrefix(line, lineStart)
	data, closed := strings.CutSuffix(data, lineEnd)
	if !found || !closed || text.CountUnits(line) > maxLine {
		return State{}, errMalformedState
	}
	var w encodedState
	decoder := json.NewDecoder(strings.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&w); err != nil || w.Version != version {
		return State{}, errMalformedState
	}
	if _, err := decoder.Token(); err != io.EOF {
		return State{}, errMalformedState
	}
	s := w.decodeState()
	if s.check() != nil || formatStateLine(s) != line {
		return State{}, errMalformedState
	}
	return s, nil
}

func (w encodedState) decodeState() State {
	s := State{Omitted: w.Omitted, Review: w.Review}
	for _, x := range w.Sections {
		s.Sections = append(s.Sections,
			Section{Source: x.Source, Result: x.decodeResult(), Mark: x.Mark, Title: x.Title, Pending: x.Pending,
				AllPending: x.AllPending, Approved: x.Approved})
	}
	for _, r := range w.Earlier {
		s.Earlier = append(s.Earlier, r.decodeResult())
	}
	for _, start := range w.Starts {
		s.Starts = append(s.Starts, Start{RunID: int64(start[0]), Day: start[1]})
	}
	if w.Dropped != nil {
		s.Dropped = *w.Dropped
	}
	if w.Notice != nil {
		s.Notice = *w.Notice
	}
	return s
}

func encodeResult(r Result) encodedResult {
	t := r.Totals
	return encodedResult{r.Stamp, r.Conclusion,
		[9]int{t.Proposed, t.Allowed, t.Denied, t.Asked, t.Succeeded, t.Failed, t.CouldNotRun, t.FailedBefore,
			t.NotRun}}
}

func (s encodedResult) decodeResult() Result {
	t := s.Totals
	return Result{s.Stamp, s.Conclusion, proposal.Totals{
		Proposed: t[0], Allowed: t[1], Denied: t[2], Asked: t[3], Succeeded: t[4], Failed: t[5], CouldNotRun: t[6],
		FailedBefore: t[7], NotRun: t[8],
	}}
}
