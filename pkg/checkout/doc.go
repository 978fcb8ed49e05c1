// SPDX-License-Identifier: Apache-2.0

// Package checkout writes the files of one commit of an untrusted pull request.
//
// git only carries the objects here, over http(s), into a bare store of our own
// making. It never has a work tree, so it runs nothing that the commit says: no
// hooks, filters, attributes, submodules, aliases or configuration. The files are
// written by this package, through os.Root, from objects that it has hashed
// itself: commit, trees and blobs are each what the commit's id promises.
//
// It promises:
//   - Only full object ids are fetched, and what is written is that commit or
//     nothing. A name, a branch or a short id never reaches git.
//   - Neither the user's nor the system's git configuration, nor any GIT_ variable
//     of our environment, has an effect. The token is in no argument, no file and
//     no URL, is bound to the one repository, and follows no redirect.
//   - No written path leaves the folder, and no written symlink leads out of it,
//     through others or not. Nothing of the name .git is written, in any spelling.
//   - Whatever is not written as the commit has it is named in Tree.Left.
//   - Fetched bytes, time, memory, and the number and size of files are bounded.
//
// Every failure is a *proposal.StopError whose code begins with "checkout.", except
// for *NotFound. What a server or git said is in it as one line of visible text, but
// stays untrusted.
//
// It does not say whether a commit belongs to a pull request: any commit of a fork
// network can be fetched through the repository it was forked from. The caller must
// have the id from an event or from the API, not from a comment. It does not judge
// contents. It does not protect against somebody who can write to Source.Dir.
//
// # Why
//
// git checkout and git archive read the commit's .gitattributes: a filter that the
// host has configured then runs on the commit's say (git-lfs calls the server that
// .lfsconfig names), and export-ignore hides files. Reading the objects ourselves is
// less than either, and lets us verify them.
package checkout
