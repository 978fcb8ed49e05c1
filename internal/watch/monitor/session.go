// SPDX-License-Identifier: Apache-2.0

package monitor

// TraceSession is the name of the trace session that TraceConfig describes: gVisor accepts no other.
const TraceSession = "Default"

// A Point is a point of gVisor's kernel that a trace session has, as runsc reads it.
type Point struct {
	Name    string   `json:"name"`
	Context []string `json:"context_fields,omitempty"`
}

// A Sink receives the points of a trace session, as runsc reads it.
type Sink struct {
	Name   string         `json:"name"`
	Config map[string]any `json:"config"`
}

// PointsOf returns the points with these names.
func PointsOf(names ...string) []Point {
	points := make([]Point, len(names))
	for i, name := range names {
		points[i].Name = name
	}
	return points
}

// TraceConfig returns what the file must have, as JSON, that runsc's flag --pod-init-config names. The
// format is that of pkg/sentry/seccheck in gVisor. The sinks are called in order.
func TraceConfig(points []Point, sinks ...Sink) any {
	type session struct {
		Name   string  `json:"name"`
		Points []Point `json:"points"`
		Sinks  []Sink  `json:"sinks"`
	}
	return map[string]session{"trace_session": {TraceSession, points, sinks}}
}
