// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/frame"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func (h *Hello) trim() {}
func (h *Hello) check() error {
	return checkLengths([]field{{"ca", h.CA, maxPEM}})
}

func (a *Ask) trim() { clearSupervisorFields(&a.Egress) }
func (a *Ask) check() error {
	return checkEgress(&a.Egress)
}

func (f *Flow) trim() {
	trimEgress(&f.Flow.Egress)
	trimDecision(&f.Flow.Decision)
	truncateText(&f.Flow.Code, maxWord)
	truncateText(&f.Flow.Inside, maxWord)
	f.Flow.Verdict = ""
}

func (f *Flow) check() error {
	if f.Flow.Sent < 0 || f.Flow.Received < 0 || f.Flow.WallMS < 0 || f.Flow.Status < 0 || f.Flow.Status > 999 {
		return fmt.Errorf("%w: a negative count", frame.ErrMalformed)
	}
	if f.Flow.Verdict != "" {
		return fmt.Errorf("%w: sets a field that only the supervisor may set", frame.ErrMalformed)
	}
	return errors.Join(checkEgress(&f.Flow.Egress), checkDecision(&f.Flow.Decision),
		checkLengths([]field{{"code", f.Flow.Code, maxWord}, {"inside", f.Flow.Inside, maxWord}}))
}

func (d *Done) trim()        {}
func (d *Done) check() error { return nil }

func (f *Fault) trim() { truncateText(&f.Text, maxText) }
func (f *Fault) check() error {
	return checkLengths([]field{{"text", f.Text, maxText}})
}

func (b *Begin) trim()        {}
func (b *Begin) check() error { return nil }

func (e *End) trim()        {}
func (e *End) check() error { return nil }

func (a *Answer) trim()        { trimDecision(&a.Decision) }
func (a *Answer) check() error { return checkDecision(&a.Decision) }

// clearSupervisorFields clears the fields that only the supervisor sets.
func clearSupervisorFields(e *proposal.Egress) {
	e.Command, e.Phase, e.Grants, e.Registries = "", "", nil, nil
}

// trimEgress truncates untrusted text.
func trimEgress(e *proposal.Egress) {
	clearSupervisorFields(e)
	for _, f := range []struct {
		text  *string
		limit int
	}{{&e.Kind, maxWord}, {&e.Name, maxName}, {&e.Type, maxWord}, {&e.Address, maxWord}, {&e.Protocol, maxWord},
		{&e.SNI, maxName}, {&e.Method, maxWord}, {&e.Path, maxPath}} {
		truncateText(f.text, f.limit)
	}
	e.Secrets = slices.Clone(e.Secrets[:min(len(e.Secrets), maxSecrets)])
	for i := range e.Secrets {
		truncateText(&e.Secrets[i].Rule, maxWord)
		truncateText(&e.Secrets[i].Where, maxWord)
	}
}

func checkEgress(e *proposal.Egress) error {
	if e.Command != "" || e.Phase != "" || e.Grants != nil || e.Registries != nil {
		return fmt.Errorf("%w: sets a field that only the supervisor may set", frame.ErrMalformed)
	}
	if len(e.Secrets) > maxSecrets || e.Port < 0 || e.Port > 65535 || e.Query < 0 || e.Size < -1 {
		return fmt.Errorf("%w: a number out of range", frame.ErrMalformed)
	}
	fields := []field{{"kind", e.Kind, maxWord}, {"name", e.Name, maxName}, {"type", e.Type, maxWord},
		{"address", e.Address, maxWord},
		{"protocol", e.Protocol, maxWord}, {"sni", e.SNI, maxName}, {"method", e.Method, maxWord}, {"path", e.Path, maxPath}}
	for _, s := range e.Secrets {
		fields = append(fields, field{"rule", s.Rule, maxWord}, field{"where", s.Where, maxWord})
	}
	return checkLengths(fields)
}

func trimDecision(d *proposal.EgressDecision) {
	d.Rules = slices.Clone(d.Rules[:min(len(d.Rules), maxRules)]) // shared with the caller
	for i := range d.Rules {
		truncateText(&d.Rules[i], maxWord)
	}
	if d.Reason == nil {
		return
	}
	r := *d.Reason
	truncateText(&r.Rule, maxWord)
	truncateText(&r.Message, maxText)
	truncateText(&r.Suggestion, maxText)
	truncateText(&r.Text, maxName)
	d.Reason = &r
}

func checkDecision(d *proposal.EgressDecision) error {
	if len(d.Rules) > maxRules || d.Most < 0 {
		return fmt.Errorf("%w: a number out of range", frame.ErrMalformed)
	}
	var fields []field
	for _, r := range d.Rules {
		fields = append(fields, field{"rule", r, maxWord})
	}
	if r := d.Reason; r != nil {
		fields = append(fields, field{"rule", r.Rule, maxWord}, field{"message", r.Message, maxText},
			field{"suggestion", r.Suggestion, maxText}, field{"text", r.Text, maxName})
	}
	return checkLengths(fields)
}

type field struct {
	name  string
	text  string
	limit int
}

func checkLengths(fields []field) error {
	for _, f := range fields {
		if len(f.text) > f.limit || !utf8.ValidString(f.text) {
			return fmt.Errorf("%w: %s of %d bytes", frame.ErrMalformed, f.name, len(f.text))
		}
	}
	return nil
}

// truncateText limits s to limit bytes, and makes untrusted bytes valid UTF-8 for JSON.
func truncateText(s *string, limit int) {
	*s = strings.ToValidUTF8(*s, "\uFFFD")
	if len(*s) > limit {
		*s = strings.ToValidUTF8((*s)[:limit], "")
	}
}
