// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// advice says how to allow a command more than the limit that ended it; "" if no limit did.
// What was granted is in the outcome. Code is in backticks.
func advice(r proposal.Record) string {
	if r.Result == nil || r.Decision.Grant == nil {
		return ""
	}
	granted := r.Decision.Grant.Limits
	switch r.Result.Status {
	case proposal.TimedOut:
		if r.Result.Limit != "wall "+granted.Wall.String() {
			return "that was left of the run's time; to allow more, set a longer `timeout` in `.github/fumehood.yml`, or propose less"
		}
		return wanted("wall", strings.TrimSuffix((2*granted.Wall).String(), "0s"))
	case proposal.OutOfMemory:
		return wanted("memory", (2 * granted.Memory).String())
	case proposal.ProcessLimit:
		return wanted("pids", fmt.Sprint(2*granted.Pids))
	case proposal.DiskLimit:
		return wanted("disk", (2 * granted.Disk).String())
	case proposal.OutputLimit:
		if strings.HasPrefix(r.Result.Limit, "events ") {
			return "start fewer programs"
		}
		return "print less, for example with the tool's quiet option"
	}
	return ""
}

// wanted names a limit where proposers and maintainers can set it.
func wanted(limit, value string) string {
	return fmt.Sprintf("to allow more, set `limits: {%s: %s}` in the proposal or in `.github/fumehood.yml`", limit, strings.ReplaceAll(value, " ", ""))
}

// backticks returns our own text s in HTML, with code for what is in backticks.
func backticks(s string) string {
	parts := strings.Split(s, "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = code(parts[i], len(parts[i]))
	}
	return strings.Join(parts, "")
}
