// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// An Answer is a set with a meaning at a decision point, whose members rules make.
type Answer struct {
	Set         string `json:"set"`
	Keys        string `json:"keys"`   // of each member, an object; those that it may lack are in brackets
	Policy      string `json:"policy"` // the flags of the policies whose rules count
	Description string `json:"description"`
}

// The policies whose rules count, by the flag that passes them.
const (
	ofAll    = "all"
	ofHosts  = "hosts, organization, granting"
	ofOrg    = "organization, granting"
	ofNoRepo = "organization"
)

// answers are the sets, by name or, where that says more, by point and name. A test has one for each set, and compares
// Policy with what module.IsWidening says.
var answers = map[string]Answer{
	"deny":  {Policy: ofAll, Description: "does not happen, whatever allows it; text is the part of the command that is shown"},
	"ask":   {Policy: ofAll, Description: "happens only if a person approves it"},
	"allow": {Policy: ofOrg, Description: "may happen, unless a rule denies it or asks"},
	"limits": {Policy: ofAll,
		Description: "maximum for the command; the smallest counts, and granting policies set what others lower"},
	"env":     {Policy: ofOrg, Description: "name is one of the variables that the proposal requests, which its command gets"},
	"network": {Policy: ofHosts, Description: "host is what the command may reach: HOST, *.HOST, HOST:PORT or registry:NAME"},
	"exec": {Policy: ofOrg, Description: "kind is what the command may start besides the programs of the root file system: " +
		"built (what it built, and the repository's own), trace (debuggers), localhost (clients of a network, on loopback), compose (docker compose config)"},
	"cache":            {Policy: ofOrg, Description: "its result depends on nothing but its inputs, so an earlier one may be used"},
	module.SetOverride: {Policy: ofNoRepo, Description: "rule of the default has no effect (effect allow), or asks (effect ask)"},
	"note":             {Policy: ofAll, Description: "a finding for the report"},
	"intercept":        {Policy: ofAll, Description: "the gateway ends TLS, so that requests are decided"},
	"budget":           {Policy: ofAll, Description: "maximum bytes that are sent to the name in the whole run; the smallest counts"},
	"many_names":       {Policy: ofHosts, Description: "a command may look up 4,096 names below a wildcard, instead of 64 in the whole run"},
	"private":          {Policy: ofHosts, Description: "the name may have an address of a private network"},
	"raw":              {Policy: ofHosts, Description: "bytes that are neither TLS nor HTTP are forwarded unread, also what follows the request for a WebSocket"},
	"filter":           {Policy: ofAll, Description: "requests that the gateway can read are searched for secrets"},
	"redact":           {Policy: ofHosts, Description: "secrets that filter finds in a request are replaced, instead of the request being refused"},

	module.PointOutput + " redact": {Policy: ofAll,
		Description: "what the detector secret found is replaced, or without secret what any found"},
	module.PointExec + " ask":    {Policy: ofAll, Description: "denies: no person can be asked when a program starts"},
	module.PointTrigger + " ask": {Policy: ofAll, Description: "denies: no person can be asked"},
}

// ListAnswers are the sets with a meaning at a decision point. "fumehood." may be omitted from the point. An error is a
// *proposal.StopError.
func ListAnswers(point string) (list []Answer, err error) {
	name, err := pointOf(point)
	if err != nil {
		return nil, err
	}
	for _, set := range module.Sets(name) {
		if set == "programs" { // names for suggestions
			continue
		}
		a, own := answers[name+" "+set]
		if !own {
			a = answers[set]
		}
		a.Set, a.Keys = set, memberKeys(name, set)
		list = append(list, a)
	}
	return list, nil
}

// memberKeys are the keys of a set's members.
func memberKeys(point, set string) string {
	switch {
	case set == "limits":
		return "rule, and one or more of " + strings.Join(module.LimitKeys, ", ")
	case set == "budget":
		return "rule, bytes"
	case set == "redact" && point == module.PointEgress:
		return "rule" // see readMember
	}
	k, _ := module.MemberKeys(set)
	keys := slices.Clone(k.Must)
	for _, may := range k.May {
		keys = append(keys, "["+may+"]")
	}
	return strings.Join(keys, ", ")
}

// WriteAnswers writes answers to w as a table: set, keys, policies, description.
func WriteAnswers(w io.Writer, list []Answer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, a := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", a.Set, a.Keys, a.Policy, a.Description)
	}
	return table.Flush()
}
