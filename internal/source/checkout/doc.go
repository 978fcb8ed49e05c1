// SPDX-License-Identifier: Apache-2.0

// Package checkout writes the files of one commit of an untrusted pull request.
//
// git only transfers the objects, over http(s), into a bare store that this package
// creates. It never has a work tree, so it runs nothing that the commit specifies:
// no hooks, filters, attributes, submodule commands, aliases or configuration. This package
// writes the files, through os.Root, from objects that it has hashed itself:
// commit, trees and blobs all match the commit's id.
//
// It promises:
//   - Only full object ids are fetched, and what is written is that commit or
//     nothing. Names, branches and short ids are never passed to git.
//   - Neither the user's nor the system's git configuration, nor any GIT_ variable
//     of the environment, has an effect. The token is in no argument, no file and
//     no URL. It is bound to the one repository and is not sent along a redirect.
//   - No written path is outside the directory, and no written symlink leads out
//     of it, directly or through other links. Nothing named .git is written, in any
//     spelling.
//   - Everything that is not written as the commit has it is listed in Tree.Left.
//   - Submodules and Git LFS files are fetched only by Extras, from the repository's own
//     server or where its LFS server says, without running anything.
//   - Fetched bytes, time, memory, and the number and size of files are bounded.
//
// Every failure is a *proposal.StopError whose code begins with "checkout.", except
// for *NotFound. It quotes the output of the server or of git as one line of
// visible text, which is still untrusted.
//
// It does not check whether a commit belongs to a pull request: any commit of a
// fork network can be fetched through the repository it was forked from. The caller
// must take the id from an event or from the API, not from a comment. It does not
// judge contents. It does not protect against anyone who can write to Source.Dir.
//
// # Why
//
// git checkout and git archive read the commit's .gitattributes. A filter that the
// host has configured then runs because the commit asks for it (git-lfs calls the
// server that .lfsconfig names), and export-ignore hides files. Reading the objects
// directly does less than either, and the objects can be verified.
package checkout
