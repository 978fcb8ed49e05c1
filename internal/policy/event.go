// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"net/netip"
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// eventInput is the input document of fumehood.event. Every field is always present, and
// empty where the kind of event has none.
type eventInput struct {
	Command    string `json:"command"`             // id of the proposal
	Kind       string `json:"kind" enum:"event"`   // of the event
	Program    string `json:"program"`             // path of the process's program
	Name       string `json:"name"`                // the last part of Program
	Path       string `json:"path"`                // of the file, or of the program of an exec
	Target     string `json:"target"`              // of a rename or a link
	Protocol   string `json:"protocol"`            // "tcp", "udp", "unix", "raw" …
	Host       string `json:"host" form:"address"` // IP address as Go writes it; an embedded IPv4 one as IPv4
	Port       int    `json:"port"`                // of a connection
	Socket     string `json:"socket"`              // path or @name of a unix socket
	Call       string `json:"call"`                // the system call, for privilege
	Errno      string `json:"errno"`               // "" on success
	Rule       string `json:"rule"`                // that denied a program or a step of a connection, or would have
	Unverified bool   `json:"unverified"`          // only the process itself reported it

	// For events of the gateway: a lookup, a connection, a request, a datagram. Host, Port
	// and Protocol are those outside the sandbox.
	Domain   string `json:"domain" form:"host"`   // that was looked up
	SNI      string `json:"sni"`                  // the name in the TLS hello
	Method   string `json:"method" form:"method"` // of a request, in capitals
	Route    string `json:"route"`                // path of a request
	Code     string `json:"code"`                 // why it ended early
	Refused  bool   `json:"refused"`              // policy refused it
	Sent     int64  `json:"sent"`                 // bytes
	Received int64  `json:"received"`             // bytes
}

// Event returns the policies' notes on one event: members of the set note. It does not
// change what may happen. An error is a *proposal.StopError, as for Decide.
func (e *Engine) Event(ctx context.Context, v proposal.Event) ([]proposal.Finding, error) {
	return inTime(ctx, e, func(ctx context.Context) ([]proposal.Finding, error) {
		m := newMerger(e)
		if err := e.askLayers(ctx, m, module.PointEvent, e.newDocument(eventInputOf(v)), whole,
			""); err != nil {
			return nil, err
		}
		for i := range m.notes {
			m.notes[i].Event = v
		}
		return m.notes, nil
	})
}

func eventInputOf(v proposal.Event) eventInput {
	in := eventInput{Command: v.Command, Kind: v.Kind, Program: v.Program, Path: v.Path, Target: v.Target, Call: v.Call,
		Errno: v.Errno, Unverified: v.Unverified}
	if v.Program != "" {
		in.Name = path.Base(v.Program)
	}
	protocol, where, _ := strings.Cut(v.Address, " ")
	in.Protocol = protocol
	if protocol == "unix" {
		in.Socket = where
	} else if a, err := netip.ParseAddrPort(where); err == nil {
		in.Host, in.Port = a.Addr().Unmap().WithZone("").String(), int(a.Port())
	}
	if d := v.Decision; d != nil && d.Reason != nil {
		in.Rule = d.Reason.Rule
	}
	if v.Flow != nil {
		in.setFlow(*v.Flow)
	}
	return in
}

// setFlow copies what the gateway saw: it knows more about the other side than the kernel in
// the sandbox does.
func (in *eventInput) setFlow(f proposal.Flow) {
	x := f.Egress
	in.Host, in.Port, in.Protocol = "", x.Port, x.Protocol
	if a, err := netip.ParseAddr(x.Address); err == nil {
		in.Host = a.Unmap().WithZone("").String()
	}
	in.Domain, in.SNI, in.Method, in.Route = x.Name, x.SNI, x.Method, x.Path
	in.Code, in.Refused, in.Sent, in.Received = f.Code, f.Refused(), f.Sent, f.Received
	if f.Decision.Reason != nil {
		in.Rule = f.Decision.Reason.Rule
	}
}
