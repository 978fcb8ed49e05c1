// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// needed are the fields that a step of each kind must have.
var needed = map[string][]string{
	points.EgressLookup:  {"Command", "Phase", "Kind", "Name", "Type", "Grants"},
	points.EgressConnect: {"Command", "Phase", "Kind", "Name", "Address", "Port", "Protocol", "Grants"},
	points.EgressHello:   {"Command", "Phase", "Kind", "Name", "Address", "Port", "Protocol", "SNI", "Grants"},
	points.EgressRequest: {"Command", "Phase", "Kind", "Name", "Address", "Port", "Protocol", "Method", "Path", "Grants"},
}

// TestEgressMissing holds that nothing passes for want of a field, under the shipped
// policy and under one that allows everything but what lacks one.
func TestEgressMissing(t *testing.T) {
	const api = "api.example.com"
	e := shipped(t)
	lax := granting(t, folder(t, "e.rego", egressHead+`allow contains {"rule": "x"} if true`))
	for kind, change := range map[string]step{
		points.EgressLookup: lookup(api, "A", api), points.EgressConnect: func(*proposal.Egress) {},
		points.EgressHello: hello(api, api, api), points.EgressRequest: request("POST", "/x"),
	} {
		whole := plainEgress()
		change(&whole)
		if d := pass(t, e, whole); whole.Kind != kind || d.Effect != proposal.Allow {
			t.Fatalf("%s: %+v", kind, d)
		}
		for _, field := range needed[kind] {
			x := whole
			reflect.ValueOf(&x).Elem().FieldByName(field).SetZero()
			if field == "Address" { // a name that is granted itself needs none, see TestEgressMatrix
				x.Grants = []string{"*.example.com"}
			}
			if d := pass(t, e, x); d.Effect != proposal.Deny || d.Reason == nil {
				t.Errorf("%s without %s: %+v", kind, field, d)
			}
			if d := pass(t, lax, x); d.Effect != proposal.Deny && field != "Name" { // a raw address has none
				t.Errorf("%s without %s, where everything is allowed: %+v", kind, field, d)
			}
		}
	}
}

// FuzzEgress gives Egress a stranger's bytes. Whatever they are there is an answer, and
// what passes was granted by a reading of the entries that is not the engine's own.
func FuzzEgress(f *testing.F) {
	for _, kind := range []string{"lookup", "connect", "hello", "request", "datagram", ""} {
		f.Add(kind, "api.example.com", "192.0.2.10", uint16(443), "api.example.com", "tcp", "api.example.com", "", "GET", "/")
		f.Add(kind, "a.example.com", "::ffff:192.0.2.10", uint16(80), "a.example.com", "http", "*.example.com\x00*.com\x00*\x00.", "", "PUT", "/-/npm/v1/tokens")
		f.Add(kind, "", "10.0.0.1", uint16(22), "", "tls", "10.0.0.1:22\x00[::1]:22\x00::1", "npm", "POST", "//")
		f.Add(kind, "a..b", "x", uint16(0), "\xff", "https", "registry:npm\x00\xff:1", "github-releases", "get", "x")
	}
	e := shipped(f)
	f.Fuzz(func(t *testing.T, kind, name, address string, port uint16, sni, protocol, grants, registry, method, path string) {
		x := proposal.Egress{Command: "t", Phase: proposal.PhaseSetup, Kind: kind, Name: name, Type: method, Address: address, Port: int(port),
			Protocol: protocol, SNI: sni, Method: method, Path: path, Grants: strings.Split(grants, "\x00")}
		if kind == points.EgressLookup {
			x.Type = "AAAA"
		}
		if registry != "" {
			x.Registries = []string{registry}
		}
		d := pass(t, e, x)
		if (d.Effect == proposal.Allow) != (d.Reason == nil) || d.Raw && d.Intercept {
			t.Fatalf("%+v", d)
		}
		if d.Effect != proposal.Allow {
			return
		}
		readOnly := registry != "" && kind != points.EgressHello && (kind != points.EgressRequest || method == "GET" || method == "HEAD")
		named := registry == "" && slices.ContainsFunc(x.Grants, func(g string) bool { return names(g, x) })
		if kind == points.EgressDatagram || kind == points.EgressHello && sni != name || !readOnly && !named {
			t.Errorf("%+v passes: %+v", x, d)
		}
	})
}

// names reports by another way than the engine's whether an entry names x.
func names(entry string, x proposal.Egress) bool {
	for _, port := range []string{"", ":" + strconv.Itoa(x.Port)} {
		if port == "" && x.Kind != points.EgressLookup && x.Port != 443 && x.Port != 80 {
			continue
		}
		host, ok := strings.CutSuffix(entry, port)
		if x.Kind == points.EgressLookup {
			if cut := strings.LastIndexByte(entry, ':'); cut >= 0 {
				host = entry[:cut]
			}
		}
		below, wild := strings.CutPrefix(host, "*.")
		switch {
		case !ok:
		case x.Name == "" && sameAddress(strings.Trim(host, "[]"), x.Address), x.Name != "" && host == x.Name:
			return true
		case wild && x.Name != below && strings.HasSuffix("."+x.Name, "."+below):
			return true
		}
	}
	return false
}

func sameAddress(a, b string) bool {
	left, errLeft := netip.ParseAddr(a)
	right, errRight := netip.ParseAddr(b)
	return errLeft == nil && errRight == nil && left.Unmap().WithZone("") == right.Unmap().WithZone("")
}
