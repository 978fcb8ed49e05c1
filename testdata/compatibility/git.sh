# SPDX-License-Identifier: Apache-2.0
# Uses git on a repository of 2,000 files and 60 commits, and prints "ok NAME" or "not ok NAME" for what it did.
step() {
	local name=$1
	shift
	if "$@" >"$log" 2>&1; then echo "ok $name"; else echo "not ok $name"; tail -n 5 "$log" >&2; fi
}
log=$(mktemp) top=$(mktemp -d)/top
mkdir "$top"
export GIT_CONFIG_COUNT=0 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
cd "$top" || exit
make_tree() { for i in $(seq 40); do mkdir -p "d$i"; for j in $(seq 50); do echo "$i $j needle$((i * j))" >"d$i/f$j"; done; done; }
make_history() { for i in $(seq 60); do echo "line $i" >>d1/f1; git commit -qam "change $i" || return; done; }
is() { local want=$1; shift; [ "$("$@")" = "$want" ]; }
step init git init -q -b main
step 'a tree' make_tree
step add git add .
step commit git commit -qm first
step history make_history
step status is '' git status --porcelain
step log is 61 bash -c 'git log --oneline | wc -l'
step 'log of a file' is 61 bash -c 'git log --oneline -- d1/f1 | wc -l'
step blame is 61 bash -c 'git blame d1/f1 | wc -l'
step grep is d40/f50 git grep -l needle2000 -- d40
step diff is 60 bash -c "git diff --numstat HEAD~60 | cut -f1"
step 'a hook that runs' bash -c "printf '#!/bin/sh\ntouch ran\n' >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && git commit -q --allow-empty -m hook && test -e ran"
step 'a hook that refuses' bash -c "printf '#!/bin/sh\nexit 1\n' >.git/hooks/pre-commit && ! git commit -q --allow-empty -m hook; rm .git/hooks/pre-commit"
step 'a work tree' git worktree add -q ../work$$ -b side
step 'a commit in it' bash -c "cd ../work$$ && echo side >side && git add side && git commit -qm side"
step merge git merge -q --no-edit side
step rebase bash -c "git checkout -q -b other HEAD~1 && echo o >o && git add o && git commit -qm o && git rebase -q main"
step stash bash -c 'echo x >>d2/f2 && git stash -q && git stash pop -q && git checkout -q .'
step bisect bash -c 'git bisect start HEAD HEAD~20 && git bisect run true; git bisect reset'
step gc git gc -q
step fsck git fsck --full
step 'a clone' git clone -q . ../clone$$
step 'a fetch' git -C ../clone$$ fetch -q
step 'a bundle' git bundle create -q ../bundle$$ main
step 'an archive' bash -c 'git archive HEAD | tar t | grep -q d9/f9'
step 'a daemon and a clone of it' bash -c "git daemon --listen=127.0.0.1 --port=9418 --reuseaddr --export-all --base-path=$top $top & for i in \$(seq 50); do git clone -q git://127.0.0.1:9418/ ../served$$ && break; sleep 0.1; done; kill \$!; test -e ../served$$/d9/f9"
step 'a credential helper' bash -c "printf 'protocol=https\nhost=example.com\n\n' | git -c credential.helper='!f() { echo username=u; echo password=p; }; f' credential fill | grep -q password=p"
step 'an editor' env GIT_EDITOR='sed -i 1s/.*/edited/' git commit -q --amend
step 'the edited message' is edited git log -1 --format=%s
