package fumehood.command

test_packages_what_is_locked if allowed("npm ci") == {"code.run"}

test_packages_a_package_by_name if denied("npm install left-pad") == {"code.package"}

test_packages_where_hosts_were_granted if allowed_with("npm install left-pad", hosts) == {"code.run"}
