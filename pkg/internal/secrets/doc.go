// SPDX-License-Identifier: Apache-2.0

// Package secrets finds what looks like a secret in text that is about to leave: in
// requests at the gateway (Scanner), and in what commands print and leave and whatever is
// told of them (Redactor), where it also finds values that it was told to mask.
//
// It is the second line. Nothing secret is within reach of a sandbox in the first place;
// this catches the key that a test fixture or a pull request holds and a program sends
// somewhere, and it tells what it was by the name of a rule, never by itself.
//
// # What it looks at
//
// A URL, header fields and the first 64 KiB of a body, each as it is, with %XX undone
// and with base64 in it decoded, once. One call ends after about two seconds of a
// processor whatever it is given; what could not be searched by then, or is too long, counts as found, by the
// rule Unscanned. Patterns are RE2's, which take time in proportion to the text.
//
// A Redactor looks at the whole of a text, of any length, as a stream: in windows that
// overlap by 8 KiB, for at most three seconds of a processor and a fifth of one for each MiB; what is
// left then does not leave and counts as Unscanned. What looks like a secret is found
// between and behind colours and controls, too, which who reads it does not see. Values
// that it was told to mask are found as they are, in small or capital letters, in base64
// at any place of a longer text, in both alphabets, in hexadecimal, in escapes of URLs,
// JSON and HTML, reversed, by ROT13, without a token's first part, and over lines, controls and colours that stand between their letters: with
// one automaton for all forms (Aho and Corasick), so that no text makes it slow. Of a
// value of several lines each line of 8 bytes or more is found, too.
// Not found is what stands more than 256 bytes of controls apart, and the first letter of a
// value that a colour interrupts after half an escape sequence.
//
// # What it does not find
//
// Anything that a program wishes to hide: compressed, encrypted, encoded twice, in hex,
// in pieces over several requests, or past the first part of a body. A secret without a
// form of its own, such as a password in a sentence. What gitleaks takes for an example
// (its lists of words). An allowed host can be told anything, in time; say which hosts
// may be written to with that in mind.
//
// # Why the rules and not the library
//
// rules.json holds the rules of gitleaks v8.30.1 (MIT, LICENSE.gitleaks), made by the
// command in the folder generate. The library itself does not fit into a gateway that is
// confined: it brings 170 packages, readers of archives, a configuration reader and a
// terminal library among them, compiles every rule when it starts, and honours a comment
// in the text, "gitleaks:allow", which is the text's author's word against ours. Rules
// that look at a file's name alone are left out, and where a rule also wants a name, its
// pattern alone decides: what leaves has no file name.
package secrets
