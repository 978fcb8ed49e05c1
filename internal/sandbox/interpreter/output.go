// SPDX-License-Identifier: Apache-2.0

package interpreter

import "strings"

// A collector passes a cell's messages on as events, within the limits.
type collector struct {
	limits  Limits
	emit    func(Event)
	streams map[Kind]*stream
	events  int
	bytes   int64 // of results
	outcome Outcome
}

// A stream is the output of a cell on stdout or stderr.
type stream struct {
	passed  int64
	tail    []byte
	omitted int64
}

func newCollector(l Limits, emit func(Event)) *collector {
	return &collector{limits: l, emit: emit, streams: map[Kind]*stream{Stdout: {}, Stderr: {}}}
}

// handleMessage handles a message of the running cell.
func (c *collector) handleMessage(m message) {
	switch m.Kind {
	case Stdout, Stderr:
		c.collectOutput(m)
	case Display, Result:
		c.collectResult(m)
	case Exception:
		c.collectFailure(m)
	default:
		c.outcome.Ignored++
	}
}

func (c *collector) emitEvent(e Event) {
	c.events++
	c.emit(e)
}

// collectOutput passes text on until a limit is reached, and from then on keeps the tail.
func (c *collector) collectOutput(m message) {
	s := c.streams[m.Kind]
	if c.events < c.limits.Events && len(s.tail) == 0 && s.omitted == 0 && s.passed+
		int64(len(m.Text)) <= c.limits.Head {
		s.passed += int64(len(m.Text))
		c.emitEvent(Event{Kind: m.Kind, Text: m.Text, Late: m.Late, Omitted: m.Omitted})
		return
	}
	s.omitted += m.Omitted
	s.tail = append(s.tail, m.Text...)
	if extra := len(s.tail) - int(c.limits.Tail); extra > int(c.limits.Tail) {
		s.dropTailBytes(extra)
	}
}

func (s *stream) dropTailBytes(extra int) {
	s.omitted += int64(extra)
	s.tail = append([]byte(nil), s.tail[extra:]...)
}

func (c *collector) collectResult(m message) {
	size := int64(0)
	for mime, text := range m.Data {
		size += int64(len(mime) + len(text))
	}
	if c.outcome.Results >= c.limits.Results || c.bytes+size > c.limits.ResultBytes || c.events >= c.limits.Events {
		c.outcome.ResultsOmitted++
		return
	}
	c.outcome.Results++
	c.bytes += size
	c.emitEvent(Event{Kind: m.Kind, Data: m.Data, FormsOmitted: m.FormsOmitted})
}

// collectFailure passes on the first error of a cell, which is its outcome.
func (c *collector) collectFailure(m message) {
	if c.outcome.Error != nil {
		c.outcome.Ignored++
		return
	}
	c.outcome.Error = &Error{Name: m.Name, Value: clipErrorText(m.Value), Traceback: clipErrorText(m.Traceback)}
	c.emitEvent(Event{Kind: Exception, Error: c.outcome.Error})
}

// clipErrorText bounds a text of an error, which the programs cut to about half of that.
func clipErrorText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}

const maxError = 256 << 10

// finishOutcome passes on the tails.
func (c *collector) finishOutcome() Outcome {
	for _, kind := range []Kind{Stdout, Stderr} {
		s := c.streams[kind]
		if extra := len(s.tail) - int(c.limits.Tail); extra > 0 {
			s.dropTailBytes(extra)
		}
		if len(s.tail) > 0 || s.omitted > 0 {
			c.emitEvent(Event{Kind: kind, Text: strings.ToValidUTF8(string(s.tail), ""), Omitted: s.omitted})
		}
	}
	return c.outcome
}
