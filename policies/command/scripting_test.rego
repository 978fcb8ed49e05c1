package fumehood.command

test_scripting_a_switch if allowed("php -l a.php") == {"code.run"}

test_scripting_a_one_liner if allowed("ruby -e 'puts 1'") == {"code.run"}

test_scripting_a_connection if denied("php -r 'fsockopen(\"x\",80);'") == {"code.socket"}

test_scripting_a_setting if denied("php -d extension=./x.so a.php") == {"code.setting"}

test_scripting_a_module if denied("perl -MLWP::Simple -e 1") == {"code.module", "code.socket"}

test_scripting_a_plugin if denied("rspec --require=evil") == {"code.require"}

test_scripting_a_connection_of_lua if denied("lua -e 'require(\"socket\")'") == {"code.socket"}

test_scripting_a_connection_of_julia if denied("julia -e 'using Sockets'") == {"code.socket"}
