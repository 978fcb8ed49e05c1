// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	shapes "github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// limitAdvice says how to allow a command more than the limit that ended it; "" if no limit did.
// What was granted is in the outcome. Code is in backticks.
func limitAdvice(r proposal.Record) string {
	if r.Result == nil || r.Decision.Grant == nil {
		return ""
	}
	granted := r.Decision.Grant.Limits
	switch r.Result.Status {
	case proposal.TimedOut:
		if r.Result.Limit != "wall "+granted.Wall.String() {
			return "that was left of the run's time; to allow more, set a longer `timeout` in `.github/fumehood.yml`, or propose less"
		}
		if r.Proposal.Timeout == granted.Wall {
			return adviseLine("timeout: "+trimDuration(2*granted.Wall), "in the proposal")
		}
		return adviseLine("limits: {wall: "+trimDuration(2*granted.Wall)+"}", inBoth)
	case proposal.OutOfMemory:
		return adviseLine("limits: {memory: "+packedSize(2*granted.Memory)+"}", inBoth)
	case proposal.ProcessLimit:
		return adviseLine(fmt.Sprintf("limits: {pids: %d}", 2*granted.Pids), inBoth)
	case proposal.DiskLimit:
		return adviseLine("limits: {disk: "+packedSize(2*granted.Disk)+"}", inBoth)
	case proposal.OutputLimit:
		if strings.HasPrefix(r.Result.Limit, "events ") {
			return "start fewer programs"
		}
		return "print less, for example with the tool's quiet option"
	}
	return ""
}

const inBoth = "in the proposal or in `.github/fumehood.yml`"

// settings are the fields that advice names.
var settings = shapes.Shape{Kind: shapes.Object, Fields: []shapes.Field{
	shapes.Optional("limits", shapes.LimitsShape()), shapes.Optional("timeout", shapes.DurationShape("")),
}}

// adviseLine advises a line of YAML, if the reader of proposals and of the configuration takes
// it; it does not take more than the most that can be requested.
func adviseLine(line, where string) string {
	var problems shapes.Problems
	if root := shapes.Read([]byte(line), "advice.yaml", len(line), &problems); root != nil {
		shapes.Check(root, &settings, "", &problems)
	}
	if len(problems.List) > 0 {
		return "more cannot be requested: propose less"
	}
	return fmt.Sprintf("to allow more, set `%s` %s", line, where)
}

// trimDuration formats d without parts that are zero: 20m, not 20m0s.
func trimDuration(d proposal.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// packedSize formats b without a blank.
func packedSize(b proposal.Bytes) string { return strings.ReplaceAll(b.String(), " ", "") }

// formatBackticks returns our own text s in HTML, with code for what is in backticks.
func formatBackticks(s string) string {
	parts := strings.Split(s, "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = formatCode(parts[i], len(parts[i]))
	}
	return strings.Join(parts, "")
}
