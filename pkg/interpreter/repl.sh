# SPDX-License-Identifier: Apache-2.0
#
# The bash end of the protocol in interpreter.go: bash 4.4 or newer, no other programs.
# This process speaks the protocol. Each context is a process, an interactive bash
# without terminal that reads one cell a line: only an interactive bash keeps its state
# when it is interrupted. Two processes pass on what the contexts write.
#
# A line of the contexts' output that contains "$mark:" is a message to those two:
# "$mark:+NONCE" begins a cell, "$mark:-" ends it.
exec {requests}<&0 {replies}>&1 </dev/null
given=${LC_ALL-} given_set=${LC_ALL+set}
LC_ALL=C.UTF-8
set +m
piece=500 # bytes of output in a message: with all escapes, less than PIPE_BUF
late_size=65536 # bytes of output that are kept between two cells
printf -v mark '\x1e%04x%04x' "$RANDOM" "$RANDOM" # short: bash reads bytes

# quoted sets REPLY to a JSON string.
quoted() {
	local s=$1 i c u
	s=${s//\\/\\\\}
	s=${s//\"/\\\"}
	s=${s//$'\n'/\\n}
	s=${s//$'\t'/\\t}
	if [[ $s == *[[:cntrl:]]* ]]; then
		for i in {1..31}; do
			printf -v c '\\x%x' "$i"
			printf -v c '%b' "$c"
			printf -v u '\\u%04x' "$i"
			s=${s//"$c"/$u}
		done
	fi
	REPLY="\"$s\""
}

# marked sets REPLY to the request $1 with \1 for \\ and \2 for \".
marked() {
	local LC_ALL=C
	REPLY=${1//'\\'/$'\1'}
	REPLY=${REPLY//'\"'/$'\2'}
}

# decoded sets REPLY to the member $2 of the request $1, whose \\ and \" are \1 and \2.
# It works on bytes: on characters, bash takes seconds for a long cell.
decoded() {
	local LC_ALL=C
	REPLY=${1#*"\"$2\":\""}
	REPLY=${REPLY%%\"*}
	REPLY=${REPLY//\\u2028/$'\xe2\x80\xa8'}
	REPLY=${REPLY//\\u2029/$'\xe2\x80\xa9'}
	REPLY=${REPLY//$'\1'/'\\'}
	REPLY=${REPLY//$'\2'/'"'}
	printf -v REPLY '%b' "$REPLY"
}

send() { printf '{"nonce":"%s",%s}\n' "$nonce" "$1" >&"$replies"; }

# boundary sets REPLY to the size of a head of $1, of at most $2 bytes, that splits no character.
boundary() {
	REPLY=$2
	while (( REPLY > $2 - 3 )) && [[ ${1:REPLY:1} == [$'\x80'-$'\xbf'] ]]; do (( --REPLY )); done
}

# output passes on text, or keeps it for the next cell.
output() {
	local text=$1 size
	if [[ ! $nonce ]]; then
		late+=$text
		if (( ${#late} > late_size )); then
			(( omitted += ${#late} - late_size ))
			late=${late: -late_size}
		fi
		return
	fi
	while [[ $text ]]; do
		boundary "$text" "$piece"
		size=$REPLY
		quoted "${text::size}"
		send "\"kind\":\"$kind\",\"text\":$REPLY${2-}"
		text=${text:size}
	done
}

# command obeys a message in the output.
command_of() {
	case $1 in
	+*)
		nonce=${1#+}
		[[ ! $late ]] || output "$late" ",\"late\":true,\"omitted\":$omitted"
		late= omitted=0
		;;
	-)
		nonce=
		printf 'ack %s\n' "$kind" >&"$control"
		;;
	esac
}

# passed passes on text up to the last message in it, obeys those, and sets rest to what
# follows.
passed() {
	local word
	rest=$1
	while [[ $rest == *"$mark:"*$'\n'* ]]; do
		output "${rest%%"$mark:"*}"
		word=${rest#*"$mark:"}
		rest=${word#*$'\n'}
		command_of "${word%%$'\n'*}"
	done
}

# pump reads lines, or what there is of one after a tenth of a second, and passes on as
# many as there are. It reads no blocks: bash loses what it has of one at a timeout.
pump() {
	kind=$1 nonce='' late='' omitted=0
	local LC_ALL=C text='' more rest='' lines=0
	trap '' INT
	while IFS= read -r -N 1 more; do
		text+=$more
		if [[ $more != $'\n' ]]; then
			# A timeout doubles the system calls: not for what comes quickly.
			if (( ++lines > 16 )); then IFS= read -r -n 4095 more; else IFS= read -r -n 4095 -t 0.1 more; fi && (( ${#more} < 4095 )) && more+=$'\n'
			text+=$more
		fi
		! { (( ${#text} < 4000 )) && read -t 0; } || continue
		passed "$rest$text"
		text=
		read -t 0 || lines=0
		if (( ${#more} < 4095 )) && [[ $rest != *"$mark:"* ]]; then
			output "$rest"
			rest=
		elif (( ${#rest} > 80 )); then # a message may begin at its end
			boundary "$rest" $(( ${#rest} - 80 ))
			more=$REPLY
			output "${rest::more}"
			rest=${rest:more}
		fi
	done
}

# Pipes without names, which stay open however cells treat theirs.
exec {control}<> <(:) {out}<> <(:) {err}<> <(:)
# follow ends when this process and the contexts have ended: it writes to no pipe that it reads.
follow() {
	exec <"/dev/fd/$2" {requests}<&- {out}>&- {err}>&-
	pump "$1"
}
follow stdout "$out" &
follow stderr "$err" &

declare -A input group
serial=0

# The first lines of a context. exit ends the cell and not the context.
read -r -d '' prelude <<'X'
exit() { [[ $BASHPID == $$ ]] || builtin exit "$@"; __fumehood_exit=${1-$?}; kill -INT $$; }
__fumehood_done() { local s=${__fumehood_exit-$2}; unset __fumehood_exit; printf '%s:-\n' "$1" >&OUT; printf '%s:-\n' "$1" >&ERR; printf 'done %s\n' "$s" >&CONTROL; }
X
prelude=${prelude//OUT/$out}
prelude=${prelude//ERR/$err}
prelude=${prelude//CONTROL/$control}

# start starts the process of a context, in a process group that can be signaled.
start() {
	local in
	exec {in}<> <(:)
	(( ++serial ))
	set -m
	{
		trap : INT
		set +m
		exec </dev/fd/"$in" {in}>&- {requests}<&- {replies}>&-
		eval "exec $out>/dev/fd/$out $err>/dev/fd/$err" # to write only: it ends with the readers
		if [[ $given_set ]]; then LC_ALL=$given; else unset LC_ALL; fi
		PS1= PS2= PROMPT_COMMAND= bash --norc --noprofile --noediting +H -i
		printf 'left %s %s\n' "$serial" "$?" >&"$control"
	} >/dev/null 2>&1 &
	group[$1]=$!:$serial
	set +m
	input[$1]=$in
	printf 'PS1= PS2=; set +m +o history\n%s\n' "$prelude" >&"$in"
}

stop() {
	local in=${input[$1]-}
	[[ $in ]] || return 0
	exec {in}>&-
	unset "input[$1]" "group[$1]"
}

# finish waits for the end of a cell, sets status, and state to "lost" if its process ended.
finish() {
	local word a b acks=0 over=
	status=0 state=
	while [[ ! $over || $acks -lt 2 ]]; do
		if ! read -r -t 1 -u "$control" word a b; then
			kill -0 -- "-${group[$1]%:*}" 2>/dev/null && continue
			word=left a=${group[$1]#*:} b=137
		fi
		case $word in
		ack) (( ++acks )) ;;
		done) status=$a over=1 ;;
		left)
			[[ $a == "${group[$1]#*:}" ]] || continue
			[[ $state != lost ]] || continue
			status=$b state=lost over=1 acks=0
			printf '%s:-\n' "$mark" >&"$out"
			printf '%s:-\n' "$mark" >&"$err"
			;;
		esac
	done
}

cell() {
	local context=$1 code=$2
	[[ ${input[$context]-} ]] || start "$context"
	running=${group[$context]%:*}
	printf '%s:+%s\n' "$mark" "$nonce" >&"$out"
	printf '%s:+%s\n' "$mark" "$nonce" >&"$err"
	printf '{ eval %s\n} </dev/null >&%s 2>&%s\n__fumehood_done %s $?\n' "${code@Q}" "$out" "$err" "$mark" >&"${input[$context]}"
	finish "$context"
	running=
	[[ $state != lost ]] || stop "$context"
	[[ $status == 0 && ! $state ]] && return
	local value="exit status $status"
	[[ ! $state ]] || value+="; the shell ended and the context is new"
	send "\"kind\":\"error\",\"name\":\"ExitStatus\",\"value\":\"$value\",\"traceback\":\"\""
}

running=
trap '[[ ! $running ]] || kill -INT -- "-$running"' INT
nonce=
send "\"kind\":\"hello\",\"protocol\":1,\"language\":\"bash\",\"version\":\"${BASH_VERSION%%(*}\""
while IFS= read -r -u "$requests" line || [[ $line ]]; do
	marked "$line"
	line=$REPLY
	began=${EPOCHREALTIME-0}
	decoded "$line" nonce
	nonce=$REPLY
	decoded "$line" context
	context=/$REPLY
	decoded "$line" op
	if [[ $REPLY == remove ]]; then
		stop "$context"
	else
		decoded "$line" code
		cell "$context" "$REPLY"
	fi
	took=$(( ${EPOCHREALTIME/[.,]/} - ${began/[.,]/} ))
	send "\"kind\":\"done\",\"ms\":$(( took / 1000 )).$(printf %03d $(( took % 1000 )))"
done
