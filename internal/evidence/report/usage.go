// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// sources describe what measured a figure.
var sources = map[string]string{
	"clock": "fumehood&#39;s clock", "cgroup": "the host&#39;s cgroup, whole sandbox", "sandbox": "gVisor",
}

// usageText lists the known figures, grouped by source.
func usageText(u proposal.Usage) string {
	pieces := map[string][]string{}
	var order []string
	for _, f := range []struct {
		proposal.Figure
		before, after string
		show          func(int64) string
	}{
		{u.Wall, "", "", formatMilliseconds},
		{u.CPUUser, "CPU ", " user", formatMilliseconds},
		{u.CPUSystem, "", " system", formatMilliseconds},
		{u.PeakMemory, "peak memory ", "", func(n int64) string { return formatSize(proposal.Bytes(n)) }},
		{u.Processes, "processes ", "", text.FormatCount},
		{u.Written, "written ", "", func(n int64) string { return formatSize(proposal.Bytes(n)) }},
	} {
		if f.Source == "" {
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
			name = formatCode(source, 40)
		}
		order[i] = strings.Join(pieces[source], ", ") + " (" + name + ")"
	}
	return strings.Join(order, "; ")
}
