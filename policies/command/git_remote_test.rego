package fumehood.command

test_git_remote_a_clone_where_hosts_were_granted if allowed_with("git clone https://api.example.com/x.git", hosts) == {"git.remote"}

test_git_remote_a_clone_without if denied("git clone https://api.example.com/x.git") == {"git.verb"}

test_git_remote_a_program_of_the_other_side if denied_with("git fetch --upload-pack=./x origin", hosts) == {"git.verb"}
