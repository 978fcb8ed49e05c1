// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/fumehood/fumehood/internal/egress"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// checkObserved refuses a network that is only observed where code of strangers, or a secret,
// could use it.
func (o Options) checkObserved() error {
	switch s := o.Subject; {
	case !o.ObserveNetworkUnsafe:
		return nil
	case s.Fork != "" || s.PR != 0 && s.Repository == "":
		return observeError("the code is of a fork, or its origin is not known",
			"run code of the repository itself, or leave out --observe-network")
	case len(o.Credentials) > 0:
		return observeError("credentials are set, and nothing could add them to requests",
			"leave out --credential or --observe-network")
	}
	return nil
}

func observeError(why, hint string) error {
	return &proposal.StopError{Code: "network.observe",
		Message: "cannot run with a network that is only observed: " + why, Hint: hint}
}

// observingOptions returns o for a run whose network is observed: what it leaves was fetched without
// policy, so no later run may use it.
func (o Options) observingOptions() Options {
	if o.ObserveNetworkUnsafe {
		o.Results = Store{}
		if o.Layers.Mode != "off" {
			o.Layers = Store{} // private ones
		}
	}
	return o
}

// onlyObserve changes the options of the gateway of a network that is only observed.
func (n *network) onlyObserve(o egress.Options) egress.Options {
	if n.o.ObserveNetworkUnsafe {
		o.ObserveUnsafe, o.Credentials = true, nil
	}
	return o
}

// noteRefusal notes that x was refused, unless the refusal is only observed.
func (n *network) noteRefusal(x proposal.Egress, d proposal.EgressDecision) {
	if n.o.ObserveNetworkUnsafe {
		if d.Firm == nil {
			return
		}
		d.Reason = d.Firm
	}
	n.notes.noteRefusal(x, d)
}

// observedWords say what is not enforced.
const observedWords = "the network: commands could connect to every public address, on any port, and nothing was intercepted; what policy says of hosts was only recorded (--observe-network)"
