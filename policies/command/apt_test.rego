package fumehood.command

test_apt_lists_under_tmp if allowed_with("apt-get -o Dir::State::lists=/tmp/lists update", hosts) == {"network.use"}

test_apt_no_package_is_installed if denied_with("apt-get install x", hosts) == {"network.option"}

test_apt_no_hook if denied_with("apt-get -o APT::Update::Pre-Invoke::=./x update", hosts) == {"network.option"}
