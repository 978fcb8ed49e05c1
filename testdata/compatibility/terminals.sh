# SPDX-License-Identifier: Apache-2.0
# Uses tmux and script, and prints "ok NAME" or "not ok NAME" for what they did.
step() {
	local name=$1
	shift
	if "$@" >"$log" 2>&1; then echo "ok $name"; else echo "not ok $name"; tail -n 5 "$log" >&2; fi
}
log=$(mktemp) dir=$(mktemp -d)
t() { tmux -S "$dir/socket" "$@"; }
shows() { for _ in $(seq 100); do t capture-pane -p -t s | grep -q -e "$1" && return; sleep 0.1; done; t capture-pane -p -t s; return 1; }
step 'a session' t -f /dev/null new-session -d -s s -x 100 -y 30 "PS1=shell- bash --norc"
step 'a prompt' shows shell-
step 'keys' t send-keys -t s 'echo $((40 + 2))-sum' Enter
step 'their output' shows 42-sum
step 'the size' t send-keys -t s 'stty size | tr " " x' Enter
step 'its output' shows 30x100
step 'a terminal' t send-keys -t s 'tty; echo done-$?' Enter
step 'its name' shows /dev/pts/
step 'a job' t send-keys -t s 'sleep 100' Enter
step 'a stop' bash -c "sleep 0.5; tmux -S $dir/socket send-keys -t s C-z"
step 'a stopped job' shows Stopped
step 'foreground' t send-keys -t s 'fg' Enter
step 'an interrupt' bash -c "sleep 0.5; tmux -S $dir/socket send-keys -t s C-c"
step 'its status' bash -c "sleep 0.5; tmux -S $dir/socket send-keys -t s 'echo status=\$?' Enter"
step 'is 130' shows status=130
step 'a split' t split-window -t s 'cat'
step 'two panes' bash -c "[ \$(tmux -S $dir/socket list-panes -t s | wc -l) = 2 ]"
step 'a new size' t resize-window -t s -x 80 -y 24
step 'the end' t kill-server
step 'script' script -qec 'test -t 0 && test -t 1' /dev/null
step 'its exit code' bash -c "script -qec 'exit 7' /dev/null; [ \$? = 7 ]"
step '/dev/tty' script -qec 'echo hello >/dev/tty' /dev/null
step '/dev/tty without a terminal' setsid bash -c '! : </dev/tty'
step 'stty raw' script -qec 'stty raw -echo && stty -a | grep -q -e -icanon' /dev/null
