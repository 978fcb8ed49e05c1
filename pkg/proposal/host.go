// SPDX-License-Identifier: Apache-2.0

package proposal

// The verdicts of a Host.
const (
	VerdictAllowed  = "allowed"
	VerdictRefused  = "refused"  // by policy or by the gateway
	VerdictWatched  = "watched"  // allowed, but a policy on trial would have refused it
	VerdictObserved = "observed" // let through because nothing was enforced
)

// Hosts are the network destinations of a whole run.
type Hosts struct {
	Rows []Host `json:"rows"` // refused ones first; at most 64
	// Omitted counts further rows, and Unlisted the network events whose destination
	// no Observations list. The log has them.
	Omitted  int `json:"omitted,omitempty"`
	Unlisted int `json:"unlisted,omitempty"`
}

// A Host is one destination of a run, with everything that commands did there with one
// verdict. Its texts are untrusted.
type Host struct {
	Host    string `json:"host"`           // the name, or the address if it was not looked up
	Port    int    `json:"port,omitempty"` // 0 for a name that was only looked up
	Verdict string `json:"verdict"`        // a Verdict constant
	Rule    string `json:"rule,omitempty"` // the first that refused it, or would have
	// Commands are IDs of proposals, and Programs are paths, as far as known; at most eight
	// of each. More counts the others.
	Commands []string `json:"commands"`
	Programs []string `json:"programs,omitempty"`
	More     int      `json:"more,omitempty"`
	Sent     int64    `json:"sent"`     // bytes that connections sent
	Received int64    `json:"received"` // bytes that connections received
}

// Destination returns the destination of h: "name:443", "192.0.2.1:22".
func (h Host) Destination() string { return formatDestination(h.Host, "", h.Port) }

// Verdict returns what became of r: a Verdict constant.
func (r Reach) Verdict() string {
	switch {
	case r.Refused:
		return VerdictRefused
	case r.Observed:
		return VerdictObserved
	case r.Watched:
		return VerdictWatched
	}
	return VerdictAllowed
}
