// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxHosts limits the hosts of a proposal that are looked at.
const maxHosts = 32

// internalName matches names that usually have a private address: a single label, those of
// local networks, and names with a label like corp.
var internalName = pattern.New(`^[^.]+$|\.(local|internal|intranet|lan|home\.arpa|private|test)$|(^|\.)(corp|internal|intranet|intra|svc)\.`)

// privateNotes says of each internal name that p requests, and for which the gateway has no
// private rule, which rule it needs in addition to the grant.
func (v *Adviser) privateNotes(ctx context.Context, p proposal.Proposal) []string {
	var notes []string
	for _, entry := range p.Network[:min(len(p.Network), maxHosts)] {
		name, port, given := strings.Cut(entry, ":")
		if strings.HasPrefix(entry, "registry:") || !internalName.MatchString(name) {
			continue
		}
		x := proposal.Egress{Command: p.ID, Phase: p.Phase, Kind: points.EgressConnect,
			Name:    strings.Replace(name, "*", "x", 1),
			Address: "10.0.0.1", Port: 443, Protocol: "tcp", Grants: []string{entry}}
		if x.Phase == "" {
			x.Phase = proposal.PhaseRun
		}
		if number, err := strconv.Atoi(port); given && err == nil {
			x.Port = number
		}
		notes = append(notes, v.privateNote(ctx, x)...)
	}
	return notes
}

// privateNote is the note for one connection, if it needs one.
func (v *Adviser) privateNote(ctx context.Context, x proposal.Egress) []string {
	d, err := v.engine.Egress(ctx, x)
	if err != nil || d.Private || x.Kind != points.EgressConnect || !internalName.MatchString(x.Name) {
		return nil
	}
	return []string{fmt.Sprintf("%s: if its address is private, the gateway also needs a rule in package fumehood.egress: private contains {\"rule\": \"my.private\"} if input.name == %q", x.Name, x.Name)}
}
