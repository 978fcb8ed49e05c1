package fumehood.command

test_loading_configuration_of_the_workspace if allowed("mypy --config-file mypy.ini .") == {"code.run"}

test_loading_configuration_of_elsewhere if denied("npm --prefix /opt test") == {"code.outside"}

test_loading_configuration_of_tmp if denied("npx jest --config /tmp/x.js") == {"code.elsewhere"}
