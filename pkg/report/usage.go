// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// sources describe what measured a figure.
var sources = map[string]string{
	proposal.SourceClock: "fumehood&#39;s clock", proposal.SourceCgroup: "the host&#39;s cgroup, whole sandbox", proposal.SourceSandbox: "gVisor",
}

// usage lists the known figures, grouped by source.
func usage(u proposal.Usage) string {
	pieces := map[string][]string{}
	var order []string
	for _, f := range []struct {
		proposal.Figure
		before, after string
		show          func(int64) string
	}{
		{u.Wall, "", "", milliseconds},
		{u.CPUUser, "CPU ", " user", milliseconds},
		{u.CPUSystem, "", " system", milliseconds},
		{u.PeakMemory, "peak memory ", "", func(n int64) string { return size(proposal.Bytes(n)) }},
		{u.Processes, "processes ", "", text.Count},
		{u.Written, "written ", "", func(n int64) string { return size(proposal.Bytes(n)) }},
	} {
		if f.Source == proposal.SourceUnknown {
			continue
		}
		if pieces[f.Source] == nil {
			order = append(order, f.Source)
		}
		pieces[f.Source] = append(pieces[f.Source], f.before+f.show(f.Value)+f.after)
	}
	if len(order) == 0 {
		return "an unknown time"
	}
	for i, source := range order {
		name, known := sources[source]
		if !known {
			name = code(source, 40)
		}
		order[i] = strings.Join(pieces[source], ", ") + " (" + name + ")"
	}
	return strings.Join(order, "; ")
}
