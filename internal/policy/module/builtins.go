// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"
)

// Every built-in of OPA is listed here, by name: allowed, or removed in removedBuiltins
// with an alternative. Policies cannot use one that is in neither list, so that a newer
// OPA adds nothing unnoticed.

// allowed are the built-ins that every decision point has.
var allowed = strings.Fields(`
	eq equal neq lt lte gt gte assign
	plus minus mul div rem abs ceil floor round and or
	count max min product sum sort intersection union
	array.concat array.flatten array.reverse array.slice
	object.filter object.get object.keys object.remove object.subset object.union object.union_n
	concat contains endswith startswith format_int indexof indexof_n lower upper replace split substring sprintf
	strings.any_prefix_match strings.any_suffix_match strings.count strings.replace_n strings.reverse strings.split_n
	trim trim_left trim_prefix trim_right trim_space trim_suffix
	regex.find_all_string_submatch_n regex.find_n regex.is_valid regex.match regex.replace regex.split regex.template_match
	glob.match glob.quote_meta
	is_array is_boolean is_null is_number is_object is_set is_string type_name to_number
	bits.and bits.negate bits.or bits.rsh bits.xor
	net.cidr_contains net.cidr_contains_matches net.cidr_intersects net.cidr_is_valid
	base64.decode base64.encode base64.is_valid base64url.decode base64url.encode base64url.encode_no_pad hex.decode hex.encode
	urlquery.decode urlquery.decode_object urlquery.encode urlquery.encode_object uri.is_valid uri.parse
	semver.compare semver.is_valid units.parse units.parse_bytes
	crypto.md5 crypto.sha1 crypto.sha256
	internal.member_2 internal.member_3 internal.print internal.template_string internal.test_case print
	numbers.range numbers.range_step
`)

// unhurried are built-ins for points at which no program and no connection waits.
var unhurried = strings.Fields(`
	graph.reachable net.cidr_expand net.cidr_merge
	json.filter json.is_valid json.marshal json.remove json.unmarshal
	crypto.hmac.equal crypto.hmac.md5 crypto.hmac.sha1 crypto.hmac.sha256 crypto.hmac.sha512
	time.add_date time.clock time.date time.diff time.format time.parse_duration_ns time.parse_ns time.parse_rfc3339_ns time.weekday
`)

// hurried are the points at which something waits for the answer.
var hurried = []string{PointEgress, PointEvent, PointExec}

const insteadHurried = "compare texts, sets and numbers: a program or a connection waits for this answer"

// WithheldBuiltin reports whether OPA has a built-in of this name but the point does not, and what
// to use instead. The point of a library is "".
func WithheldBuiltin(point, name string) (instead string, ok bool) {
	if instead, ok = RemovedBuiltin(name); ok {
		return instead, true
	}
	if slices.Contains(hurried, point) && slices.Contains(unhurried, name) {
		return insteadHurried, true
	}
	return "", false
}
